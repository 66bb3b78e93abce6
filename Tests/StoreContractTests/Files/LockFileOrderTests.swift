import Dispatch
import Foundation
import LMDBStore
import Platform
import StoreContract
import StoreInterface
import StoreModel
import Testing

/// The order in which one process removes a lock file and another one locks it or opens the store. Other processes are played by
/// what they do to the files, between two calls of the system.
@Suite struct LockFileOrderTests {
    private static func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
    }

    /// Creates a closed store with two saves, a backup of it after the first, and a copy of the closed file.
    private static func prepare(_ folder: TemporaryFolder) throws -> (path: String, backup: String, copy: String) {
        let path = folder.url.appendingPathComponent("store").path
        let (backup, copy) = (folder.url.appendingPathComponent("backup"), folder.url.appendingPathComponent("copy").path)
        let store = try FileKind.lmdb.open(path)
        try insert(store, 64)
        _ = try store.backup(to: backup, existing: .refuse)
        try insert(store, 65)
        try store.shutDown()
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        return (path, backup.path, copy)
    }

    /// Returns whether this process has a lock on the first byte of the lock file that has its name now.
    ///
    /// A lock of an open file conflicts with locks of the same process. The descriptor stays open, because closing it would release the
    /// lock.
    private static func isLocked(_ path: String) -> Bool {
        guard let file = try? OpenFile(path + "-lock", access: .readAndWrite) else { return false }
        return (try? file.isLockedElsewhere(byte: 0, owner: .openFile)) ?? false
    }

    #if os(Linux)
        /// Catches: a restore under a lock file that a migration has just removed. A process that opens the store would make a new one,
        /// and the restore would replace the file under it.
        @Test func `S168: a restore holds the lock of the file that has the lock's name`() throws {
            var removed = 0
            for moment in 1... {
                let folder = try TemporaryFolder()
                let (path, backup, _) = try Self.prepare(folder)
                let calls = Mutex((count: 0, isRemoved: false, isTried: false, lockedAtRename: [Bool]()))
                let restore = try #require(FileKind.lmdb.description(path).migration)
                try SystemFaults.withInjector({ call, name in
                    // Other tests of the process rename files meanwhile.
                    if call == .rename, name.contains(folder.url.lastPathComponent) {
                        let isLocked = Self.isLocked(path)
                        calls.withLock { $0.lockedAtRename.append(isLocked) }
                    }
                    guard name == path + "-lock" else { return nil }
                    let removesNow = calls.withLock { calls in
                        // Afterwards, the other process no longer has the lock.
                        if calls.isTried { return false }
                        calls.count += 1
                        if call == .lock { calls.isTried = true }
                        guard calls.count == moment else { return false }
                        calls.isRemoved = true
                        return true
                    }
                    if removesNow { unlink(path + "-lock") }
                    return nil
                }) {
                    try restore.restore(from: URL(fileURLWithPath: backup), cancellation: Cancellation())
                }
                #expect(calls.withLock { $0.lockedAtRename } == [true], "removed at call \(moment)")
                #expect(try FileKind.lmdb.open(path).snapshot().generation == 1)
                if !calls.withLock({ $0.isRemoved }) { break }
                removed += 1
            }
            #expect(removed > 0)
        }

        /// Catches: an opening that uses the lock file, or the file, from before a migration by another process.
        @Test func `S164: a store that is opened while another process replaces its file loses no save`() throws {
            var replaced = 0
            for moment in 1... {
                let folder = try TemporaryFolder()
                let (path, _, copy) = try Self.prepare(folder)
                let calls = Mutex((count: 0, isReplaced: false))
                let opened = try SystemFaults.withInjector({ call, name in
                    guard name == path || name == path + "-lock" else { return nil }
                    let isNow = calls.withLock { calls in
                        calls.count += 1
                        return calls.count == moment
                    }
                    // While this process has the lock, the other one does not replace the file.
                    guard isNow, !Self.isLocked(path) else { return nil }
                    rename(copy, path)
                    unlink(path + "-lock")
                    calls.withLock { $0.isReplaced = true }
                    return nil
                }) {
                    try FileKind.lmdb.open(path)
                }
                try Self.insert(opened, 66)
                #expect(Self.isLocked(path), "replaced at call \(moment)")
                try opened.shutDown()
                let again = try FileKind.lmdb.open(path)
                #expect(try again.snapshot().keys(StoreQuery(entity: Sample.item)) == [64, 65, 66], "replaced at call \(moment)")
                if calls.withLock({ $0.isReplaced }) { replaced += 1 }
                if calls.withLock({ $0.count }) < moment { break }
            }
            #expect(replaced > 0)
        }

        /// Catches: a new file whose locks end when the lock file is closed for the deleted one.
        @Test func `S094: a file that is created while the store of a deleted file of its name closes keeps its lock`() throws {
            for _ in 0..<20 {
                let folder = try TemporaryFolder()
                let path = folder.url.appendingPathComponent("store").path
                let old = try FileKind.lmdb.open(path)
                unlink(path)
                let outcome = Mutex<Result<Void, any Error>?>(nil)
                let closed = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let ended = Result { try old.shutDown() }
                    outcome.withLock { $0 = ended }
                    closed.signal()
                }
                var new: (any ObjectStore)?
                while new == nil {
                    do { new = try FileKind.lmdb.open(path) } catch let error as StoreError where error.code == .inUseElsewhere {}
                }
                closed.wait()
                try outcome.withLock { $0 }?.get()
                #expect(Self.isLocked(path))
                try new?.shutDown()
            }
        }

        /// Catches: a suspended store that opens the new file to compare it, because the system has given it the number of the deleted one.
        @Test func `S167: a suspended store whose file was deleted does not end the locks of a new file`() throws {
            let folder = try TemporaryFolder()
            let path = folder.url.appendingPathComponent("store").path
            let suspended = try FileKind.lmdb.open(path)
            try Self.insert(suspended, 64)
            try suspended.suspend()
            unlink(path)
            let new = try FileKind.lmdb.open(path)
            try Self.insert(new, 65)
            let error = #expect(throws: StoreError.self) { try suspended.snapshot() }
            #expect(error?.code == .fileReplaced)
            #expect(Self.isLocked(path))
            try Self.insert(new, 66)
            #expect(try new.verify() == [])
            try new.shutDown()
        }

        /// Returns whether a thread waits for a lock on a file, as far as the system lists it.
        private static func isAwaited(_ file: FileIdentity) -> Bool {
            let locks = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
            return locks.split(separator: "\n").contains { $0.contains("-> ") && $0.contains(":\(file.inode) ") }
        }

        /// Catches: an opening that fails because LMDB waits for an empty lock file, on which it then gets only a shared lock.
        @Test(arguments: [false, true])
        func `S168: a store that is opened while another process replaces a file without a lock file has the new file`(
            removesLock: Bool
        ) async throws {
            let folder = try TemporaryFolder()
            let (path, backup, _) = try Self.prepare(folder)
            try FileManager.default.removeItem(atPath: path + "-lock")
            let lock = try OpenFile(path + "-lock", access: .readAndWrite, options: [.create, .exclusive])
            // A lock of the open file stands for one of another process.
            let isLocked = try lock.tryLock(byte: 0, .exclusive, owner: .openFile)
            try #require(isLocked)
            let identity = try lock.status().identity
            let outcome = Mutex<Result<any ObjectStore, any Error>?>(nil)
            // A thread, because the wait for a lock would occupy one that runs tasks.
            Thread.detachNewThread {
                let opened = Result { try FileKind.lmdb.open(path) }
                outcome.withLock { $0 = opened }
            }
            // If the system lists no waiting thread, the opening may come later, which is no fault either.
            for _ in 0..<2000 {
                let isOver = outcome.withLock { $0 != nil }
                if isOver || Self.isAwaited(identity) { break }
                try await Task.sleep(for: .milliseconds(5))
            }
            rename(backup, path)
            if removesLock { unlink(path + "-lock") }
            lock.close()
            while outcome.withLock({ $0 == nil }) { try await Task.sleep(for: .milliseconds(5)) }
            let opened = outcome.withLock { $0 }
            let store = try #require(opened).get()
            #expect(try store.snapshot().generation == 1)
            try Self.insert(store, 66)
            #expect(Self.isLocked(path))
            try store.shutDown()
            let again = try FileKind.lmdb.open(path)
            #expect(try again.snapshot().keys(StoreQuery(entity: Sample.item)) == [64, 66])
        }
    #endif

    @Test func `a restore gives a new lock file the mode of the backup`() throws {
        for mode in [0o600, 0o644] {
            let folder = try TemporaryFolder()
            let (path, backup, _) = try Self.prepare(folder)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: backup)
            for name in ["", "-lock"] { try FileManager.default.removeItem(atPath: path + name) }
            let file = try #require(FileKind.lmdb.description(path).migration)
            try file.restore(from: URL(fileURLWithPath: backup), cancellation: Cancellation())
            for name in [path, path + "-lock"] {
                let found = try FileManager.default.attributesOfItem(atPath: name)[.posixPermissions] as? Int
                #expect(found == mode, "\(name)")
            }
        }
    }

    @Test(arguments: FileKind.allCases)
    func `a restore follows a link to the store, and refuses the store itself under another name`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let (link, backup) = (path + " link", URL(fileURLWithPath: path + " backup"))
        let store = try kind.open(path)
        try Self.insert(store, 64)
        _ = try store.backup(to: backup, existing: .refuse)
        try Self.insert(store, 65)
        try store.shutDown()
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        let file = try #require(kind.description(link).migration)
        let error = #expect(throws: StoreError.self) {
            try file.restore(from: URL(fileURLWithPath: path), cancellation: Cancellation())
        }
        #expect(error?.code == .cannotOpen)
        try file.restore(from: backup, cancellation: Cancellation())
        #expect(try kind.open(path).snapshot().generation == 1)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
    }
}
