import SQLiteStore
import StoreInterface
import StoreModel

/// The foreign keys of the tables of a file, and the rows to which they lead.
struct SQLiteReferences {
    /// The column that a foreign key refers to.
    struct Key: Hashable {
        var table: Int
        var column: Int
    }

    /// A foreign key of one column.
    struct Reference {
        var column: Int
        var destination: Key
        /// For each row the row that it refers to.
        var rows: [Int32]
        /// The number of keys of no row.
        var lost: Int
        var onDelete: String
    }

    private let database: DatabaseReader
    private let scratch: ScratchSpace?
    private let entities: [SQLiteTable]
    /// The values of each entity's table.
    let contents: [SQLiteContent]
    /// The rows by the values of columns that foreign keys refer to.
    private var rows: [Key: [Value: Int32]] = [:]

    init(_ entities: [SQLiteTable], in database: DatabaseReader, scratch: ScratchSpace?) throws {
        self.database = database
        self.scratch = scratch
        self.entities = entities
        contents = try entities.map { try $0.content(in: database, scratch: scratch) }
    }

    /// Returns the tables that become many-to-many relationships: their keys lead to single columns of entities, and no table refers to
    /// them.
    static func joins(among tables: [SQLiteTable]) -> [SQLiteTable] {
        let referenced = Set(
            tables.flatMap { table in
                (table.foreignKeys + table.compositeKeys.compactMap(\.first)).map { $0.table.lowercased() }
            })
        let shaped = tables.filter { $0.isJoin && !referenced.contains($0.name.lowercased()) }
        let names = Set(shaped.map(\.name))
        let entities = tables.filter { !names.contains($0.name) }
        return shaped.filter { table in table.foreignKeys.allSatisfy { destination($0, among: entities) != nil } }
    }

    private static func destination(_ key: SQLiteTable.ForeignKey, among entities: [SQLiteTable]) -> Key? {
        // SQLite ignores the case of ASCII letters only, so a name that is spelled the same goes first.
        let same = entities.firstIndex { $0.name.utf8.elementsEqual(key.table.utf8) }
        guard let table = same ?? entities.firstIndex(where: { $0.name.lowercased() == key.table.lowercased() }) else {
            return nil
        }
        let primary = entities[table].primaryKey
        let name = key.key.isEmpty ? (primary.count == 1 ? primary[0] : "") : key.key
        return entities[table].column(named: name).map { Key(table: table, column: $0) }
    }

    /// Returns the foreign keys of an entity that refer to a row of an entity.
    mutating func references(of number: Int) throws -> [Reference] {
        let table = entities[number]
        var found: [Reference] = []
        for key in table.foreignKeys {
            guard let column = table.column(named: key.column), let destination = Self.destination(key, among: entities) else {
                continue
            }
            let (rows, lost) = try self.rows(
                contents[number].columns[column], of: table, column: column, destination: destination)
            found.append(
                Reference(column: column, destination: destination, rows: rows, lost: lost, onDelete: key.onDelete))
        }
        // A column whose keys are partly lost is kept beside its reference, if there is room for both.
        let room = EntitySchema.maximumColumns - table.columns.count
        let lossy = found.filter { $0.lost > 0 }
        guard lossy.count > room else { return found }
        let dropped = Set(lossy.dropFirst(max(room, 0)).map(\.column))
        return found.filter { !dropped.contains($0.column) }
    }

    /// Returns the two ends of a join table's rows, in the order of its columns.
    mutating func ends(of join: SQLiteTable) throws -> [(table: Int, rows: [Int32])] {
        let own = try join.values(in: database, scratch: scratch)
        var ends: [(table: Int, rows: [Int32])] = []
        for column in join.columns.indices {
            guard let key = join.foreignKeys.first(where: { $0.column.lowercased() == join.columns[column].name.lowercased() }),
                let destination = Self.destination(key, among: entities)
            else { continue }
            ends.append((destination.table, try rows(own[column], of: join, column: column, destination: destination).rows))
        }
        return ends
    }

    /// Returns the rows to which the values of a column lead, and the number of values that lead to none.
    private mutating func rows(
        _ keys: ValueColumn, of table: SQLiteTable, column: Int, destination: Key
    ) throws -> (rows: [Int32], lost: Int) {
        let known = rowsByValue(destination)
        var lost = 0
        var stored: [Value: Value]?
        let rows = try keys.map { key -> Int32 in
            if key.isNull { return TableReference.nobody }
            if let row = known[key] { return row }
            // SQLite compares with the type and the collation of the referenced column.
            if stored == nil { stored = try storedKeys(of: table, column, destination) }
            if let row = stored?[key].flatMap({ known[$0] }) { return row }
            lost += 1
            return TableReference.nobody
        }
        return (rows, lost)
    }

    private mutating func rowsByValue(_ key: Key) -> [Value: Int32] {
        if let known = rows[key] { return known }
        let made = Dictionary(
            contents[key.table].columns[key.column].enumerated().map { ($1, Int32($0)) }, uniquingKeysWith: { first, _ in first })
        rows[key] = made
        return made
    }

    /// Returns for each value of a column the equal value of the referenced column, as SQLite compares them.
    private func storedKeys(of table: SQLiteTable, _ column: Int, _ destination: Key) throws -> [Value: Value] {
        let parent = entities[destination.table]
        let key = parent.columns[destination.column].name
        guard parent.isIndexed(key) else { return [:] }
        var found: [Value: Value] = [:]
        // The unary plus removes the affinity of the referring column, so that SQLite applies that of the referenced column.
        let (own, other) = ("c." + quoted(table.columns[column].name), "p." + quoted(key))
        try database.forEachRow(
            "SELECT \(own), (SELECT \(other) FROM \(quoted(parent.name)) AS p WHERE \(other) = +\(own) LIMIT 1) "
                + "FROM \(quoted(table.name)) AS c WHERE \(own) IS NOT NULL"
        ) { row in
            let stored = row.value(1)
            if !stored.isNull { found[row.value(0)] = stored }
        }
        return found
    }
}
