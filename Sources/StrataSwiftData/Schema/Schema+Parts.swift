import ObjectGraph
import StoreInterface
import StoreModel

/// A property of an entity in a ``Schema``.
public protocol SchemaProperty: Sendable, Hashable {
    /// The name of the property.
    var name: String { get }
    /// The name in older versions of the schema.
    var originalName: String { get }
    /// The type in Swift.
    var valueType: Any.Type { get }
    /// Whether this is an attribute.
    var isAttribute: Bool { get }
    /// Whether this is a relationship.
    var isRelationship: Bool { get }
    /// Whether the value can be nil.
    var isOptional: Bool { get }
    /// Whether no two objects have the same value.
    var isUnique: Bool { get }
    /// Whether the property is not stored. Always false: schemas contain stored properties.
    var isTransient: Bool { get }
}

extension Schema {
    /// An entity: what a model class stores. Inherited properties are in ``inheritedProperties`` only.
    public struct Entity: Sendable, Hashable {
        /// The name of the class.
        public let name: String
        /// The attributes, by name.
        public let attributesByName: [String: Attribute]
        /// The relationships, by name.
        public let relationshipsByName: [String: Relationship]
        /// The properties that are unique together. Unique attributes are in ``Schema/Attribute/isUnique``.
        public let uniquenessConstraints: [[String]]
        /// The properties of each index.
        public let indices: [[String]]
        /// The class and its schema, which lead to the entities of superclasses and subclasses.
        let place: EntityPlace

        /// The attributes.
        public var attributes: Set<Attribute> { Set(attributesByName.values) }
        /// The relationships.
        public var relationships: Set<Relationship> { Set(relationshipsByName.values) }
        /// The attributes and relationships, by name.
        public var storedPropertiesByName: [String: any SchemaProperty] {
            attributesByName.mapValues { $0 as any SchemaProperty }
                .merging(relationshipsByName.mapValues { $0 as any SchemaProperty }) { first, _ in first }
        }
        /// The attributes and relationships, in the order of their names.
        public var storedProperties: [any SchemaProperty] {
            storedPropertiesByName.sorted { $0.key < $1.key }.map(\.value)
        }
        /// The same as ``storedProperties``.
        public var properties: [any SchemaProperty] { storedProperties }
    }

    /// An attribute of an entity.
    public struct Attribute: SchemaProperty {
        /// The name of the property.
        public let name: String
        /// The name in older versions of the schema.
        public let originalName: String
        /// The options that the store knows.
        public let options: [Option]
        private let type: TypeBox
        private let initialValue: StoreInterface.Value
        /// Whether the value can be nil.
        public let isOptional: Bool

        /// The type in Swift.
        public var valueType: Any.Type { type.type }
        /// The initial value of the property, evaluated once for all objects. nil if the property has none, or if evaluating it could have
        /// an effect, as in `Counter.next()`.
        public var defaultValue: Any? {
            func value<V>(as type: V.Type) -> Any? { StoredAttribute.value(initialValue, as: type).map { $0 as Any } }
            return initialValue.isNull ? nil : _openExistential(type.type, do: value(as:))
        }
        /// Whether a value transformer stores the value. Always false: Foundation has value transformers on Apple's systems only.
        public var isTransformable: Bool { false }
        /// The version of the property. Always nil: the modifier is ignored, because a migration compares what is stored.
        public var hashModifier: String? { nil }
        /// Whether no two objects have the same value.
        public var isUnique: Bool { options.contains(.unique) }
        /// Whether this is an attribute.
        public var isAttribute: Bool { true }
        /// Whether this is a relationship.
        public var isRelationship: Bool { false }
        /// Whether the property is not stored. Always false.
        public var isTransient: Bool { false }

        init(_ description: AttributeDescription, _ type: Any.Type) {
            name = description.name
            originalName = description.renamedFrom ?? description.name
            isOptional = description.isOptional
            initialValue = description.defaultValue
            self.type = TypeBox(type: type)
            options =
                (description.index == .unique ? [.unique] : [])
                + (description.preservesValueOnDeletion ? [.preserveValueOnDeletion] : [])
        }
    }

    /// A relationship of an entity.
    public struct Relationship: SchemaProperty {
        /// The effect of deleting an object on the destinations of a relationship.
        public typealias DeleteRule = ObjectGraph.DeleteRule

        /// The name of the property.
        public let name: String
        /// The name in older versions of the schema.
        public let originalName: String
        /// The name of the destination's class.
        public let destination: String
        /// The name of the relationship that leads back.
        public let inverseName: String?
        /// The effect of deleting an object on the destinations.
        public let deleteRule: DeleteRule
        /// Whether the relationship leads to one object at most.
        public let isToOneRelationship: Bool
        private let type: TypeBox
        private let owner: TypeBox

        /// The smallest number of objects; 0 for no limit.
        public let minimumModelCount: Int?
        /// The largest number of objects: 1 for a relationship to one object, and 0 for no limit.
        public let maximumModelCount: Int?
        /// The options that the store knows. Always empty: ``Option/unique`` has no effect.
        public var options: [Option] { [] }
        /// The version of the property. Always nil: the modifier is ignored, because a migration compares what is stored.
        public var hashModifier: String? { nil }
        /// The key path of the property.
        public var keypath: AnyKeyPath? { (owner.type as? any PersistentModel.Type)?.keyPath(named: name) }
        /// The key path of the relationship that leads back, named or inferred.
        public var inverseKeyPath: AnyKeyPath? {
            inverseName.flatMap { RelationshipType(type.type)?.model.keyPath(named: $0) }
        }
        /// The type in Swift.
        public var valueType: Any.Type { type.type }
        /// Whether the value can be nil.
        public var isOptional: Bool { type.type is any OptionalType.Type }
        /// Whether no two objects have the same value.
        public var isUnique: Bool { false }
        /// Whether this is an attribute.
        public var isAttribute: Bool { false }
        /// Whether this is a relationship.
        public var isRelationship: Bool { true }
        /// Whether the property is not stored. Always false.
        public var isTransient: Bool { false }

        init(
            _ description: RelationshipDescription, of owner: any PersistentModel.Type, inverse: String?, valueType: Any.Type
        ) {
            name = description.name
            originalName = description.renamedFrom ?? description.name
            destination = description.destination
            inverseName = inverse
            deleteRule = description.deleteRule
            isToOneRelationship = description.cardinality == .toOne
            let limits = description.rules.compactMap(\.countLimits).first
            minimumModelCount = description.rules.contains(.required) ? 1 : limits?.minimum ?? 0
            maximumModelCount = isToOneRelationship ? 1 : limits?.maximum ?? 0
            type = TypeBox(type: valueType)
            self.owner = TypeBox(type: owner)
        }
    }

    /// The kinds of indexes of a model, for the macro `#Index`.
    public enum Index<Model: PersistentModel> {
        /// One index. Every index is a B-tree.
        public enum Types<Root: PersistentModel> {
            /// An index for comparisons and sorts.
            case binary([PartialKeyPath<Root>])
            /// Not available: Strata has no R-tree.
            @available(*, unavailable, message: "Strata has no R-tree; use .binary")
            case rtree([PartialKeyPath<Root>])
        }
    }
}

extension Schema.Attribute {
    /// An option of an attribute.
    public struct Option: Sendable, Hashable {
        private let name: String

        /// No two objects have the same value. A save replaces the older object.
        public static let unique = Option(name: "unique")
        /// The history keeps the value of a deleted object in its tombstone.
        public static let preserveValueOnDeletion = Option(name: "preserveValueOnDeletion")
        /// Ignored: the store keeps large values apart by itself.
        public static let externalStorage = Option(name: "externalStorage")
        /// Ignored: there is no Spotlight.
        public static let spotlight = Option(name: "spotlight")
        /// Ignored: there is no CloudKit.
        public static let allowsCloudEncryption = Option(name: "allowsCloudEncryption")
        /// The property is not stored, as with ``Transient()``.
        public static let ephemeral = Option(name: "ephemeral")
        /// Ignored: a `Codable` type is stored as JSON without it.
        public static let codable = Option(name: "codable")

        /// Not available: Foundation has value transformers on Apple's systems only.
        @available(*, unavailable, message: "there are no value transformers; make the type Codable")
        public static func transformable(by name: String) -> Option { Option(name: "transformable") }
        /// Not available: Foundation has value transformers on Apple's systems only.
        @available(*, unavailable, message: "there are no value transformers; make the type Codable")
        public static func transformable<T>(by type: T.Type) -> Option { Option(name: "transformable") }
    }
}

extension Schema.Relationship {
    /// An option of a relationship.
    public struct Option: Sendable, Hashable {
        private let name: String

        /// Ignored.
        public static let unique = Option(name: "unique")
    }
}

extension PersistentModel {
    /// Returns the key path of a stored property, declared or inherited.
    fileprivate static func keyPath(named name: String) -> AnyKeyPath? { columnsByKeyPath.first { $0.value == name }?.key }
}

/// A type, compared by identity.
struct TypeBox: Sendable, Hashable {
    let type: Any.Type

    static func == (a: TypeBox, b: TypeBox) -> Bool { a.type == b.type }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(type)) }
}
