import StoreInterface

/// The entity data that an object needs before it is inserted into a context. Created once per model type.
public struct DetachedEntity: Sendable {
    private let content: Content

    /// The parts, in one allocation, because every detached object has a copy.
    private final class Content: Sendable {
        let name: String
        let columns: [Column]
        let defaults: [Value]

        init(name: String, columns: [Column], defaults: [Value]) {
            self.name = name
            self.columns = columns
            self.defaults = defaults
        }
    }

    /// A column, for descriptions.
    struct Column: Sendable {
        var name: String
        var type: ColumnType
        /// The number of a to-one relationship; nil for an attribute.
        var relationship: Int?
    }

    /// Reads the columns and their defaults from a description.
    public init(_ description: EntityDescription) {
        var defaults: [Value] = []
        var columns: [Column] = []
        var relationshipCount = 0
        for property in description.properties {
            switch property {
            case .attribute(let attribute):
                defaults.append(attribute.defaultValue)
                columns.append(Column(name: attribute.name, type: attribute.type))
            case .relationship(let relationship):
                if relationship.cardinality == .toOne {
                    defaults.append(.null)
                    columns.append(Column(name: relationship.name, type: .reference, relationship: relationshipCount))
                }
                relationshipCount += 1
            }
        }
        content = Content(name: description.name, columns: columns, defaults: defaults)
    }

    var name: String { content.name }
    var columnCount: Int { content.columns.count }
    /// The attributes and to-one relationships, by column.
    var columns: [Column] { content.columns }
    /// The declared default of each column, or null.
    var defaults: [Value] { content.defaults }
}
