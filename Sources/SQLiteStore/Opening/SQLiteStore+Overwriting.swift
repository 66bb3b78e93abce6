import Foundation
internal import Platform
import StoreInterface
import StoreModel

/// The state of an open file that a store has seen, and with which it compares later transactions.
struct KnownContent: ~Copyable, Sendable {
    /// SQLite's `schema_version` when the tables were last checked.
    let tables = Mutex<Int64?>(nil)
    private let newestNumber = Atomic<UInt64>(0)
    /// Whether the file was closed since its identity was last checked.
    let isUnverified = Atomic(false)
    /// Whether the file was closed since it was last seen to have a log.
    let mayLackLog = Atomic(false)
    /// The file itself, without its log.
    let file = Mutex(File())

    struct File {
        /// The places in the file of the tables `strata_state` and `strata_meta`; nil before they are looked up.
        var statePage: FilePage?
        var metaPage: FilePage?
        /// The offset of the store's uuid in the page of `strata_meta`; nil before it is found.
        var uuidOffset: Int?
        /// The newest save that the file itself had when the store last looked.
        var newest: Generation?
    }

    /// The newest save that the store has read or written.
    var newest: Generation { Generation(rawValue: newestNumber.load(ordering: .acquiring)) }

    /// Remembers a save that the file has.
    func note(_ generation: Generation) { newestNumber.max(generation.rawValue, ordering: .releasing) }

    /// Looks the places of tables up again at the next transaction.
    func forgetStatePage() { file.withLock { $0 = File() } }
}

/// Another program may write another file over an open or suspended one, for example with `cp`. The file then keeps its name and its
/// identity, so that only its content shows the change.
extension SQLiteStore {
    /// Checks, in the first transaction after the file was opened again, that it is the same store.
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkReopened(_ connection: SQLiteConnection) throws {
        guard known.isUnverified.load(ordering: .acquiring) else { return }
        try checkIdentity(connection)
        known.isUnverified.store(false, ordering: .releasing)
    }

    /// Checks that the file is the same store as before it was closed, with all its saves.
    /// - Throws: `StoreError` `.fileReplaced`.
    func checkIdentity(_ connection: SQLiteConnection) throws {
        let uuid = try connection.meta("uuid").flatMap { UUID(uuidString: $0) }
        guard uuid == openedLineage.store else { throw overwritten }
        // Another process may open a read-only copy for writing and begin its incarnation.
        if !isReadOnly {
            guard try connection.meta(SQLiteLineage.copyMark) == nil,
                try SQLiteLineage.read(openedLineage.store, in: connection, path: path) == openedLineage
            else { throw overwritten }
        }
        let newest = known.newest
        try checkGeneration(connection.newestGeneration(), since: newest)
    }

    /// Checks the newest save of a transaction against the newest one that the store has seen before the transaction began.
    func checkGeneration(_ found: Generation, since before: Generation) throws {
        guard found >= before else { throw overwritten }
        known.note(found)
    }

    /// Checks, in a write transaction, the file itself. SQLite answers from its log and its cache, which hide that the file under them
    /// is another one. The pages that are in neither would be lost. About 2 µs.
    ///
    /// Checkpoints copy newer pages into the file, so the newest save in it never becomes older.
    func checkFile() throws {
        try lookUpPages()
        for isRetry in [false, true, true] {
            // Another process may be writing the pages.
            if isRetry { CurrentThread.sleep(microseconds: 1000) }
            if known.file.withLock({ hasUUID(&$0) && noteNewest(&$0) }) { return }
        }
        throw overwritten
    }

    /// Remembers the newest save in the file itself after a commit, which may have copied the log into the file.
    func noteFile() { known.file.withLock { _ = noteNewest(&$0) } }

    private func lookUpPages() throws {
        guard known.file.withLock({ $0.statePage == nil }) else { return }
        let state = try FilePage("strata_state", writer)
        let meta = try FilePage("strata_meta", writer)
        known.file.withLock { ($0.statePage, $0.metaPage) = (state, meta) }
    }

    /// Returns whether the newest save in the file is not older than before, or not known.
    private func noteNewest(_ file: inout KnownContent.File) -> Bool {
        guard let page = file.statePage, let found = writer.bytesOfFile(page).flatMap(FilePage.generation) else { return true }
        guard found >= file.newest ?? 0 else { return false }
        file.newest = found
        return true
    }

    /// Returns whether the file has the store's uuid, or whether its place is not known.
    private func hasUUID(_ file: inout KnownContent.File) -> Bool {
        guard let page = file.metaPage, let bytes = writer.bytesOfFile(page), FilePage.isLeafOfKeys(bytes) else { return true }
        let uuid = Array(openedLineage.store.uuidString.utf8)
        func isAt(_ offset: Int) -> Bool { bytes[offset] == uuid[0] && bytes[offset..<(offset + uuid.count)].elementsEqual(uuid) }
        if let known = file.uuidOffset, isAt(known) { return true }
        let found = (0...(bytes.count - uuid.count)).first(where: isAt)
        // Until the first checkpoint the page may not be in the file.
        guard found != nil || file.uuidOffset != nil else { return true }
        if let found { file.uuidOffset = found }
        return found != nil
    }

    private var overwritten: StoreError { StoreError.fileReplaced(path, isGone: false) }
}

/// The first page of a table in the file.
struct FilePage {
    let offset: Int64
    let size: Int

    /// Looks the page up. Returns nil if the table does not exist.
    init?(_ table: String, _ connection: SQLiteConnection) throws {
        guard let size = try connection.integer("PRAGMA page_size"), size >= 512,
            let root = try connection.integer("SELECT rootpage FROM sqlite_master WHERE name = ?", [.string(table)]), root > 1
        else { return nil }
        offset = (root - 1) * size
        self.size = Int(size)
    }

    /// Returns whether the bytes are a leaf of a table without row ids. It has all rows of the table if it is the first page.
    static func isLeafOfKeys(_ page: [UInt8]) -> Bool { page.count >= 512 && page[0] == 10 }

    /// Returns the generation in the bytes of the page of `strata_state`, which SQLite's file format defines. Returns nil for any other page.
    static func generation(_ page: [UInt8]) -> Generation? {
        // A leaf of a table with one cell, whose place is at offset 8.
        guard page.count >= 512, page[0] == 13, page[3] == 0, page[4] == 1 else { return nil }
        let cell = Int(page[8]) << 8 | Int(page[9])
        // Lengths below 128 have one byte each: of the row, its number, the header, a null for the primary key, and a number.
        guard cell >= 10, cell + 5 <= page.count, page[cell] < 128, page[cell + 1] == 1, page[cell + 2] == 3, page[cell + 3] == 0
        else { return nil }
        let sizes: [UInt8: Int] = [1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0]
        guard let count = sizes[page[cell + 4]], Int(page[cell]) == 3 + count, cell + 5 + count <= page.count else { return nil }
        if count == 0 { return page[cell + 4] == 9 ? 1 : 0 }
        let number = page[(cell + 5)..<(cell + 5 + count)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let generation = Generation(rawValue: number)
        return generation.isPlausible ? generation : nil
    }
}
