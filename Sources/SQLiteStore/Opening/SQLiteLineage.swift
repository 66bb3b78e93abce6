import Foundation
import StoreInterface
import StoreModel

/// The incarnations of a file, which its row `incarnations` of `strata_meta` records, and the mark of a copy. The first
/// opening of a marked copy for writing begins a new incarnation.
enum SQLiteLineage {
    /// The name of the row that marks a copy until it is opened for writing.
    static let copyMark = "copy"
    /// The name of the row with the first key that a copy leases, for all entities.
    static let firstKey = "first key"
    private static let incarnations = "incarnations"

    /// Returns the incarnations that the file has recorded.
    static func read(_ store: UUID, in connection: SQLiteConnection, path: String) throws -> StoreLineage {
        guard let text = try connection.meta(incarnations) else { return StoreLineage(store: store) }
        guard let copies = try? JSONDecoder().decode([StoreLineage.Incarnation].self, from: Data(text.utf8)) else {
            throw StoreError(.damaged, "\(path): the incarnations in strata_meta cannot be read. Restore a copy")
        }
        return StoreLineage(store: store, copies: copies)
    }

    /// Returns the lineage of a file that is open read-only.
    ///
    /// A copy becomes an incarnation when it is first opened for writing. Before that, this treats it as one already. Otherwise later saves
    /// of the original would seem to be saves of the copy.
    static func readOnly(_ store: UUID, in connection: SQLiteConnection, path: String) throws -> StoreLineage {
        // One state, although another process may begin an incarnation meanwhile.
        try connection.run("SAVEPOINT lineage")
        defer { try? connection.run("RELEASE lineage") }
        var lineage = try read(store, in: connection, path: path)
        if try connection.meta(copyMark) != nil { lineage.begin(after: try connection.newestGeneration()) }
        return lineage
    }

    /// Returns the lineage of a file that is being opened for writing. If the file is marked as a copy, begins a new
    /// incarnation and removes the mark. The caller has a write transaction.
    static func adopt(_ store: UUID, in connection: SQLiteConnection, path: String) throws -> StoreLineage {
        var lineage = try read(store, in: connection, path: path)
        guard try connection.meta(copyMark) != nil else { return lineage }
        lineage.begin(after: try connection.newestGeneration())
        let text = String(decoding: try JSONEncoder().encode(lineage.copies), as: UTF8.self)
        try connection.setMeta(incarnations, text)
        // The original continues to assign the keys that it has leased, and to lease the keys after them.
        let next = try connection.integer("SELECT MAX(next) FROM strata_keys") ?? 0
        let first = ObjectKey(try connection.meta(firstKey) ?? "") ?? 0
        let page = PageAddress.firstPageOfCopy(after: PageAddress.page(of: max(ObjectKey(stored: next), first)))
        try connection.setMeta(firstKey, "\(PageAddress.key(page: page, slot: 0))")
        try connection.removeMeta(SQLiteFreeKeys.prefix)
        try connection.removeMeta(copyMark)
        return lineage
    }
}

extension SQLiteConnection {
    /// Returns the value of a row of `strata_meta`. The caller holds the lock.
    func meta(_ name: String) throws -> String? {
        try texts("SELECT value FROM strata_meta WHERE name = ?", [.string(name)]).first
    }

    func setMeta(_ name: String, _ value: String) throws {
        let statement = try statement("INSERT OR REPLACE INTO strata_meta (name, value) VALUES (?, ?)")
        statement.bind([.string(name), .string(value)])
        try statement.run()
    }

    /// Removes the rows whose names have a prefix.
    func removeMeta(_ prefix: String) throws {
        let statement = try statement("DELETE FROM strata_meta WHERE substr(name, 1, length(?1)) = ?1")
        statement.bind([.string(prefix)])
        try statement.run()
    }
}
