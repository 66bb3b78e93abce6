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
    /// with a short log. After a failure, a later call tries again.
    ///
    /// Called before a transaction, with the writer's lock.
    func shortenLog() {
        let size = logSize()
        guard size > Self.longLog else { return }
        do {
            // A context that merges some milliseconds after each save reads the newest state only between few of them.
            guard try !pool.hasReader(before: writer.newestGeneration()),
                logUpkeep.beforeWriting.isDue(size, step: Self.logStep)
            else { return }
            // Stops where a reader of an older state needs the file unchanged.
            guard try writer.checkpoint() == .complete else { return }
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
        if logSize() > Self.longLog { queueLeavingLog() }
    }

    /// Queues an attempt to leave the log, unless one is queued.
    /// - Parameter delay: The time until the attempt, in milliseconds.
    private func queueLeavingLog(after delay: Int = 0) {
        guard !logUpkeep.isQueued.exchange(true, ordering: .acquiringAndReleasing) else { return }
        logUpkeep.work.enter()
        logUpkeep.queue.asyncAfter(deadline: .now() + .milliseconds(delay)) { [weak self, logUpkeep] in
            defer { logUpkeep.work.leave() }
            logUpkeep.isQueued.store(false, ordering: .releasing)
            guard let self, self.logSize() > Self.longLog, self.leaveLog() == .busy else { return }
            // Without another attempt, the other store could come first after each save.
            self.queueLeavingLog(after: min(max(2 * delay, 1), 128))
        }
    }

    /// Moves the snapshots of the newest state from a long log into the file, so that another store can restart the log. Never waits
    /// for a writer.
    /// - Returns: `busy` if this or another store is writing or leaving the log; nil if the attempt failed.
    private func leaveLog() -> Checkpoint? {
        var result: Checkpoint? = .busy
        writer.withLockIfAvailable {
            guard !writer.isInTransaction else { return }
            do {
                guard try writer.beginWriteAtOnce() else { return }
                defer { try? writer.run("COMMIT") }
                result = try renewSnapshots()
            } catch {
                result = nil
            }
        }
        return result
    }

    /// Waits until the work on the log that released snapshots have caused is done, for tests.
    package func finishLogWork() { logUpkeep.work.wait() }

    /// Copies the rest of the log into the file and renews the snapshots of the newest state. The caller prevents saves.
    /// - Returns: How much of the log was copied. If it is not the whole log, no snapshot was renewed.
    @discardableResult
    private func renewSnapshots() throws -> Checkpoint {
        let newest = try writer.newestGeneration()
        // Includes a save that was committed before the caller's transaction began.
        let checkpoint = try pool.withIdle { try $0.checkpoint() }
        if checkpoint == .complete { pool.renew(newest) }
        return checkpoint
    }

    /// Gives a file that was closed its log again, if it has none. A process that replaces a file takes the log away first. If it is killed
    /// then, the file stays without a log, and a snapshot would keep each save from being committed.
    ///
    /// Called before a transaction, which reports why the file cannot be used. Does not wait for other connections: a later call tries
    /// again. Reads only a flag once the log was seen.
    /// - Parameter connection: The connection of the transaction.
    func restoreLog(_ connection: SQLiteConnection) {
        guard known.mayLackLog.load(ordering: .acquiring), !isReadOnly else { return }
        do {
            if try connection.withLock({ try connection.texts("PRAGMA journal_mode") }) != ["wal"] {
                let mode = try writer.withLock { () -> [String] in
                    // Another program may have written another database over the file. It stays as it is.
                    try checkIdentity(writer)
                    return try writer.texts("PRAGMA journal_mode = WAL")
                }
                guard mode == ["wal"] else { return }
            }
            known.mayLackLog.store(false, ordering: .releasing)
        } catch {
            return
        }
    }

    /// Returns the size of the log in bytes; 0 if there is none.
    func logSize() -> Int { StoreFile.byteCount(path + "-wal") }

    /// Returns the size of the whole log for a snapshot of an older state, because SQLite restarts the log only as a whole.
    /// Returns 0 for a snapshot of the newest state.
    public func retention(of snapshots: [any StoreSnapshot]) throws -> Retention {
        let newest = try reader(.onePerSnapshot).generation
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
    /// The queued attempts, and the one that runs.
    let work = DispatchGroup()
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

/// The part of the log that is in the file after a checkpoint.
private enum Checkpoint {
    case complete
    /// Readers of older states need the file unchanged.
    case partial
    /// Another connection is making a checkpoint.
    case busy
}

extension SQLiteConnection {
    /// Copies the log into the file as far as readers permit, without waiting.
    fileprivate func checkpoint() throws -> Checkpoint {
        try withLock {
            let statement = try statement("PRAGMA wal_checkpoint(PASSIVE)")
            defer { statement.reset() }
            guard try statement.step(), statement.integer(0) == 0 else { return .busy }
            return statement.integer(1) == statement.integer(2) ? .complete : .partial
        }
    }
}
