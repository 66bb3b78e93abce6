import StoreInterface
import Locking

/// Connections for snapshots. A snapshot has one for itself while it lives; a few idle ones are kept, with their statements.
final class SQLiteReaderPool: Sendable {
    private let path: String
    private let idle = Mutex<[SQLiteConnection]>([])

    private static let idleLimit = 8

    init(path: String) { self.path = path }

    func take() throws -> SQLiteConnection {
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        return try SQLiteConnection(path: path, role: .reader)
    }

    /// Ends the read transaction. A connection that cannot is dropped, which closes it.
    func giveBack(_ connection: SQLiteConnection) {
        do { try connection.withLock { try connection.run("COMMIT") } } catch { return }
        idle.withLock { if $0.count < Self.idleLimit { $0.append(connection) } }
    }
}
