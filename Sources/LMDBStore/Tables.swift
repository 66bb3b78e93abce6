import LMDB
import StoreInterface

/// The sub-databases of a store, opened once. `Docs/FileFormat.md` lists their names and contents.
struct Tables: Sendable {
    /// The index of one column, or of several in their order.
    struct Index: Sendable {
        var columns: [Int]
        var database: Database
        /// A single reference column has the destination's key as a number; others their encoded values.
        var isReference: Bool
        var isUnique: Bool

        /// The first column, the only one of most indexes.
        var column: Int { columns[0] }
        var isCompound: Bool { columns.count > 1 }
    }

    struct Link: Sendable {
        var forward: Database
        var backward: Database

        func database(_ direction: LinkDirection) -> Database { direction == .forward ? forward : backward }
    }

    var meta: Database
    var history: Database
    /// Dictionaries of packed pages, by entity and number.
    var dictionaries: Database
    /// By entity.
    var pages: [Database]
    /// By entity: those of one column, ascending, then those of several in the schema's order.
    var indexes: [[Index]]
    /// By link.
    var links: [Link]

    /// The index of one column alone.
    func index(_ entity: Int, _ column: Int) -> Index? { indexes[entity].first { $0.column == column && !$0.isCompound } }

    /// The index over exactly these columns in this order.
    func index(_ entity: Int, _ columns: [Int]) -> Index? { indexes[entity].first { $0.columns == columns } }

    /// The name of an index's sub-database: `index.E.C`, or `index.E.C+D` over several columns.
    static func indexName(_ entity: Int, _ columns: [Int]) -> String {
        "index.\(entity)." + columns.map(String.init).joined(separator: "+")
    }

    static func count(_ schema: StoreSchema) -> Int {
        let indexes = schema.entities.reduce(0) { $0 + $1.columns.count { isIndexed($0) } + $1.indexes.count }
        return 3 + schema.entities.count + indexes + 2 * schema.links.count
    }

    static func isIndexed(_ column: ColumnSchema) -> Bool { column.type == .reference || column.index != .none }

    /// Opens all, creating those that a new file does not have.
    init(_ schema: StoreSchema, meta: Database, in transaction: WriteTransaction) throws {
        self.meta = meta
        history = try transaction.open("history", .integers)
        dictionaries = try transaction.open("dictionaries", .integers)
        pages = try schema.entities.indices.map {
            try transaction.open("pages.\($0)", .integers)
        }
        indexes = try schema.entities.enumerated().map { number, entity in
            let single = try entity.columns.enumerated().filter { Self.isIndexed($0.element) }.map { column, definition in
                let isReference = definition.type == .reference
                let kind = isReference ? Database.Kind.integersToIntegers : .bytesToIntegers
                let database = try transaction.open(Self.indexName(number, [column]), kind)
                return Index(
                    columns: [column], database: database, isReference: isReference, isUnique: definition.index == .unique)
            }
            let compound = try entity.indexes.map { index in
                let database = try transaction.open(Self.indexName(number, index.columns), .bytesToIntegers)
                return Index(
                    columns: index.columns, database: database, isReference: false, isUnique: index.kind == .unique)
            }
            return single + compound
        }
        links = try schema.links.indices.map {
            Link(
                forward: try transaction.open("link.\($0).forward", .integersToIntegers),
                backward: try transaction.open("link.\($0).backward", .integersToIntegers))
        }
    }
}
