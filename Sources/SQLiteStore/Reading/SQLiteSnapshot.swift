import StoreInterface
import StoreModel

/// A reader of the store over one connection.
///
/// Usually the connection belongs to the snapshot and has an open read transaction, so the state never changes. With
/// ``SnapshotConnections/sharedWithWriter`` it is the connection of the writer: reads see the newest state and wait for a running write.
final class SQLiteSnapshot: StoreSnapshot {
    let layout: SQLiteLayout
    let connection: SQLiteConnection
    /// The generation of the newest save when the snapshot was created.
    let generation: Generation
    /// The pool that the connection is returned to, unless it is the writer's.
    private let pool: SQLiteReaderPool
    private let connections: SnapshotConnections

    var schema: StoreSchema { layout.schema }

    init(
        layout: SQLiteLayout, connection: SQLiteConnection, generation: Generation, pool: SQLiteReaderPool,
        connections: SnapshotConnections
    ) {
        self.layout = layout
        self.connection = connection
        self.generation = generation
        self.pool = pool
        self.connections = connections
    }

    deinit { if connections == .onePerSnapshot { pool.giveBack(connection) } }

    // MARK: Objects

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        SQLitePage(snapshot: self, entity: entity, number: number)
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] {
        // Skips from page to page, so that the cost grows with the pages, not with the rows.
        try read("SELECT id FROM \(layout.tables[entity]) WHERE id >= ? ORDER BY id LIMIT 1") { statement in
            var found: [PageNumber] = []
            var next: ObjectKey = 0
            while true {
                statement.bind(next, 1)
                guard let key = try statement.keys().first else { return found }
                // SQLite does not compare the keys of a damaged page with their place, so that the same pages could follow again and again.
                guard key >= next else {
                    throw StoreError(
                        .damaged,
                        "\(connection.path): the objects of \(schema.entities[entity].name) are not in the order of their keys; restore "
                            + "it from a copy")
                }
                let number = key.page
                found.append(number)
                next = PageAddress.key(page: number.next, slot: 0)
                // Keys are stored as signed numbers. Another program may have inserted the highest.
                if next.stored < 0 { return found }
            }
        }
    }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try read("SELECT \(layout.columns[entity][column]) FROM \(layout.tables[entity]) WHERE id = ?") { statement in
            statement.bind(key, 1)
            defer { statement.reset() }
            guard try statement.step() else { return nil }
            return try decode(statement, at: 0, entity: entity, column: column, key: key)
        }
    }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? {
        try read("SELECT version FROM \(layout.tables[entity]) WHERE id = ?") { statement in
            statement.bind(key, 1)
            return try statement.integers().first.map(Generation.init(stored:))
        }
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        let sql =
            switch relation {
            case .referrers(let entity, let column):
                "SELECT id FROM \(layout.tables[entity]) WHERE \(layout.columns[entity][column]) = ? ORDER BY id"
            case .link(let link, .forward, _):
                "SELECT destination FROM \(layout.links[link]) WHERE source = ? ORDER BY destination"
            case .link(let link, .backward, _):
                "SELECT source FROM \(layout.links[link]) WHERE destination = ? ORDER BY source"
            }
        return try read(sql) { statement in
            statement.bind(key, 1)
            return try statement.keys()
        }
    }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        guard value.isNull || schema.entities[entity].columns[column].type.holds(value) else { return [] }
        // NaN equals nothing. The file has it as a text, which equals itself.
        guard value == value else { return [] }
        let condition = value.isNull ? "IS NULL" : "= ?"
        let sql = "SELECT id FROM \(layout.tables[entity]) WHERE \(layout.columns[entity][column]) \(condition) ORDER BY id"
        return try read(sql) { statement in
            if !value.isNull { statement.bind(value, 1) }
            return try statement.keys()
        }
    }

    // MARK: The connection

    /// Runs `body` with a prepared statement while no other thread uses the connection. Values that `body` has read may be of another state
    /// if this method throws.
    /// - Throws: `StoreError` `.inUseElsewhere` if the file is read without locks and another process has written it.
    func read<R>(_ sql: String, _ body: (SQLiteStatement) throws -> R) throws -> R {
        try pool.whileUnchanged {
            try connection.withLock {
                do {
                    let statement = try connection.statement(sql)
                    guard ExaminedObjects.isWatched else { return try body(statement) }
                    _ = statement.takeScannedRows()
                    let result = try body(statement)
                    let rows = statement.takeScannedRows()
                    if rows > 0 { ExaminedObjects.add(rows) }
                    return result
                } catch {
                    connection.checkReading()
                    throw error
                }
            }
        }
    }

    func decode(
        _ statement: SQLiteStatement, at position: Int, entity: EntityIndex, column: ColumnIndex, key: ObjectKey
    ) throws -> Value {
        if let value = statement.value(position, layout.types[entity][column]) { return value }
        let definition = schema.entities[entity].columns[column]
        throw StoreError(
            .damaged,
            """
            \(schema.entities[entity].name) \(key): the value of \(definition.name) is not \(definition.type.rawValue); \
            correct it with sqlite3, or restore the file
            """)
    }
}
