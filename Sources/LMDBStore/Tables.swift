import LMDB
import StoreInterface

/// The sub-databases of a store, opened once. `Docs/FileFormat.md` lists their names and contents.
struct Tables: Sendable {
    /// The index of one column.
    struct Index: Sendable {
        var column: Int
        var database: Database
        /// References have the destination's key as a number; other columns their encoded value.
        var isReference: Bool
    }

    struct Link: Sendable {
        var forward: Database
        var backward: Database

        func database(_ direction: LinkDirection) -> Database { direction == .forward ? forward : backward }
    }

    var meta: Database
    var history: Database
    /// By entity.
    var pages: [Database]
    /// By entity, then ascending by column.
    var indexes: [[Index]]
    /// By link.
    var links: [Link]

    func index(_ entity: Int, _ column: Int) -> Index? { indexes[entity].first { $0.column == column } }

    static func count(_ schema: StoreSchema) -> Int {
        let indexes = schema.entities.reduce(0) { $0 + $1.columns.count { isIndexed($0) } }
        return 2 + schema.entities.count + indexes + 2 * schema.links.count
    }

    static func isIndexed(_ column: ColumnSchema) -> Bool { column.type == .reference || column.index != .none }

    /// Opens all, creating those that a new file does not have.
    init(_ schema: StoreSchema, meta: Database, in transaction: WriteTransaction) throws {
        self.meta = meta
        history = try transaction.open("history", .integers)
        pages = try schema.entities.indices.map {
            try transaction.open("pages.\($0)", .integers)
        }
        indexes = try schema.entities.enumerated().map { number, entity in
            try entity.columns.enumerated().filter { Self.isIndexed($0.element) }.map { column, columnSchema in
                let isReference = columnSchema.type == .reference
                let kind = isReference ? Database.Kind.integersToIntegers : .bytesToIntegers
                let database = try transaction.open("index.\(number).\(column)", kind)
                return Index(column: column, database: database, isReference: isReference)
            }
        }
        links = try schema.links.indices.map {
            Link(
                forward: try transaction.open("link.\($0).forward", .integersToIntegers),
                backward: try transaction.open("link.\($0).backward", .integersToIntegers))
        }
    }
}
