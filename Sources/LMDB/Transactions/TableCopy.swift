internal import CLMDB

/// What copying a whole sub-database needs: its name and kind, and entries added in order.
public struct TableDescription: Sendable, Hashable {
    public var name: String
    public var kind: Database.Kind
    public var database: Database
}

extension HandleTransaction {
    /// The sub-databases that the main one names, with handles that stay valid. nil when one is of a kind that we never make.
    public func tables() throws -> [TableDescription]? {
        var names: [String] = []
        let cursor = try Cursor(pointer, .main, mapPageSize: nil)
        defer { cursor.close() }
        while let entry = try cursor.move(.next) { names.append(String(decoding: entry.key, as: UTF8.self)) }
        var tables: [TableDescription] = []
        for name in names {
            // Flags are those of the file, whatever is asked for.
            guard let database = try open(name, .bytes), let kind = Database.Kind(flags: try flags(database)) else { return nil }
            tables.append(TableDescription(name: name, kind: kind, database: database))
        }
        return tables
    }

    private func flags(_ database: Database) throws(LMDBError) -> UInt32 {
        var flags: UInt32 = 0
        try check(.databaseFlags) { mdb_dbi_flags(pointer, database.handle, &flags) }
        return flags
    }
}

extension Database.Kind {
    /// nil for a combination that is none of ours.
    init?(flags: UInt32) {
        let known: [Database.Kind] = [.bytes, .integers, .bytesToIntegers, .integersToIntegers]
        guard let kind = known.first(where: { $0.flags == flags }) else { return nil }
        self = kind
    }
}

extension Cursor {
    /// Where an entry stands that is added behind all others.
    public enum Place: Sendable {
        /// Its key is greater than all others.
        case newKey
        /// Its key is the last one, its value greater than all of that.
        case sameKey
    }

    /// Adds an entry behind all others, which fills LMDB's pages. The entry is of another file.
    public func append(_ entry: Entry, _ place: Place) throws(LMDBError) {
        var key = MDB_val(entry.key)
        var value = MDB_val(entry.value)
        let flags = UInt32(place == .newKey ? MDB_APPEND : MDB_APPENDDUP)
        try check(.cursorPut) { mdb_cursor_put(pointer, &key, &value, flags) }
    }
}
