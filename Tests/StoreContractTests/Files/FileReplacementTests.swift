import Foundation
import LMDBStore
import Platform
import SQLiteStore
import StoreContract
import StoreInterface
import StoreModel
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Files that are created, removed and exchanged while stores are open.
@Suite struct FileReplacementTests {
    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        let error = #expect(throws: StoreError.self) { try body() }
        return error?.code
    }

    private static func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
    }

    // MARK: Replaced

    enum Change: String, CaseIterable, Sendable { case deleted, moved, replaced, folderMoved, folderReplaced }

    @Test(arguments: FileKind.allCases, Change.allCases)
    func `S210: a save to a file that is no longer under its name is refused`(_ kind: FileKind, _ change: Change) throws {
        let folder = try TemporaryFolder()
        let inner = folder.url.appendingPathComponent("inner")
        let copy = folder.url.appendingPathComponent("copy")
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        let file = inner.appendingPathComponent("store")
        let store = try kind.open(file.path)
        try Self.insert(store, 64)
        _ = try store.backup(to: copy, existing: .refuse)
        switch change {
        case .deleted: unlink(file.path)
        case .moved: try FileManager.default.moveItem(at: file, to: folder.url.appendingPathComponent("moved"))
        case .replaced: rename(copy.path, file.path)
        case .folderMoved: try FileManager.default.moveItem(at: inner, to: folder.url.appendingPathComponent("moved"))
        case .folderReplaced:
            try FileManager.default.moveItem(at: inner, to: folder.url.appendingPathComponent("moved"))
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
            try FileManager.default.moveItem(at: copy, to: file)
        }
        #expect(code { try Self.insert(store, 65) } == .fileReplaced)
        #expect(code { try Self.insert(store, 65) } == .fileReplaced)
        // SQLite opens the file again for further readers.
        if kind == .lmdb { #expect(try store.snapshot().generation == 1) }
        if change == .deleted { #expect(!FileManager.default.fileExists(atPath: file.path)) }
        if change == .moved {
            try FileManager.default.moveItem(at: folder.url.appendingPathComponent("moved"), to: file)
            try Self.insert(store, 65)
            #expect(try store.snapshot().generation == 2)
        }
    }

    @Test func `S210: a file that took the place of an open one is opened when that is closed`() throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        var store: (any ObjectStore)? = try FileKind.lmdb.open(path)
        for key in 64..<70 as Range<ObjectKey> { try Self.insert(try #require(store), key) }
        let copy = folder.url.appendingPathComponent("copy")
        _ = try store?.backup(to: copy, existing: .refuse)
        rename(copy.path, path)
        // The two stores would share a lock file.
        #expect(code { _ = try FileKind.lmdb.open(path) } == .inUseElsewhere)
        store = nil
        try Self.insert(try FileKind.lmdb.open(path), 80)
        #expect(try FileKind.lmdb.open(path).snapshot().generation == 7)
    }

    /// Catches: a new file that gets the lock file of the open store, whose locks end with it.
    @Test(arguments: [Change.deleted, .moved])
    func `S094: no file is created or restored in place of one that was deleted or moved while it is open`(_ change: Change)
        throws
    {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let backup = folder.url.appendingPathComponent("backup")
        let store = try FileKind.lmdb.open(path)
        try Self.insert(store, 64)
        _ = try store.backup(to: backup, existing: .refuse)
        if change == .deleted { unlink(path) } else { rename(path, path + " moved") }
        let file = try #require(FileKind.lmdb.description(path).migration)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
        #expect(code { _ = try FileKind.lmdb.open(path) } == .inUseElsewhere)
        #expect(code { try file.restore(from: backup, cancellation: Cancellation()) } == .inUseElsewhere)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted() == names)
        #expect(try store.snapshot().generation == 1)
        if change == .moved {
            rename(path + " moved", path)
            #expect(try FileKind.lmdb.open(path) === store)
            unlink(path)
        }
        try store.shutDown()
        try file.restore(from: backup, cancellation: Cancellation())
        try Self.insert(try FileKind.lmdb.open(path), 65)
        #expect(try FileKind.lmdb.open(path).snapshot().generation == 2)
    }

    @Test func `another process does not write a restored file under the lock file of the one before`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        let store = try FileKind.lmdb.open(path)
        for key in 64..<70 as Range<ObjectKey> { try Self.insert(store, key) }
        let copy = folder.url.appendingPathComponent("copy")
        _ = try store.backup(to: copy, existing: .refuse)
        rename(copy.path, path)
        await #expect(processExitsWith: .success) { [path = path as String] in
            let error = #expect(throws: StoreError.self) { try FileKind.lmdb.open(path) }
            try #require(error?.code == .inUseElsewhere)
        }
        withExtendedLifetime(store) {}
    }

    // MARK: Created

    @Test(arguments: FileKind.allCases) func `a full disk while a file is created leaves nothing`(_ kind: FileKind) async throws {
        await #expect(processExitsWith: .success) { [name = kind.rawValue as String] in
            let kind = try #require(FileKind(rawValue: name))
            let folder = try TemporaryFolder()
            let path = folder.url.appendingPathComponent("store").path
            signal(SIGXFSZ, SIG_IGN)
            for bytes in [0, 4096, 8192, 12_288] {
                var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(1 << 30))
                setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
                let outcome = Result { try kind.open(path) }
                limit.rlim_cur = 1 << 30
                setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
                try #require(names.allSatisfy { !$0.hasPrefix(".") }, "\(names)")
                guard case .failure(let error) = outcome else { break }
                try #require((error as? StoreError)?.code == .full, "\(error)")
                // There may have been no room even for the lock file of the store. The store itself is there or not.
                if names.contains("store") { break }
            }
            try FileReplacementTests.insert(try kind.open(path), 64)
        }
    }

    @Test(arguments: FileKind.allCases) func `what a killed creator has left goes at the next open`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        for isThere in [false, true] {
            for name in [".store.making", ".store.new"] {
                try Data("half".utf8).write(to: folder.url.appendingPathComponent(name))
            }
            try Self.insert(try kind.open(path), isThere ? 65 : 64)
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
            #expect(names.allSatisfy { !$0.hasPrefix(".") }, "\(names)")
        }
        #expect(try kind.open(path).snapshot().generation == 2)
    }

    /// Creates one store after another until it is killed.
    static func createUntilKilled(_ kind: FileKind, _ folder: URL, after: Int) throws {
        let thread = Thread {
            usleep(UInt32(after))
            kill(getpid(), SIGKILL)
        }
        thread.start()
        for number in 0..<100_000 { _ = try kind.open(folder.appendingPathComponent("store \(number)").path) }
    }

    @Test(arguments: FileKind.allCases) func `S066: a kill while files are created leaves whole files or none`(_ kind: FileKind)
        async throws
    {
        for round in 0..<4 {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [name = kind.rawValue as String, url = folder.url as URL, after = 10_000 + round * 3_001 as Int] in
                try FileReplacementTests.createUntilKilled(try #require(FileKind(rawValue: name)), url, after: after)
            }
            for number in 0..<100_000 {
                let path = folder.url.appendingPathComponent("store \(number)").path
                let isThere = FileManager.default.fileExists(atPath: path)
                let store = try kind.open(path)
                #expect(try store.verify() == [])
                // At once: a fast victim leaves more files than the process may have open beside those of other tests.
                try store.shutDown()
                if !isThere { break }
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
            #expect(names.allSatisfy { !$0.hasPrefix(".") }, "\(names)")
        }
    }

    static func createAndCount(_ name: String, _ path: String) throws {
        try #require(FileKind(rawValue: name)).count(path, times: 10)
    }

    @Test(arguments: FileKind.allCases) func `processes that create one file at once open the same`(_ kind: FileKind) async throws
    {
        for _ in 0..<3 {
            let folder = try TemporaryFolder()
            let path = folder.url.appendingPathComponent("store").path
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        await #expect(processExitsWith: .success) { [name = kind.rawValue as String, path = path as String] in
                            try FileReplacementTests.createAndCount(name, path)
                        }
                    }
                }
            }
            #expect(try kind.open(path).snapshot().pageValues(Sample.item, 64)?[Sample.number] == .int(30))
        }
    }

    // MARK: Migrated

    /// Runs `body` in a child process. An error that ends it is written to a file for the parent, which sees only the exit status.
    static func tellingParent(_ path: String, _ body: () throws -> Void) throws {
        do { try body() } catch {
            try Data("\(error)\n".utf8).write(to: URL(fileURLWithPath: "\(path).failure-\(getpid())"))
            throw error
        }
    }

    /// Opens, saves and closes `times` times. Waits while a migration uses the file.
    static func openAndCount(_ name: String, _ path: String) throws {
        let kind = try #require(FileKind(rawValue: name))
        var saved = 0
        while saved < 25 {
            do {
                try kind.count(path, times: 1)
                saved += 1
            } catch let error as StoreError where [.inUseElsewhere, .fileReplaced, .schemaTooNew].contains(error.code) {
                usleep(1_000)
            }
        }
    }

    static func migrateOften(_ name: String, _ path: String) throws {
        let kind = try #require(FileKind(rawValue: name))
        for _ in 0..<25 {
            do {
                try kind.description(path).migration?.makeCopy().replaceOriginal()
            } catch let error as StoreError where error.code == .inUseElsewhere {
                usleep(500)
            }
        }
    }

    @Test(arguments: FileKind.allCases)
    func `S066: processes that open a file while it is migrated again and again lose no save`(_ kind: FileKind) async throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("store").path
        try kind.count(path, times: 1)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await #expect(processExitsWith: .success) { [name = kind.rawValue as String, path = path as String] in
                        try FileReplacementTests.tellingParent(path) { try FileReplacementTests.openAndCount(name, path) }
                    }
                }
            }
            group.addTask {
                await #expect(processExitsWith: .success) { [name = kind.rawValue as String, path = path as String] in
                    try FileReplacementTests.tellingParent(path) { try FileReplacementTests.migrateOften(name, path) }
                }
            }
        }
        for file in try FileManager.default.contentsOfDirectory(at: folder.url, includingPropertiesForKeys: nil)
        where file.lastPathComponent.contains(".failure-") {
            Issue.record("a process ended with: \(try String(contentsOf: file, encoding: .utf8))")
        }
        let store = try kind.open(path)
        #expect(try store.snapshot().pageValues(Sample.item, 64)?[Sample.number] == .int(51))
        #expect(try store.verify() == [])
    }

    /// Catches: a store that another process creates or opens while a copy is synced that is about to replace it. Its saves would be lost.
    @Test(arguments: FileKind.allCases, [false, true])
    func `S066: no process creates or opens a store while a backup gets its name`(_ kind: FileKind, _ isThere: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try kind.open(folder.url.appendingPathComponent("store").path)
        try Self.insert(store, 64)
        let copy = folder.url.appendingPathComponent("copy")
        if isThere { _ = try store.backup(to: copy, existing: .refuse) }
        // No process has opened the first copy, so that it has no lock file.
        let needed = [".copy.making"] + (isThere && kind == .lmdb ? ["copy-lock"] : [])
        let missing = Mutex<[[String]]>([])
        let noting: SystemFaults.Injector = { [url = folder.url] call, name in
            guard call == .rename, name.contains(url.lastPathComponent), name.contains(".copy.partial-") else { return nil }
            let names = needed.filter { !FileManager.default.fileExists(atPath: url.appendingPathComponent($0).path) }
            missing.withLock { $0.append(names) }
            return nil
        }
        try SystemFaults.withInjector(noting) { _ = try store.backup(to: copy, existing: .replace) }
        #expect(missing.withLock { $0 } == [[]])
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!left.contains { $0.hasPrefix(".") || $0 == "copy-lock" }, "\(left)")
        #expect(try kind.open(copy.path).snapshot().pageValues(Sample.item, 64) != nil)
    }

    /// Catches: a file that SQLite cannot open, and that is a store in use.
    @Test func `S066: a backup of an SQLite store does not replace an open store on LMDB`() throws {
        let folder = try TemporaryFolder()
        let other = folder.url.appendingPathComponent("other")
        let lmdb = try FileKind.lmdb.open(other.path)
        try Self.insert(lmdb, 64)
        let sqlite = try FileKind.sqlite.open(folder.url.appendingPathComponent("store").path)
        #expect(code { _ = try sqlite.backup(to: other, existing: .replace) } == .inUseElsewhere)
        try Self.insert(lmdb, 65)
    }
}
