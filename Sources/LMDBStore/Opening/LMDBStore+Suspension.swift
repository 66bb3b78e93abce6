import LMDB
internal import Platform
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Closes the file, and with it LMDB's lock file, until the next call. Waits up to five seconds for snapshots that are still
    /// referenced.
    public func suspend() throws {
        try checkProcess()
        replaceFailedCommit()
        for _ in 0..<5000 {
            // No write is running, and none can begin.
            if writing.withLock({ _ in closeIfUnread() }) {
                signal.end()
                return claims.end()
            }
            CurrentThread.sleep(microseconds: 1000)
        }
        throw StoreError.stillRead(url.path, readers: environment.liveReaders, verb: "suspend")
    }

    /// Closes the file until the next call, but not the claims and watches of this process. Returns false, and changes nothing, if a
    /// snapshot of this process is referenced. The caller must have acquired the writing lock.
    func closeIfUnread() -> Bool {
        suspension.reopening.withLock { _ in
            if suspension.isOn.load(ordering: .acquiring) { return true }
            // First, so that a reader which is refused by the environment finds out that it has to open the file again.
            suspension.isOn.store(true, ordering: .sequentiallyConsistent)
            guard environment.suspend() else {
                suspension.isOn.store(false, ordering: .releasing)
                return false
            }
            return true
        }
    }

    /// Closes the file if LMDB refuses all transactions because an earlier write has failed. The next call opens it again. Returns false
    /// for another error, and if a snapshot of this process is referenced or a write is running.
    func closeIfUnusable(_ error: any Error) -> Bool {
        guard (error as? StoreError)?.code == .mustReopen else { return false }
        return writing.withLockIfAvailable { _ in closeIfUnread() } ?? false
    }

    /// Commits once more if the last commit has failed, so that the file can be opened after it was closed.
    func replaceFailedCommit() {
        guard counters.hasFailedCommit.load(ordering: .relaxed), !isReadOnly else { return }
        // If the disk still fails, opening the file says so.
        try? writing.withLock { _ in
            // Not through `write`, which is refused after a closing that has found readers.
            if suspension.isOn.load(ordering: .acquiring) { try reopen() }
            guard environment.isOpen else { return }
            try reopeningIfUnusable { try writeAlone(ahead: nil, commitAgain) }
        }
    }

    private func commitAgain(_ opened: LMDBTransaction) throws {
        try opened.checkSpace(pages: 1)
        guard let generation = try opened.transaction.metaNumber(MetaTable.Key.generation, tables.meta) else { return }
        try MetaTable.put(generation, key: MetaTable.Key.generation, meta: tables.meta, in: opened.transaction)
    }

    /// Opens the file again after ``suspend()``.
    /// - Parameter unlessClosed: Whether a closed store stays closed. The last writes of a store that is being closed open its file.
    func reopen(unlessClosed: Bool = false) throws {
        try mappingErrors {
            try suspension.reopening.withLock { _ in
                guard suspension.isOn.load(ordering: .acquiring) else { return }
                if unlessClosed { try checkProcess() }
                try checkFileIdentity()
                try EnvironmentRegistry.reopening(self) { try openAgain() }
                suspension.isOn.store(false, ordering: .releasing)
            }
        }
    }

    /// Opens the file, and gives its new environment to the one that was closed.
    private func openAgain() throws {
        // This process has checked the file before, and knows why it may have the meta page of a failed commit.
        if !counters.hasFailedCommit.load(ordering: .relaxed) {
            try FileCheck.beforeOpening(url.path, options.openingCheck, isWritten: LockFile.mayBeOpenElsewhere(url.path))
        }
        let maximumDatabases = try Tables.mostOpen(schema, path: url.path)
        let (reopened, readerless) =
            try isReadOnly
            ? Self.readOnlyEnvironment(
                url.path, maximumDatabases: maximumDatabases, options: options, usesSlot: opened.readerless == nil)
            : (OpenedEnvironment.open(url.path, maximumDatabases: maximumDatabases, options), nil)
        do {
            guard try FileIdentity.of(descriptor: reopened.fileDescriptor()) == file,
                readerless == nil || opened.readerless != nil
            else { throw StoreError.fileReplaced(url.path, isGone: false) }
            try reopened.adoptingSizes {
                try checkContent(of: reopened)
                try environment.resume(with: reopened)
            }
        } catch {
            reopened.close()
            throw error
        }
    }
}
