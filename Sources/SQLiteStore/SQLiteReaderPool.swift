import StoreInterface
import Locking

/// Connections for snapshots. A snapshot has one for itself while it lives; a few idle ones are kept, with their statements.
final class SQLiteReaderPool: Sendable {
    private let path: String
    private let idle = Mutex<[SQLiteConnection]>([])

    private static let idleLimit = 8

    /// The file that the path led to when the store was opened.
    private let file: StoreFile.Identity?

    init(path: String) {
        self.path = path
        file = StoreFile.identity(path)
    }

    func take() throws -> SQLiteConnection {
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        // Another file would be read in its place, and a file that is gone would be made anew.
        let found = StoreFile.identity(path)
        guard found == file else { throw StoreError.fileReplaced(path, isGone: found == nil) }
        return try SQLiteConnection(path: path, role: .reader)
    }

    /// Ends the read transaction. A connection that cannot is dropped, which closes it.
    func giveBack(_ connection: SQLiteConnection) {
        do { try connection.withLock { try connection.run("COMMIT") } } catch { return }
        idle.withLock { if $0.count < Self.idleLimit { $0.append(connection) } }
    }
}
