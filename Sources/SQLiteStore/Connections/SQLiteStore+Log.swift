import Dispatch
import Foundation
internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// Limits the size of the write-ahead log.
///
/// SQLite restarts the log, and writes it from its beginning again, when the whole log is in the file and has no reader. A
/// snapshot that was taken after a save reads the log. If a new snapshot follows each save, the log always has a reader and
/// would grow without bound. The snapshot may be of another store or process than the save. Each store therefore moves its own
/// snapshots of the newest state from a long log into the file: before it writes, and when it has released a snapshot.
extension SQLiteStore {
    /// The size in bytes to which SQLite truncates the log when it restarts it.
    static let logLimit = 4 << 20
    /// The size in bytes above which the log is restarted as soon as no snapshot is older than the newest state.
    private static let longLog = 6 << 20
    /// The number of bytes that the log must have grown by before the next attempt.
    private static let logStep = 1 << 18

    /// Lets the next transaction restart the log if the log is long and only the newest state is read. Takes about 1 µs
    /// otherwise. After a failure, a later call tries again.
    ///
    /// Called before a transaction, with the writer's lock.
    func shortenLog() {
        let size = logSize()
        guard size > Self.longLog, logUpkeep.beforeWriting.isDue(size, step: Self.logStep) else { return }
        do {
            // Stops where a reader of an older state needs the file unchanged.
            guard try writer.checkpoint() else { return }
            // Prevents saves until the snapshots are renewed.
            try writer.run("BEGIN IMMEDIATE")
            defer { try? writer.run("COMMIT") }
            try renewSnapshots()
        } catch {
            return
        }
    }

    /// Lets a background queue leave a long log after a snapshot was released, because an older snapshot keeps later saves in the log.
    /// Takes about 1 µs, and never waits for the disk.
    func snapshotWasReleased() {
        guard logSize() > Self.longLog, !logUpkeep.isQueued.exchange(true, ordering: .acquiringAndReleasing) else { return }
        logUpkeep.queue.async { [weak self, logUpkeep] in
            logUpkeep.isQueued.store(false, ordering: .releasing)
            self?.leaveLog()
        }
    }

    /// Moves the snapshots of the newest state from a long log into the file, so that another store can restart the log. Never waits
    /// for a writer, and does nothing if there is one, or if the store is closed.
    private func leaveLog() {
        writer.withLockIfAvailable {
            guard !writer.isInTransaction, (try? writer.beginWriteAtOnce()) == true else { return }
            defer { try? writer.run("COMMIT") }
            try? renewSnapshots()
        }
    }

    /// Waits until the work on the log that released snapshots have caused is done, for tests.
    package func finishLogWork() { logUpkeep.queue.sync {} }

    /// Copies the rest of the log into the file and renews the snapshots of the newest state. The caller prevents saves.
    private func renewSnapshots() throws {
        let newest = try writer.newestGeneration()
        // Includes a save that was committed before the caller's transaction began.
        guard try pool.withIdle({ try $0.checkpoint() }) else { return }
        pool.renew(newest)
    }

    /// Returns the size of the log in bytes; 0 if there is none.
    func logSize() -> Int { StoreFile.byteCount(path + "-wal") }

    /// Returns the size of the whole log for a snapshot of an older state, because SQLite restarts the log only as a whole.
    /// Returns 0 for a snapshot of the newest state.
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        let newest = try reader(.snapshot).generation
        let size = logSize()
        return Retention(bytes: snapshots.map { $0.generation < newest ? size : 0 })
    }
}

/// The attempts of a store to keep the log short.
final class LogUpkeep: Sendable {
    /// The attempts before transactions.
    let beforeWriting = LogAttempts()
    /// Whether an attempt after the release of a snapshot is queued. It serves all snapshots that are released until it runs.
    let isQueued = Atomic(false)
    /// The queue of the attempts after snapshots were released.
    let queue = DispatchQueue(label: "strata.sqlite.log", qos: .utility)
}

/// The size of the log at the last attempt to shorten it.
final class LogAttempts: Sendable {
    private let size = Mutex(0)

    /// Returns whether the log has grown enough since the last attempt. If so, records the new attempt.
    func isDue(_ size: Int, step: Int) -> Bool {
        self.size.withLock { last in
            // The log was restarted since.
            if size < last { last = 0 }
            guard size >= last + step else { return false }
            last = size
            return true
        }
    }
}

extension SQLiteConnection {
    /// Copies the log into the file as far as readers permit, without waiting.
    /// - Returns: Whether the whole log is in the file.
    fileprivate func checkpoint() throws -> Bool {
        try withLock {
            let statement = try statement("PRAGMA wal_checkpoint(PASSIVE)")
            defer { statement.reset() }
            guard try statement.step() else { return false }
            return statement.integer(0) == 0 && statement.integer(1) == statement.integer(2)
        }
    }
}
