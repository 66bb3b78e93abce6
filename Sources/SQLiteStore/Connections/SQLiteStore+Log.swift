import Foundation
internal import Platform
import StoreInterface

/// Keeping the write-ahead log short.
///
/// SQLite uses the log from its beginning again when all of it is in the file and nobody reads it. A snapshot that was taken after a save
/// reads the log. So while each save is followed by a new snapshot there is always a reader, and the log would grow without bound.
extension SQLiteStore {
    /// What SQLite cuts the log to when it begins it anew.
    static let logLimit = 4 << 20
    /// From this size on the log is begun anew as soon as no snapshot is older than the newest state.
    private static let longLog = 6 << 20
    /// How much the log must have grown before the next attempt.
    private static let logStep = 1 << 20

    /// Before a transaction, with the writer's lock: lets it begin the log anew if that is long and only the newest state is read.
    /// About 1 µs otherwise. What fails is tried again later.
    func shortenLog() {
        let size = logSize()
        guard size > Self.longLog, logSizeTried.isDue(size, step: Self.logStep) else { return }
        do {
            // As far as no reader of an older state needs the file as it is.
            guard try writer.checkpoint() else { return }
            // Nobody saves until the snapshots are renewed.
            try writer.run("BEGIN IMMEDIATE")
            defer { try? writer.run("COMMIT") }
            let newest = try writer.newestGeneration()
            // A save that came before the transaction began.
            guard try pool.withIdle({ try $0.checkpoint() }) else { return }
            pool.renew(newest)
        } catch {
            return
        }
    }

    /// Bytes of the log; 0 when there is none.
    func logSize() -> Int {
        var status = stat()
        return stat(path + "-wal", &status) == 0 ? Int(status.st_size) : 0
    }

    /// The whole log for a snapshot of an older state, because SQLite begins it anew or not at all; nothing for one of the newest.
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        let newest = try reader(.snapshot).generation
        let size = logSize()
        return Retention(bytes: snapshots.map { $0.generation < newest ? size : 0 })
    }
}

/// When the log was last tried to be shortened.
final class LogAttempts: Sendable {
    private let size = Mutex(0)

    /// Whether the log has grown enough since the last attempt, which is now.
    func isDue(_ size: Int, step: Int) -> Bool {
        self.size.withLock { last in
            // It was begun anew since.
            if size < last { last = 0 }
            guard size >= last + step else { return false }
            last = size
            return true
        }
    }
}

extension SQLiteConnection {
    /// Brings the log into the file, as far as readers allow, without waiting for anybody.
    /// - Returns: whether all of it is in the file.
    fileprivate func checkpoint() throws -> Bool {
        try withLock {
            let statement = try statement("PRAGMA wal_checkpoint(PASSIVE)")
            defer { statement.reset() }
            guard try statement.step() else { return false }
            return statement.integer(0) == 0 && statement.integer(1) == statement.integer(2)
        }
    }
}
