import LMDB
internal import Platform
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Closes the file, and with it LMDB's lock file, until the next call. Waits up to five seconds for snapshots that are still
    /// referenced.
    public func suspend() throws {
        try checkProcess()
        for _ in 0..<5000 {
            // No write is running, and none can begin.
            let isDone = writing.withLock { _ in
                suspension.reopening.withLock { _ in
                    if suspension.isOn.load(ordering: .acquiring) { return true }
                    guard environment.suspend() else { return false }
                    suspension.isOn.store(true, ordering: .releasing)
                    return true
                }
            }
            if isDone {
                signal.end()
                return claims.end()
            }
            CurrentThread.sleep(microseconds: 1000)
        }
        throw StoreError.stillRead(url.path, readers: environment.liveReaders, verb: "suspend")
    }

    /// Opens the file again after ``suspend()``.
    func reopen() throws {
        try mappingErrors {
            try suspension.reopening.withLock { _ in
                guard suspension.isOn.load(ordering: .acquiring) else { return }
                try checkFileIdentity()
                try FileCheck.beforeOpening(
                    url.path, options.openingCheck, isWritten: LockFile.mayBeOpenElsewhere(url.path))
                let maximumDatabases = Tables.count(schema) + 128
                let (reopened, readerless) =
                    try isReadOnly
                    ? Self.readOnlyEnvironment(url.path, maximumDatabases: maximumDatabases, options: options)
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
                suspension.isOn.store(false, ordering: .releasing)
            }
        }
    }
}
