import StoreInterface
import StoreModel

/// The entity data that an object needs before it is inserted into a context. Created once per model type.
public struct DetachedEntity: Sendable {
    private let content: Content

    /// The parts, in one allocation, because every detached object has a copy.
    private final class Content: Sendable {
        let name: String
        let columns: [Column]
        let defaults: [Value]
        let rules: EntityRules?
        /// The classes of a hierarchy from its head to the class of the entity; empty for a class that has no superclass.
        let classes: [InheritedClass]

        init(name: String, columns: [Column], defaults: [Value], rules: EntityRules?, classes: [InheritedClass]) {
            self.name = name
            self.columns = columns
            self.defaults = defaults
            self.rules = rules
            self.classes = classes
        }
    }

    /// The numbers of the first properties that a class adds to the inherited ones.
    struct InheritedClass: Sendable {
        let type: ObjectIdentifier
        var column: ColumnIndex
        var relationship: Int
    }

    /// Reads the columns and their defaults from the description of a class and those of its superclasses. Inherited properties have
    /// the first numbers.
    public init(subclass type: any PersistentModel.Type) {
        var whole = type.entityDescription
        whole.properties = []
        var classes: [InheritedClass] = []
        for model in type.hierarchy {
            classes.append(
                InheritedClass(
                    type: ObjectIdentifier(model), column: ColumnIndex(rawValue: whole.properties.count(where: \.hasColumn)),
                    relationship: whole.relationships.count))
            whole.properties += model.entityDescription.properties
        }
        self.init(whole, classes)
    }

    /// A column, for descriptions.
    struct Column: Sendable {
        var name: String
        var type: ColumnType
        /// The number of a to-one relationship; nil for an attribute.
        var relationship: Int?
        var isOptional = true
        var content = AttributeContent.plain

        var form: ValueForm { ValueForm(type: type, content: content) }
    }

    /// Reads the columns and their defaults from a description.
    public init(_ description: EntityDescription) { self.init(description, []) }

    private init(_ description: EntityDescription, _ classes: [InheritedClass]) {
        var defaults: [Value] = []
        var columns: [Column] = []
        var relationshipCount = 0
        for property in description.properties {
            switch property {
            case .attribute(let attribute):
                defaults.append(attribute.defaultValue.isNull ? attribute.valueInsteadOfZero : attribute.defaultValue)
                columns.append(
                    Column(
                        name: attribute.name, type: attribute.type, isOptional: attribute.isOptional,
                        content: attribute.content))
            case .relationship(let relationship):
                if relationship.cardinality == .toOne {
                    defaults.append(.null)
                    columns.append(Column(name: relationship.name, type: .reference, relationship: relationshipCount))
                }
                relationshipCount += 1
            }
        }
        // A rule that does not fit its property is an error when the model is created.
        let rules = try? EntityRules(description)
        content = Content(name: description.name, columns: columns, defaults: defaults, rules: rules, classes: classes)
    }

    var name: String { content.name }
    /// Returns the numbers of the first properties that a class of the hierarchy adds.
    func inherited(_ type: any PersistentModel.Type) -> InheritedClass? {
        content.classes.first { $0.type == ObjectIdentifier(type) }
    }
    var columnCount: Int { content.columns.count }
    /// The attributes and to-one relationships, by column.
    var columns: [Column] { content.columns }
    /// The default of each column, or its type's value instead of zero; null if it has neither.
    var defaults: [Value] { content.defaults }
    /// Returns the value of a column without a value or a default.
    func emptyValue(_ column: ColumnIndex) -> Value { columns[column].isOptional ? .null : .zero(of: columns[column].type) }
    /// The rules of the properties; nil if they have none.
    var rules: EntityRules? { content.rules }
}
