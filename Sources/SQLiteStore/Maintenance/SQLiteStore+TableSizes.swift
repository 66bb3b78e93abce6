import StoreInterface
import StoreModel

extension SQLiteStore {
    /// Returns the size of each table and index in the newest state, or nothing if SQLite was compiled without its statistics of pages
    /// (`SQLITE_ENABLE_DBSTAT_VTAB`). Reads every page of the file.
    public func tableSizes() throws -> [TableSize] {
        let reader = try reader(.onePerSnapshot)
        return try reader.connection.withLock {
            guard try !reader.connection.texts("SELECT name FROM pragma_module_list WHERE name = 'dbstat'").isEmpty else {
                return []
            }
            return try Self.trees(reader).flatMap { try sizes($0, reader) }
        }
    }

    /// The pages of one table or index.
    private struct Tree {
        var name: String
        /// The table to which an index belongs, or the table itself.
        var table: String
        var bytes: Int
        /// The bytes of long values that do not fit a page.
        var overflowBytes: Int
        /// The entries of a table, which are in leaves, and those of an index, which are in all pages.
        var rows: Int
        var cells: Int
    }

    private static func trees(_ reader: SQLiteSnapshot) throws -> [Tree] {
        let sql = """
            SELECT s.name, coalesce(m.tbl_name, s.name), sum(s.pgsize), \
            sum(CASE s.pagetype WHEN 'overflow' THEN s.pgsize ELSE 0 END), \
            sum(CASE s.pagetype WHEN 'leaf' THEN s.ncell ELSE 0 END), sum(s.ncell) \
            FROM dbstat s LEFT JOIN sqlite_schema m ON m.name = s.name GROUP BY s.name ORDER BY s.name
            """
        return try reader.read(sql) { statement in
            defer { statement.reset() }
            var trees: [Tree] = []
            while try statement.step() {
                trees.append(
                    Tree(
                        name: statement.text(0), table: statement.text(1), bytes: Int(statement.integer(2)),
                        overflowBytes: Int(statement.integer(3)), rows: Int(statement.integer(4)),
                        cells: Int(statement.integer(5))))
            }
            return trees
        }
    }

    private func sizes(_ tree: Tree, _ reader: SQLiteSnapshot) throws -> [TableSize] {
        if let number = schema.linkIndices.first(where: { SQLiteLayout.unquoted(layout.links[$0]) == tree.table }) {
            // The pairs are an index of their own, and the other direction is a second one.
            return [TableSize(name: schema.links[number].name, content: .link, entries: tree.cells, bytes: tree.bytes)]
        }
        guard let number = schema.entityIndices.first(where: { SQLiteLayout.unquoted(layout.tables[$0]) == tree.table }) else {
            let content = tree.table == "strata_history" ? TableSize.Content.history : .records
            return [TableSize(name: tree.name, content: content, entries: tree.rows, bytes: tree.bytes)]
        }
        let entity = schema.entities[number]
        guard tree.name != tree.table else {
            let objects = TableSize(
                name: entity.name, content: .objects, entries: tree.rows, bytes: tree.bytes - tree.overflowBytes)
            guard tree.overflowBytes > 0 else { return [objects] }
            return [objects, TableSize(name: entity.name, content: .largeValues, entries: 0, bytes: tree.overflowBytes)]
        }
        let columns = try reader.read("SELECT name FROM pragma_index_info(?) ORDER BY seqno") { statement in
            defer { statement.reset() }
            statement.bind(.string(tree.name), 1)
            var names: [String] = []
            while try statement.step() { names.append(modelName(ofColumn: statement.text(0), number)) }
            return names
        }
        let name = "\(entity.name)(\(columns.joined(separator: ", ")))"
        return [TableSize(name: name, content: .index, entries: tree.cells, bytes: tree.bytes)]
    }

    /// Returns the model's name of a column of the file.
    private func modelName(ofColumn column: String, _ entity: EntityIndex) -> String {
        let columns = schema.entities[entity].columns
        let number = columns.indices(as: ColumnIndex.self).first { SQLiteLayout.unquoted(layout.columns[entity][$0]) == column }
        return number.map { columns[$0].name } ?? column
    }
}
