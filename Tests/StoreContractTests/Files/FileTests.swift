import Foundation
import LMDBStore
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

/// The stores that have a file. The raw value names the kind to a child process.
enum FileKind: String, CaseIterable, Sendable {
    case lmdb, sqlite

    /// Opens a file directly, without the snapshots of a container.
    func open(_ path: String) throws -> any ObjectStore {
        let url = URL(fileURLWithPath: path)
        return switch self {
        case .lmdb: try LMDBStore.open(url, schema: Sample.schema)
        case .sqlite: try SQLiteStore(url: url, schema: Sample.schema)
        }
    }

    func description(_ path: String) -> StoreDescription {
        let url = URL(fileURLWithPath: path)
        return self == .lmdb ? .lmdb(url) : .sqlite(url)
    }

    /// The suffixes of the files beside the store's own.
    var besides: [String] { self == .lmdb ? ["-lock", "-signal"] : ["-signal", "-wal", "-shm", "-journal"] }

    /// Reads an owner's number, adds one and saves, `times` times. A lost update shows in the final number.
    func count(_ path: String, times: Int) throws {
        let store = try open(path)
        for _ in 0..<times {
            try store.write(.durable) { transaction in
                let before = try store.snapshot().pageValues(Sample.item, 64)?[Sample.number]
                let layer = Layer(schema: store.schema)
                if case .int(let number)? = before {
                    layer.updateItem(64, [Sample.number: .int(number + 1)])
                } else {
                    layer.insertItem(64, number: 1)
                }
                layer.stamp(transaction.generation.next)
                layer.seal()
                try transaction.apply(layer, changes: layer.changeSet(metadata: SaveMetadata(author: "")))
            }
        }
    }
}

/// A store is one file with one name, created in one step. Its locks and logs are named after it.
@Suite struct FileTests {
    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        do {
            try body()
            return nil
        } catch let error as StoreError {
            #expect(!error.message.contains("\n"))
            return error.code
        } catch {
            Issue.record(error)
            return nil
        }
    }

    private func path(_ folder: TemporaryFolder, _ name: String = "store") -> String {
        folder.url.appendingPathComponent(name).path
    }

    private func mode(_ path: String) -> Int {
        var status = stat()
        return lstat(path, &status) == 0 ? Int(status.st_mode & 0o777) : -1
    }

    private func insert(_ store: any ObjectStore, _ key: ObjectKey) throws {
        try ContractStore.save(store, durability: .durable) { $0.insertItem(key, name: "item \(key)") }
    }

    // MARK: Names

    @Test(arguments: FileKind.allCases)
    func `S067: two processes that open a file by its name and by a link lose no save`(_ kind: FileKind) async throws {
        let folder = try TemporaryFolder()
        let direct = path(folder)
        let link = path(folder, "elsewhere/link")
        try FileManager.default.createDirectory(atPath: path(folder, "elsewhere"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "../store")
        async let first: Void = Self.counting(kind, direct)
        async let second: Void = Self.counting(kind, link)
        _ = await (first, second)
        let store = try kind.open(path(folder))
        #expect(try store.snapshot().pageValues(Sample.item, 64)?[Sample.number] == .int(80))
        #expect(try store.snapshot().generation == 80)
        #expect(try store.verify() == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: path(folder, "elsewhere")) == ["link"])
    }

    private static func counting(_ kind: FileKind, _ path: String) async {
        await #expect(processExitsWith: .success) { [name = kind.rawValue as String, path = path as String] in
            try #require(FileKind(rawValue: name)).count(path, times: 40)
        }
    }

    @Test(arguments: FileKind.allCases) func `S210: a link to a file that is not there yet makes the file`(_ kind: FileKind)
        throws
    {
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(atPath: path(folder, "link"), withDestinationPath: path(folder, "target"))
        try insert(try kind.open(path(folder, "link")), 64)
        #expect(mode(path(folder, "target")) > 0)
        #expect(try kind.open(path(folder, "target")).snapshot().generation == 1)
    }

    /// Catches: a new store beside the one that a link leads to, because bytes that are no text were replaced by others.
    @Test(arguments: FileKind.allCases, ["file", "missing file", "folder"])
    func `a link to a name that is not UTF-8 is an error, and makes no file`(_ kind: FileKind, _ target: String) throws {
        let folder = try TemporaryFolder()
        let name = Array(path(folder, "name").utf8.map { CChar(bitPattern: $0) }) + [CChar(bitPattern: 0xFF), 0]
        switch target {
        case "file":
            try insert(try kind.open(path(folder, "made")), 64)
            try #require(rename(path(folder, "made"), name) == 0)
        // Some file systems have no such names.
        case "folder": guard mkdir(name, 0o700) == 0 else { return }
        default: break
        }
        try #require(symlink(name, path(folder, "link")) == 0)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count
        let opened = path(folder, target == "folder" ? "link/store" : "link")
        let error = #expect(throws: StoreError.self) { _ = try kind.open(opened) }
        #expect(error?.code == .cannotOpen && error?.message.contains("not UTF-8") == true, "\(String(describing: error))")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == before)
    }

    @Test(arguments: FileKind.allCases) func `S210: links in a circle and missing folders are errors`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(atPath: path(folder, "a"), withDestinationPath: path(folder, "b"))
        try FileManager.default.createSymbolicLink(atPath: path(folder, "b"), withDestinationPath: path(folder, "a"))
        #expect(code { _ = try kind.open(path(folder, "a")) } == .cannotOpen)
        #expect(code { _ = try kind.open(path(folder, "missing/store")) } == .cannotOpen)
        #expect(code { _ = try kind.open(path(folder, "a/store")) } == .cannotOpen)
        #expect(code { _ = try kind.open(folder.url.path) } == .cannotOpen)
    }

    /// Catches: a store that can be opened and not copied, because the temporary name of the copy is too long, and a wrong remedy.
    @Test(arguments: FileKind.allCases) func `a store with a long name is copied, and too long a name is named as the reason`(
        _ kind: FileKind
    ) throws {
        let folder = try TemporaryFolder()
        // Three bytes each.
        let (long, tooLong) = (String(repeating: "名", count: 79), String(repeating: "名", count: 84))
        let store = try kind.open(path(folder, long))
        try insert(store, 64)
        let copy = "ab" + long
        _ = try store.backup(to: URL(fileURLWithPath: path(folder, copy)), existing: .refuse, cancellation: Cancellation())
        #expect(try kind.open(path(folder, copy)).snapshot().pageValues(Sample.item, 64) != nil)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(!names.contains { $0.contains(".partial-") })
        let error = #expect(throws: StoreError.self) { _ = try kind.open(path(folder, tooLong)) }
        #expect(error?.code == .cannotOpen)
        #expect(error?.message.contains("fewer than 240 bytes") == true, "\(String(describing: error))")
    }

    /// Catches: a second store that is taken for the first one, because an accent may be one character or two.
    @Test(arguments: FileKind.allCases) func `two files whose names look alike are two stores`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        let (composed, decomposed) = (path(folder, "caf\u{E9}"), path(folder, "cafe\u{301}"))
        let store = try kind.open(composed)
        try insert(store, 64)
        // Some file systems know only one of the two names.
        guard mode(decomposed) < 0 else { return }
        _ = try store.backup(to: URL(fileURLWithPath: decomposed), existing: .refuse, cancellation: Cancellation())
        let copy = try kind.open(decomposed)
        try insert(copy, 65)
        let (copied, original) = (try copy.snapshot(), try store.snapshot())
        #expect(try copied.pageValues(Sample.item, 64) != nil && copied.pageValues(Sample.item, 65) != nil)
        #expect(try original.pageValues(Sample.item, 64) != nil && original.pageValues(Sample.item, 65) == nil)
    }

    @Test(arguments: FileKind.allCases) func `names with spaces, percent signs and accents work`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        for name in ["my store", "100%41.db", "ünï 🗄", ".hidden", "a?b#c"] {
            try insert(try kind.open(path(folder, name)), 64)
            #expect(try kind.open(path(folder, name)).snapshot().generation == 1)
            #expect(mode(path(folder, name)) == 0o644)
        }
    }

    @Test(arguments: FileKind.allCases) func `S210: a file with two hard links is refused under both`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        try insert(try kind.open(path(folder)), 64)
        try FileManager.default.linkItem(atPath: path(folder), toPath: path(folder, "other"))
        for name in ["store", "other"] { #expect(code { _ = try kind.open(path(folder, name)) } == .cannotOpen) }
        try FileManager.default.removeItem(atPath: path(folder, "other"))
        #expect(try kind.open(path(folder)).snapshot().generation == 1)
    }

    @Test(arguments: FileKind.allCases) func `S211: a planted link beside a store is refused and not followed`(_ kind: FileKind)
        throws
    {
        for suffix in kind.besides {
            let folder = try TemporaryFolder()
            try insert(try kind.open(path(folder)), 64)
            try? FileManager.default.removeItem(atPath: path(folder) + suffix)
            let victim = path(folder, "victim")
            try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
            try FileManager.default.createSymbolicLink(atPath: path(folder) + suffix, withDestinationPath: victim)
            #expect(code { _ = try kind.open(path(folder)) } == .cannotOpen, "\(suffix)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data("precious".utf8))
        }
    }

    @Test(arguments: FileKind.allCases)
    func `S211: a link that is planted under a store's temporary names is not followed`(_ kind: FileKind) throws {
        for name in [".store.new", ".store.making"] {
            let folder = try TemporaryFolder()
            let victim = path(folder, "victim")
            try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
            try FileManager.default.createSymbolicLink(atPath: path(folder, name), withDestinationPath: victim)
            _ = try? kind.open(path(folder))
            #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data("precious".utf8))
        }
    }

    @Test(arguments: FileKind.allCases) func `S211: a signal that becomes a link is not written through`(_ kind: FileKind) throws
    {
        let folder = try TemporaryFolder()
        let store = try kind.open(path(folder))
        let victim = path(folder, "victim")
        try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
        try FileManager.default.createSymbolicLink(atPath: path(folder) + "-signal", withDestinationPath: victim)
        try insert(store, 64)
        #expect(try Data(contentsOf: URL(fileURLWithPath: victim)) == Data("precious".utf8))
        #expect(code { _ = try store.watch {} } == .cannotOpen)
    }

    /// Catches: a device, which has no bytes, that is taken for an empty file and replaced.
    @Test(arguments: FileKind.allCases) func `a store is not created in place of a pipe`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        try #require(mkfifo(path(folder), 0o600) == 0)
        #expect(code { _ = try kind.open(path(folder)) } == .cannotOpen)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["store"])
        #expect(try FileManager.default.attributesOfItem(atPath: path(folder))[.type] as? FileAttributeType != .typeRegular)
    }

    // MARK: Modes

    @Test(arguments: FileKind.allCases)
    func `S211: copies of a private file, and what lies beside them, are private`(_ kind: FileKind) async throws {
        let folder = try TemporaryFolder()
        _ = FileManager.default.createFile(atPath: path(folder), contents: nil)
        chmod(path(folder), 0o600)
        let store = try kind.open(path(folder))
        let watch = try store.watch {}
        try insert(store, 64)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) {
            #expect(mode(path(folder, name)) == 0o600, "\(name)")
        }
        let backup = folder.url.appendingPathComponent("backup")
        _ = try store.backup(to: backup, existing: .refuse)
        _ = try store.backup(to: backup, existing: .replace)
        #expect(mode(backup.path) == 0o600)
        if store.capabilities.contains(.compaction) {
            try await store.compactCopy(to: folder.url.appendingPathComponent("compact"))
            #expect(mode(path(folder, "compact")) == 0o600)
        }
        withExtendedLifetime(watch) {}
    }

    /// Catches: a compact copy that has the mode of the file which has the store's name now, or fails because no file has it.
    @Test func `S211: a compact copy is one of the open file, although another file or none has its name`() async throws {
        let folder = try TemporaryFolder()
        let store = try FileKind.lmdb.open(path(folder))
        try insert(store, 64)
        chmod(path(folder), 0o600)
        try FileManager.default.moveItem(atPath: path(folder), toPath: path(folder, "moved"))
        for name in ["store", "store-lock", "store-signal"] {
            let target = folder.url.appendingPathComponent(name)
            let error = await #expect(throws: StoreError.self) { try await store.compactCopy(to: target) }
            #expect(error?.code == .cannotOpen, "\(name): \(String(describing: error))")
        }
        #expect(mode(path(folder)) == -1)
        for isForeign in [false, true] {
            if isForeign {
                try Data(count: 100).write(to: URL(fileURLWithPath: path(folder)))
                chmod(path(folder), 0o644)
            }
            let (backup, compact) = (path(folder, "backup \(isForeign)"), path(folder, "compact \(isForeign)"))
            _ = try store.backup(to: URL(fileURLWithPath: backup), existing: .refuse)
            try await store.compactCopy(to: URL(fileURLWithPath: compact))
            for copy in [backup, compact] {
                #expect(mode(copy) == 0o600, "\(copy)")
                #expect(try FileKind.lmdb.open(copy).snapshot().pageValues(Sample.item, 64) != nil, "\(copy)")
            }
        }
    }

    @Test(arguments: FileKind.allCases) func `S211: a migrated file keeps its mode`(_ kind: FileKind) throws {
        let folder = try TemporaryFolder()
        try insert(try kind.open(path(folder)), 64)
        chmod(path(folder), 0o640)
        let copy = try #require(try kind.description(path(folder)).migration?.makeCopy())
        try copy.replaceOriginal()
        #expect(mode(path(folder)) == 0o640)
        #expect(try kind.open(path(folder)).snapshot().generation == 1)
    }

    @Test(arguments: FileKind.allCases) func `a backup refuses a link of its name and replaces what it leads to`(_ kind: FileKind)
        throws
    {
        let folder = try TemporaryFolder()
        let store = try kind.open(path(folder))
        try insert(store, 64)
        let target = path(folder, "target")
        let link = folder.url.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: target)
        #expect(code { _ = try store.backup(to: link, existing: .refuse) } == .cannotOpen)
        #expect(mode(target) == -1)
        _ = try store.backup(to: link, existing: .replace)
        #expect(try kind.open(target).snapshot().generation == 1)
        #expect(code { _ = try store.backup(to: URL(fileURLWithPath: path(folder)), existing: .replace) } == .cannotOpen)
    }
}
