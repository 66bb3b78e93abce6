import StoreInterface
import StoreModel

/// Detects writes that have changed nothing although SQLite reports no error. A trigger of another program can ignore them, with
/// `RAISE(IGNORE)`.
///
/// Most checks compare the number of changed rows, which SQLite counts anyway. Only a write that has changed no row is looked up.
extension SQLiteTransaction {
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        try connection.integer(layout.selectExistence[entity], [.int(key.stored)]) != nil
    }

    /// Returns the error for an object whose insertion, update or deletion was ignored.
    func ignored(_ entity: EntityIndex, _ key: ObjectKey) -> StoreError {
        ignored("\(layout.schema.entities[entity].name) \(key)", in: SQLiteLayout.unquoted(layout.tables[entity]))
    }

    /// Checks that the last statement has changed a number of rows of one of the store's own tables.
    func checkChanged(_ count: Int, _ subject: @autoclosure () -> String, in table: String) throws {
        if connection.changedRows < count { throw ignored(subject(), in: table) }
    }

    /// Checks a pair whose write has changed no row: that it was written before, or has no object at one end.
    func checkPair(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) throws {
        let (table, ends) = (layout.links[link], layout.schema.links[link])
        let isThere =
            try connection.integer(
                "SELECT 1 FROM \(table) WHERE source = ? AND destination = ?", [.int(source.stored), .int(destination.stored)])
            != nil
        guard isThere != linked, try !linked || (exists(ends.source, source) && exists(ends.destination, destination)) else {
            return
        }
        throw ignored("\(ends.name) \(source), \(destination)", in: SQLiteLayout.unquoted(table))
    }

    private func ignored(_ subject: String, in table: String) -> StoreError {
        let triggers = try? connection.texts(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) = lower(?) ORDER BY name", [.string(table)]
        )
        let names = (triggers ?? []).map { "the trigger \($0)" }.joined(separator: ", ")
        return StoreError(
            .unsupported,
            "\(path): cannot save \(subject): the table \(table) ignored it, probably because of "
                + "\(names.isEmpty ? "an index or a trigger" : names), added by another program. Drop it with sqlite3, then save again"
        )
    }
}
