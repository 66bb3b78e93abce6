import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads the stored properties of Swift values, such as decoded JSON, as values of an entity's properties with the same names.
///
/// A relationship is read as a value of the destination's unique attribute, or as a list of them.
struct ImportedFields {
    /// A property of the entity, as values set it.
    enum Target {
        case attribute(ColumnIndex)
        case related(Relationship, by: UniqueColumn)
    }

    /// The values of one property: one value of an attribute or a to-one relationship, any number of a to-many relationship.
    struct Field {
        var name: String
        var target: Target
        var values: [Value]
    }

    let entity: Entity
    private let model: Model
    private var targets: [String: Target] = [:]

    init(_ entity: Entity, in model: Model) {
        self.entity = entity
        self.model = model
    }

    /// Returns the fields of a value in their order. nil for a property that is not optional is left out, so that a new object gets its initial
    /// value, and a known object keeps its own.
    mutating func fields(of value: Any) throws -> [Field] {
        var fields: [Field] = []
        for (name, child) in Self.children(of: value) {
            let target = try target(name)
            switch target {
            case .attribute(let column):
                let definition = entity.columns[column]
                let value = try convert(child, to: definition.type, name)
                if value.isNull, entity.attribute(named: name)?.isOptional != true { continue }
                fields.append(
                    Field(name: name, target: target, values: [try accepted(value, definition: definition, name: name)]))
            case .related(let relationship, let unique):
                let present = Self.unwrapped(child)
                if present == nil, !Self.mayBeNil(relationship) { continue }
                // Reflection finds no elements in a text or a number. An empty list would remove all members.
                if case .toMany = relationship.kind, let present, !Self.isList(present) {
                    throw BatchError.notStorable(entity: entity.name, property: name, type: "\(Swift.type(of: present))")
                }
                let values = try Self.elements(of: child, relationship).map { element in
                    let value = try convert(element, to: unique.definition.type, name)
                    return value.isNull ? value : try accepted(value, definition: unique.definition, name: name)
                }
                fields.append(Field(name: name, target: target, values: values))
            }
        }
        return fields
    }

    mutating func target(_ name: String) throws -> Target {
        if let known = targets[name] { return known }
        let target: Target
        if let relationship = entity.relationship(named: name) {
            let destination = model.destination(of: relationship)
            guard let unique = destination.onlyUniqueColumn else {
                throw BatchError.noUniqueAttribute(entity: entity.name, property: name, destination: destination.name)
            }
            target = .related(relationship, by: unique)
        } else if let column = entity.column(named: name) {
            target = .attribute(column)
        } else {
            throw FetchError.unknownProperty(entity: entity.name, property: name)
        }
        targets[name] = target
        return target
    }

    private func accepted(_ value: Value, definition: ColumnSchema, name: String) throws -> Value {
        guard definition.accepts(value), definition.type.keepsFinite(value) else {
            throw BatchError.wrongValue(entity: entity.name, property: name, value: value)
        }
        return definition.type.stored(value)
    }

    // MARK: Reflection

    /// Returns the names of the properties that a value sets.
    static func names(of value: Any) -> [String] { children(of: value).map(\.0) }

    /// Returns the stored properties with the names that they have in Swift, or the members of a dictionary by name.
    private static func children(of value: Any) -> [(String, Any)] {
        if let members = value as? [String: Any] { return members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
        var found: [(String, Any)] = []
        var mirror: Mirror? = Mirror(reflecting: value)
        while let current = mirror {
            found += current.children.compactMap { child in child.label.map { ($0, child.value) } }
            mirror = current.superclassMirror
        }
        return found
    }

    private static func elements(of value: Any, _ relationship: Relationship) -> [Any] {
        guard case .toMany = relationship.kind else { return [value] }
        let value = unwrapped(value)
        guard let value else { return [] }
        return Mirror(reflecting: value).children.map(\.value)
    }

    private static func isList(_ value: Any) -> Bool {
        switch Mirror(reflecting: value).displayStyle {
        case .collection, .set: true
        default: false
        }
    }

    /// Whether nil is a value of a relationship. A relationship to many objects is never nil, but may be empty.
    private static func mayBeNil(_ relationship: Relationship) -> Bool {
        if case .toMany = relationship.kind { false } else { !relationship.rules.contains(.required) }
    }

    private static func unwrapped(_ value: Any) -> Any? {
        guard let optional = value as? any OptionalValue else { return value }
        return optional.wrappedValue
    }

    // MARK: Conversion

    private func convert(_ value: Any, to type: ColumnType, _ name: String) throws -> Value {
        guard let value = Self.unwrapped(value) else { return .null }
        if let value = value as? any AttributeValue {
            // Dates are stored as numbers, and a number is no date.
            let isDate = Swift.type(of: value).columnType == .date
            // An error with the stored value would show seconds or a number of bytes.
            if isDate && type != .date || value is Decimal && type != .data {
                throw BatchError.notStorable(entity: entity.name, property: name, type: "\(Swift.type(of: value))")
            }
            guard isDate == (type == .date) else {
                throw BatchError.wrongValue(entity: entity.name, property: name, value: value.storeValue)
            }
            return Self.number(value.storeValue, as: type)
        }
        let raw = (value as? any RawRepresentable).map { Self.rawValue(of: $0) }
        // Properties store a raw value in place of the value if it is of such a type, and otherwise JSON.
        if let raw, raw is any AttributeValue { return try convert(raw, to: type, name) }
        if let value = value as? any Encodable, let converted = Self.encoded(value, as: type) { return converted }
        if let raw { return try convert(raw, to: type, name) }
        throw BatchError.notStorable(entity: entity.name, property: name, type: "\(Swift.type(of: value))")
    }

    private static func rawValue<R: RawRepresentable>(of value: R) -> Any { value.rawValue }

    /// Returns a number in the storage class of a column, if it is exact there.
    private static func number(_ value: Value, as type: ColumnType) -> Value {
        switch (value, type) {
        case (.int(let number), .float), (.int(let number), .double): Double(exactly: number).map { .double($0) } ?? value
        case (.int(let number), .uint64): UInt64(exactly: number).map { .uint($0) } ?? value
        case (.uint(let number), _) where type != .uint64: Int64(exactly: number).map { .int($0) } ?? value
        default: value
        }
    }

    /// Returns the JSON of a value for a column of bytes, and otherwise what the JSON contains, such as the text in an enum of JSON
    /// values.
    private static func encoded(_ value: some Encodable, as type: ColumnType) -> Value? {
        guard let json = try? AttributeJSON.encode(value) else { return nil }
        if type == .data { return .data(json) }
        func decoded<V: AttributeValue & Decodable>(_: V.Type) -> Value? {
            try? JSONDecoder().decode(V?.self, from: json).storeValue
        }
        return switch type {
        case .bool: decoded(Bool.self)
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: decoded(Int64.self)
        case .uint64: decoded(UInt64.self)
        case .float, .double: decoded(Double.self)
        case .string: decoded(String.self)
        case .uuid: decoded(UUID.self)
        case .date, .data, .reference: nil
        }
    }
}

/// A column without two equal values.
struct UniqueColumn: Sendable {
    let entity: Entity
    let column: ColumnIndex
    var definition: ColumnSchema { entity.columns[column] }

    /// Returns the error that no object has a value of the column, by which a relationship is set.
    func noDestination(of property: String, in owner: Entity, value: Value) -> BatchError {
        let content = entity.attributes.first { $0.column == column && $0.content != .plain }?.content
        UniqueForms.note(ValueForm(type: definition.type, content: content ?? .plain), of: definition.name, in: entity.name)
        return .noDestination(
            entity: owner.name, property: property, destination: entity.name, attribute: definition.name, value: value)
    }
}

extension Entity {
    /// Whether no two objects have the same value in a column.
    func isUnique(_ column: ColumnIndex) -> Bool {
        attributes.contains { $0.column == column && $0.index == .unique }
            || indexes.contains { $0.kind == .unique && $0.columns == [column] }
    }

    /// The unique attribute, if the entity has exactly one.
    var onlyUniqueColumn: UniqueColumn? {
        let found = attributes.filter { isUnique($0.column) }
        return found.count == 1 ? UniqueColumn(entity: self, column: found[0].column) : nil
    }

    /// Returns an attribute that must be unique, by name.
    func uniqueColumn(named name: String) throws -> UniqueColumn {
        guard let column = column(named: name) else { throw FetchError.unknownProperty(entity: self.name, property: name) }
        guard isUnique(column) else { throw FetchError.notUnique(entity: self.name, property: name) }
        return UniqueColumn(entity: self, column: column)
    }
}
