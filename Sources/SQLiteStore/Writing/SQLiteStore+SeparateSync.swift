internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

extension SQLiteStore {
    /// Returns an object that syncs the write-ahead log without the writer's connection; nil if there is no log.
    public func separateSync() -> (any CommitSync)? {
        guard let log = try? OpenFile(path + "-wal", access: .read, options: .noFollow) else { return nil }
        return LogSync(log, of: self)
    }

    /// Writes the whole log again in place, if a sync of it has failed, so that the sync of the next durable commit takes all of it to disk.
    ///
    /// Linux takes pages that could not be written for written ones. A later sync would succeed without them, and recovery reads the log
    /// only up to the first frame that is missing.
    ///
    /// Called in a transaction for writing, during which nothing else writes to the log.
    /// - Returns: The log, to note that it is on disk after the commit; nil if no sync of it has failed.
    func repeatFailedLog() throws -> FileIdentity? {
        guard !FailedLogs.isEmpty, let identity = StoreFile.identity(path + "-wal"), FailedLogs.contains(identity) else {
            return nil
        }
        do throws(SystemError) {
            let log = try OpenFile(path + "-wal", access: .readAndWrite, options: .noFollow)
            defer { log.close() }
            let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
            defer { part.deallocate() }
            var offset = 0
            while true {
                let count = try log.read(into: part, at: offset)
                if count == 0 { return identity }
                try log.write(UnsafeRawBufferPointer(rebasing: part[..<count]), at: offset)
                offset += count
            }
        } catch {
            throw StoreError(error, "\(path)-wal cannot be written again after a failed sync")
        }
    }
}

/// The logs of this process whose last sync has failed. Each store on such a file must write it again before a sync counts.
enum FailedLogs {
    private static let logs = Mutex<Set<FileIdentity>>([])

    static var isEmpty: Bool { logs.withLock { $0.isEmpty } }
    static func contains(_ log: FileIdentity) -> Bool { logs.withLock { $0.contains(log) } }
    static func insert(_ log: FileIdentity) { logs.withLock { _ = $0.insert(log) } }
    static func remove(_ log: FileIdentity) { logs.withLock { _ = $0.remove(log) } }
}

/// A sync of the write-ahead log that needs no connection, so that SQLite writes to the log meanwhile.
///
/// It takes every commit to disk that has returned before it begins:
/// - SQLite has written the frames of a commit to the log when the commit returns, also with `synchronous=NORMAL`.
/// - SQLite syncs the header of a log, and the folder of a new log, before it writes the first frame.
/// - SQLite restarts a log, and writes over its frames, only after it has synced the log, copied it into the file and synced the file.
/// - The last connection of all processes removes the log, after the same steps. The writer's connection keeps that from happening.
///
/// As SQLite does by default, this relies on a disk that leaves the rest of a sector as it is if the power fails while a part of the
/// sector is written.
///
/// SQLite has no locks on the log, which closing the descriptor would release.
private final class LogSync: CommitSync {
    /// Open since before the commits, so that the system reports a failed write of them here, whoever has synced the log in between.
    private let log: OpenFile
    private let store: SQLiteStore

    init(_ log: OpenFile, of store: SQLiteStore) {
        self.log = log
        self.store = store
    }

    deinit { log.close() }

    func sync() throws {
        // Commits that follow are not counted: their frames may miss the sync.
        let commits = store.syncing.withLock { $0.unsyncedCommits }
        let identity: FileIdentity
        do throws(SystemError) {
            identity = try log.status().identity
        } catch {
            throw StoreError(error, "\(log.path) cannot be synced")
        }
        if FailedLogs.contains(identity) {
            throw StoreError(.inputOutput, "\(log.path) cannot be synced: an earlier sync has failed. Save again")
        }
        do throws(SystemError) {
            try log.syncContent()
        } catch {
            FailedLogs.insert(identity)
            throw StoreError(error, "\(log.path) cannot be synced")
        }
        // The log was removed and created again if the writer's connection was closed before the commits.
        guard StoreFile.identity(log.path) == identity else {
            throw StoreError(.inputOutput, "\(log.path) cannot be synced: another file has its name. Save again")
        }
        store.syncing.withLock { $0.syncedLater = max($0.syncedLater, commits) }
    }
}
