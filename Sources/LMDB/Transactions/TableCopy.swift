internal import CLMDB

/// A sub-database to copy: its name, kind and handle.
package struct TableDescription: Sendable, Hashable {
    /// The name of the sub-database in the main database.
    package var name: String
    /// The types and order of its keys and values.
    package var kind: Database.Kind
    /// The handle of the sub-database.
    package var database: Database
}

extension HandleTransaction {
    /// Returns the sub-databases in the main database, with handles that stay valid. Returns nil if one has a kind that
    /// Strata never creates.
    package func tables() throws -> [TableDescription]? {
        var names: [String] = []
        let cursor = try Cursor(pointer, .main, mapPageSize: nil)
        defer { cursor.close() }
        while let entry = try cursor.move(.next) { names.append(String(decoding: entry.key, as: UTF8.self)) }
        var tables: [TableDescription] = []
        for name in names {
            guard let opened = try openAny(name) else { return nil }
            tables.append(TableDescription(name: name, kind: opened.kind, database: opened.database))
        }
        return tables
    }
}

extension Database.Kind {
    /// Creates the kind from flags. Returns nil for a combination that Strata does not use.
    init?(flags: UInt32) {
        let known: [Database.Kind] = [.bytes, .integers, .bytesToIntegers, .integersToIntegers]
        guard let kind = known.first(where: { $0.flags == flags }) else { return nil }
        self = kind
    }
}

extension Cursor {
    /// The position of an entry that is added after all existing entries.
    package enum AppendOrder: Sendable {
        /// The key is greater than all existing keys.
        case newKey
        /// The key is the last key, and the value is greater than all of its values.
        case sameKey
    }

    /// Adds an entry of another file after all existing entries, which fills LMDB's pages.
    package func append(_ entry: Entry, _ order: AppendOrder) throws(LMDBError) {
        var key = MDB_val(entry.key)
        var value = MDB_val(entry.value)
        let flags = UInt32(order == .newKey ? MDB_APPEND : MDB_APPENDDUP)
        try check(.cursorPut, of: .cursor(pointer)) { mdb_cursor_put(pointer, &key, &value, flags) }
    }
}
