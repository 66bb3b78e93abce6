internal import Platform
import StoreFiles
import StoreInterface
import StoreModel

/// An exclusive lock on LMDB's lock file: no other process has the file open, and processes that open it wait.
///
/// Each process that has a file open has a shared lock on the first byte of the lock file. The locks belong to the process:
/// its own locks do not conflict, and closing any descriptor of the lock file releases them. Use this type only while this
/// process does not have the file open.
struct LockFile {
    /// The number of tries, and the wait in microseconds between them, for processes that are about to close the file.
    private static let patience = (tries: 20, wait: UInt32(50_000))

    /// The work that needs the lock, for errors.
    enum Purpose: String { case migrating = "migrate", restoring = "restore", replacing = "replace" }

    private let path: String
    private let opened: OpenFile

    /// Acquires the lock.
    /// - Parameters:
    ///   - file: The path of the store.
    ///   - source: The file whose mode and owner a new lock file gets if the store does not exist.
    ///   - purpose: The work that needs the lock.
    /// - Throws: `StoreError` `.inUseElsewhere` while another process has the file open.
    init(of file: String, like source: String? = nil, for purpose: Purpose = .migrating) throws {
        path = file + "-lock"
        let model = try source.flatMap { try FileIdentity.of(path: file) == nil ? $0 : nil } ?? file
        for _ in 0..<Self.patience.tries {
            let opened = try StoreFile.openBeside(path, of: model)
            let isLocked = (try? opened.tryLock(byte: 0, .exclusive, owner: .process)) ?? false
            // The previous owner of the lock may have removed the file.
            if isLocked, FileIdentity.of(opened) == (try? FileIdentity.of(path: path)) {
                self.opened = opened
                return
            }
            opened.close()
            CurrentThread.sleep(microseconds: Self.patience.wait)
        }
        throw Self.inUse(file, for: purpose)
    }

    /// Removes the lock file, so that waiting processes create a new one.
    func removeAndUnlock() {
        try? FileSystem.remove(path)
        opened.close()
    }

    /// Keeps the lock file. Processes that wait for the lock continue with it.
    func unlock() { opened.close() }

    /// Returns whether no other process currently has the file open.
    static func isFree(of file: String) throws -> Bool {
        guard try FileIdentity.of(path: file + "-lock") != nil else { return true }
        let opened = try StoreFile.openBeside(file + "-lock", of: file)
        defer { opened.close() }
        return isFree(opened)
    }

    /// Returns whether another process has the file open, or may have it open. Only for a process that does not have it open and has no lock
    /// on it: closing the lock file ends the locks of the calling process.
    static func mayBeOpenElsewhere(_ file: String) -> Bool { (try? isFree(of: file)) != true }

    /// Returns whether no other process has a lock on an open lock file; false if that cannot be determined. Needs only read
    /// permission.
    static func isFree(_ lockFile: OpenFile) -> Bool {
        (try? lockFile.isLockedElsewhere(byte: 0, owner: .process)) == false
    }

    static func inUse(_ file: String, for purpose: Purpose = .migrating) -> StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot \(purpose.rawValue) \(file): it is open in another process. Close it there")
    }
}

extension PartialFile {
    /// Gives a complete file the name of a store on LMDB, as `finish()` does for other files.
    ///
    /// A process that has the replaced store open would go on with a file that has no name, and its saves would be lost. Waits for up to a
    /// second for processes that are about to close it. No process opens or creates the store meanwhile: syncing a large file takes long.
    /// - Throws: `StoreError` `.inUseElsewhere` while this or another process has the file to replace open. Else as `finish()`.
    public func finishLMDB() throws {
        if try FileIdentity.of(path: target) == nil, try NewFile.whileMissing(target, { try finish() }) != nil { return }
        try EnvironmentRegistry.exclusively(path: target) {
            let lock = try LockFile(of: target, for: .replacing)
            // Processes that wait for the lock create a new lock file for the new file.
            defer { lock.removeAndUnlock() }
            try NewFile.whileReplacing(target) { try finish() }
        }
    }
}
