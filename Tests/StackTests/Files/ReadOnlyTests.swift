import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Stores that are opened read-only (S166).
@Suite struct ReadOnlyTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]
    static let count = 200

    static func model(_ extra: Bool = false, version: SchemaVersion = SchemaVersion(1, 0, 0)) throws -> Model {
        let attributes =
            [AttributeDescription(name: "number", type: .int32, index: .indexed)]
            + (extra ? [AttributeDescription(name: "extra", type: .bool)] : [])
        return try Model([EntityDescription(name: "Thing", properties: attributes.map { .attribute($0) })], version: version)
    }

    static func description(_ file: URL, _ kind: String, readOnly: Bool) -> StoreDescription {
        kind == "lmdb" ? .lmdb(file, readOnly: readOnly) : .sqlite(file, readOnly: readOnly)
    }

    static func open(
        _ file: URL, _ kind: String, readOnly: Bool = true, stack: ContextStack = .siblings, extra: Bool = false,
        version: SchemaVersion = SchemaVersion(1, 0, 0)
    ) async throws -> PersistentContainer {
        try await PersistentContainer(
            model: try model(extra, version: version), store: description(file, kind, readOnly: readOnly), stack: stack)
    }

    static func fill(_ bed: TestBed) async throws {
        let container = try await open(bed.file, bed.kind.rawValue, readOnly: false)
        try await container.coordinator.insert(into: "Thing", ["number"], rows: (0..<count).map { [.int(Int64($0))] })
        try await container.coordinator.finishMigration()
        // SQLite removes the log with the last connection. If connections close at the same time, none is the last one, and the log
        // stays.
        try await container.close()
        try #require(!FileManager.default.fileExists(atPath: bed.file.path + "-wal"))
    }

    static func refusal(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> StoreError {
        do { try await body() } catch let error as StoreError { return error } catch { Issue.record("\(error)") }
        return StoreError(.internalInconsistency, "not refused")
    }

    static func count(_ container: PersistentContainer) async throws -> Int {
        try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Thing")) }
    }

    /// The bytes of a file and when it was last written.
    struct Look: Equatable {
        var bytes: Data
        var seconds: Int
        var nanoseconds: Int

        init(_ file: URL) throws {
            bytes = try Data(contentsOf: file)
            var status = stat()
            try #require(stat(file.path, &status) == 0)
            #if canImport(Darwin)
                (seconds, nanoseconds) = (Int(status.st_mtimespec.tv_sec), Int(status.st_mtimespec.tv_nsec))
            #else
                (seconds, nanoseconds) = (Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec))
            #endif
        }
    }

    /// Reads in every way, and checks that every kind of write is refused.
    static func use(_ container: PersistentContainer) async throws {
        try await read(container)
        try await checkRefusals(container)
        let findings = try container.coordinator.store.verify()
        try #require(findings == [])
        try await container.flush()
    }

    private static func read(_ container: PersistentContainer) async throws {
        let coordinator = container.coordinator
        let found = try await container.newBackgroundContext().perform { context in
            let fives = try context.count(EntityFetchRequest("Thing", matching: .equal("number", .int(5))))
            return try (context.fetch(EntityFetchRequest("Thing")).compactMap { $0["number"] }.count, fives)
        }
        try #require(found == (count, 1))
        let kept = try coordinator.snapshot()
        let all = try await coordinator.newBackgroundContext(reading: kept).perform { try $0.count(EntityFetchRequest("Thing")) }
        try #require(all == count)
        let history = try await coordinator.history()
        try #require(!history.isEmpty)
        try await coordinator.refresh()
        try await coordinator.finishMigration()
    }

    private static func checkRefusals(_ container: PersistentContainer) async throws {
        let coordinator = container.coordinator
        let worker = container.newBatchOperationContext()
        await worker.perform { $0.insert("Thing")["number"] = .int(-1) }
        for durability in [Durability.durable, .deferred] {
            let error = await refusal { try await worker.save(durability) }
            try #require(error.code == .readOnly, "\(error)")
            try #require(error.message.contains("it was opened read-only. Open it without readOnly"), "\(error)")
        }
        // The context keeps its changes and can still read.
        let kept = try await worker.perform { context in (context.hasChanges, try context.count(EntityFetchRequest("Thing"))) }
        try #require(kept == (true, count + 1))
        let request = EntityFetchRequest("Thing")
        let token = coordinator.currentHistoryToken
        let errors = [
            await refusal { try await coordinator.insert(into: "Thing", ["number"], rows: [[.int(1)]]) },
            await refusal { try await coordinator.batchUpdate(request, set: ["number": .int(0)]) },
            await refusal { try await coordinator.batchDelete(request) },
            await refusal { try await coordinator.compact() },
            await refusal { try await coordinator.deleteHistory(before: token) },
        ]
        for error in errors { try #require(error.code == .readOnly, "\(error)") }
        let preview = await worker.previewSave()
        try #require((preview.failure as? StoreError)?.code == .readOnly)
    }

    @Test(arguments: kinds, [ContextStack.siblings, .split, .masterMainWorker])
    func `S166: a store that is opened read-only is read, and refuses writes`(_ kind: StoreKind, _ stack: ContextStack)
        async throws
    {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let before = try Look(bed.file)
        do {
            let container = try await Self.open(bed.file, kind.rawValue, stack: stack)
            if stack == .masterMainWorker {
                #expect(try await Self.count(container) == Self.count)
            } else {
                try await Self.use(container)
            }
            let copy = bed.folder.appendingPathComponent("copy")
            try await container.coordinator.backup(to: copy)
            #expect(try await Self.count(try await Self.open(copy, kind.rawValue)) == Self.count)
        }
        #expect(try Look(bed.file) == before)
        try await bed.closed()
        let container = try await Self.open(bed.file, kind.rawValue, readOnly: false)
        try await container.coordinator.insert(into: "Thing", ["number"], rows: [[.int(1)]])
    }

    @Test(arguments: kinds) @MainActor
    func `S166: changes of main and of a child stay when a read-only store refuses them`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let container = try await Self.open(bed.file, kind.rawValue)
        let main = container.mainContext
        main.insert("Thing")["number"] = .int(-1)
        let error = await Self.refusal { try await main.save() }
        #expect(error.code == .readOnly)
        let child = main.newBackgroundChild()
        try await child.perform { context in
            let found = try context.fetch(EntityFetchRequest("Thing", matching: .equal("number", .int(-1))))
            found.first?["number"] = .int(-2)
        }
        try await child.save()
        #expect(try main.count(EntityFetchRequest("Thing", matching: .equal("number", .int(-2)))) == 1)
        #expect(main.hasChanges)
        main.rollback()
        #expect(try main.count(EntityFetchRequest("Thing")) == Self.count)
    }

    @Test(arguments: kinds) func `S166: a read-only opening neither makes a file nor migrates one`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let missing = await Self.refusal { _ = try await Self.open(bed.file, kind.rawValue) }
        #expect(missing.code == .cannotOpen && missing.message.contains("there is no file"), "\(missing)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: bed.folder.path) == [])
        try Data().write(to: bed.file)
        let empty = await Self.refusal { _ = try await Self.open(bed.file, kind.rawValue) }
        #expect(empty.code == .cannotOpen && empty.message.contains("it is empty"), "\(empty)")
        try FileManager.default.removeItem(at: bed.file)
        try await Self.fill(bed)
        let before = try Look(bed.file)
        let changed = await Self.refusal { _ = try await Self.open(bed.file, kind.rawValue, extra: true) }
        #expect(changed.code == .readOnly && changed.message.contains("migrated"), "\(changed)")
        // A different version alone does not change objects.
        let container = try await Self.open(bed.file, kind.rawValue, version: SchemaVersion(2, 0, 0))
        #expect(try await Self.count(container) == Self.count)
        #expect(try Look(bed.file) == before)
    }

    @Test(arguments: kinds) func `S166: a damaged file is refused read-only, and stays as it is`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let whole = try Data(contentsOf: bed.file)
        for length in [1, 100, 4096, 5000, 8192, 12_288, whole.count / 2 / 4096 * 4096] {
            try whole.prefix(length).write(to: bed.file)
            let before = try Look(bed.file)
            let outcome = await Self.refusal { try await Self.use(try await Self.open(bed.file, kind.rawValue)) }
            #expect([.damaged, .notAStore, .cannotOpen].contains(outcome.code), "\(length): \(outcome)")
            #expect(try Look(bed.file) == before)
        }
    }

    @Test(arguments: kinds) func `S166: one process opens a file in one way, or each opening in its own`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        for isReadOnly in [true, false] {
            let first = try await Self.open(bed.file, kind.rawValue, readOnly: isReadOnly)
            if kind == .lmdb {
                let error = await Self.refusal { _ = try await Self.open(bed.file, "lmdb", readOnly: !isReadOnly) }
                #expect(error.code == .inUseElsewhere, "\(error)")
            } else {
                let second = try await Self.open(bed.file, "sqlite", readOnly: !isReadOnly)
                let (reader, writer) = isReadOnly ? (first, second) : (second, first)
                let before = try await Self.count(reader)
                try await writer.coordinator.insert(into: "Thing", ["number"], rows: [[.int(1)]])
                #expect(try await Self.count(reader) == before + 1)
                try await second.close()
            }
            // A release alone would close the file only when no running job retains the container's parts any more.
            try await first.close()
        }
    }

    @Test(arguments: kinds) func `S166: a store is read read-only through a symbolic link`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let link = bed.folder.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: bed.file)
        try await Self.use(try await Self.open(link, kind.rawValue))
        #expect(!FileManager.default.fileExists(atPath: link.path + "-lock"))
    }

    // MARK: Other processes

    @Test(arguments: kinds) @MainActor
    func `S166: a read-only store shows what another process saves`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let container = try await Self.open(bed.file, kind.rawValue)
        try container.followOtherProcesses()
        let results = try FetchedResultsController(
            EntityFetchRequest("Thing", sortBy: [AttributeSort("number")]), context: container.mainContext)
        try results.performFetch()
        #expect(try container.mainContext.count(EntityFetchRequest("Thing")) == Self.count)
        let kept = try container.coordinator.snapshot()
        await #expect(processExitsWith: .success) { [file = bed.file as URL, kind = kind.rawValue as String] in
            let writer = try await ReadOnlyTests.open(file, kind, readOnly: false)
            for _ in 0..<3 { try await writer.coordinator.insert(into: "Thing", ["number"], rows: [[.int(7)]]) }
        }
        try await until("the other process's saves are seen") {
            try container.mainContext.count(EntityFetchRequest("Thing")) == Self.count + 3
        }
        try await until("live results follow") { results.snapshot.ids.count == Self.count + 3 }
        let old = try await container.coordinator.newBackgroundContext(reading: kept).perform {
            try $0.count(EntityFetchRequest("Thing"))
        }
        #expect(old == Self.count)
    }

    @Test(arguments: kinds) func `S166: saves of a writer that was killed are read read-only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        await #expect(processExitsWith: .signal(SIGKILL)) { [file = bed.file as URL, kind = kind.rawValue as String] in
            let writer = try await ReadOnlyTests.open(file, kind, readOnly: false)
            try await writer.coordinator.insert(into: "Thing", ["number"], rows: [[.int(-5)]])
            kill(getpid(), SIGKILL)
        }
        let before = try Look(bed.file)
        let container = try await Self.open(bed.file, kind.rawValue)
        #expect(try await Self.count(container) == Self.count + 1)
        #expect(try Look(bed.file) == before)
    }
}
