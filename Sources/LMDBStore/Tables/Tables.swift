import LMDB
import StoreInterface
import StoreModel

/// The sub-databases of a store, opened once. `Docs/Internals/FileFormat.md` lists their names and contents.
struct Tables: Sendable {
    /// The index of one column, or of several in their order.
    struct Index: Sendable {
        /// The name of its sub-database: `index.E.C`, or `index.E.C+D` over several columns, in the file's numbers.
        var name: String
        var columns: [ColumnIndex]
        var database: Database
        /// Whether the keys are numbers: those of the destinations of a single reference column. Other indexes have encoded
        /// values as keys.
        var isReference: Bool
        var isUnique: Bool

        /// The first column, which is the only column of most indexes.
        var column: ColumnIndex { columns[0] }
        var isCompound: Bool { columns.count > 1 }
    }

    struct Link: Sendable {
        var forward: Database
        var backward: Database

        func database(_ direction: LinkDirection) -> Database { direction == .forward ? forward : backward }
    }

    /// The entities' numbers in the file.
    var entityNumbers: [Int]
    var meta: Database
    var history: Database
    /// Dictionaries of packed pages, by entity and number.
    var dictionaries: Database
    /// The rests of packed pages that are split, by entity and page number.
    var pageOverflow: Database
    /// The page tables per entity.
    var pages: [Database]
    /// The chunks of out-of-line values, per entity.
    var large: [Database]
    /// The indexes per entity: indexes over one column, ascending, then indexes over several columns in the schema's order.
    var indexes: [[Index]]
    /// The tables per link.
    var links: [Link]

    /// Returns the index of one column only.
    func index(_ entity: EntityIndex, _ column: ColumnIndex) -> Index? {
        indexes[entity].first { $0.column == column && !$0.isCompound }
    }

    /// Returns the index over each column of data only; nil for columns of other types and without one.
    func dataIndexes(_ entity: EntityIndex, _ schema: StoreSchema) -> [Database?] {
        let columns = schema.entities[entity].columns
        return columns.indices(as: ColumnIndex.self).map { columns[$0].type == .data ? index(entity, $0)?.database : nil }
    }

    /// Returns the index over exactly these columns in this order.
    func index(_ entity: EntityIndex, _ columns: [ColumnIndex]) -> Index? { indexes[entity].first { $0.columns == columns } }

    /// Returns the position of the entity with a number in the file, or nil if the schema does not have it.
    func entity(number: Int) -> EntityIndex? { entityNumbers.firstIndex(of: number).map(EntityIndex.init(rawValue:)) }

    static func count(_ schema: StoreSchema) -> Int {
        let indexes = schema.entities.reduce(0) { $0 + $1.columns.count { isIndexed($0) } + $1.indexes.count }
        return 4 + 2 * schema.entities.count + indexes + 2 * schema.links.count
    }

    /// Returns the number of sub-databases that may be open at once: those of the schema, and those of the file. A changed model counts the
    /// objects that it drops in former ones, and a compact copy reads all of them.
    static func mostOpen(_ schema: StoreSchema, path: String) throws -> Int {
        let spare = 128
        let known = Int(min(try MetaPages.treeCount(path: path) ?? 0, 1 << 16))
        // Every transaction has room for all of them.
        return count(schema) + spare + (known > spare ? known : 0)
    }

    /// Throws if the list of tables lacks one that the file must have. Opening would create it, without the rows that it had.
    ///
    /// A schema and its tables are committed together. Only the first schema is committed before its tables, when `meta` is the only table.
    /// - Parameters:
    ///   - stored: The schema in force.
    ///   - count: The number of tables in the list.
    static func checkNames(
        _ stored: StoredSchema, format: UInt64, count: Int, in transaction: some ByteReading, path: String
    ) throws {
        guard count > 1 else { return }
        for name in StoredTables(stored).all.keys.sorted() + StoredTables.ofEveryStore where format > 1 || !isOptional(name) {
            guard try transaction.hasTable(name) else {
                throw StoreError(.damaged, "\(path) is damaged: its list of tables lacks \(name). Restore a copy")
            }
        }
    }

    /// Returns whether files of format 1 may not have a table of that name. They have nothing to store in it.
    static func isOptional(_ name: String) -> Bool { name == "tails" || name.hasPrefix("large.") }

    static func isIndexed(_ column: ColumnSchema) -> Bool { column.type == .reference || column.index != .none }

    /// Opens all tables, and creates those that are missing.
    init(_ stored: StoredSchema, meta: Database, in transaction: WriteTransaction) throws {
        try self.init(stored, meta: meta) { try transaction.open($0, $1) }
    }

    init(_ stored: StoredSchema, meta: Database, open: (String, Database.Kind) throws -> Database) throws {
        self.meta = meta
        let names = StoredTables(stored)
        entityNumbers = stored.entities.map(\.number)
        history = try open("history", .integers)
        dictionaries = try open("dictionaries", .integers)
        pageOverflow = try open("tails", .integers)
        pages = try names.pages.map { try open($0, .integers) }
        large = try names.large.map { try open($0, .integers) }
        indexes = try names.indexes.map { indexes in
            try indexes.map { index in
                Index(
                    name: index.name, columns: index.columns, database: try open(index.name, index.kind),
                    isReference: index.isReference, isUnique: index.isUnique)
            }
        }
        links = try names.links.map { link in
            Link(
                forward: try open(link.forward, .integersToIntegers),
                backward: try open(link.backward, .integersToIntegers))
        }
    }
}
