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

/// Copies of stores, and deletions of their history, on a full disk. A limit on the size of files takes the place of the full disk. It
/// holds for a whole process, so each test starts a process.
@Suite struct FullDiskCopyTests {
    enum Copy: String, CaseIterable { case backup, replacement, stream, compactCopy }

    private static func limit(_ bytes: Int) throws {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(1 << 30))
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
    }

    private static func container(_ kind: StoreKind, _ file: URL) async throws -> PersistentContainer {
        try await PersistentContainer(model: Music.model, store: kind == .lmdb ? .lmdb(file) : .sqlite(file))
    }

    private static func fill(_ container: PersistentContainer) async throws {
        let worker = container.coordinator.newBackgroundContext()
        for round in 0..<20 {
            await worker.perform { context in
                for number in 0..<200 { context.makeTrack(String(repeating: "title \(number * round) ", count: 10)) }
            }
            try await worker.save()
        }
    }

    private static func copy(_ container: PersistentContainer, _ copy: Copy, to url: URL) async throws {
        switch copy {
        case .backup: try await container.coordinator.backup(to: url)
        case .replacement: try await container.coordinator.backup(to: url, existing: .replace)
        case .compactCopy: try await container.coordinator.compactCopy(to: url)
        case .stream:
            let file = open(url.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            try #require(file >= 0)
            defer { close(file) }
            try await container.coordinator.backup(to: file)
        }
    }

    static func check(_ kind: StoreKind, _ way: Copy, _ folder: URL) async throws {
        let container = try await container(kind, folder.appendingPathComponent("store"))
        try await fill(container)
        try await container.close()
        let again = try await self.container(kind, folder.appendingPathComponent("store"))
        let target = folder.appendingPathComponent("target")
        let old = Data("not replaced".utf8)
        if way == .replacement { try old.write(to: target) }
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        try limit(1 << 17)
        let error = await #expect(throws: StoreError.self) { try await copy(again, way, to: target) }
        try #require(error?.code == .full, "\(String(describing: error))")
        try #require(error?.message.contains("Make room") == true, "\(String(describing: error))")
        if way == .replacement { try #require(try Data(contentsOf: target) == old) }
        if way != .stream {
            try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == before)
        }
        try #require(try again.coordinator.store.verify() == [])
        try limit(1 << 28)
        try await fill(again)
        try await copy(again, way, to: target)
        try await again.close()
        let copied = try await self.container(kind, target)
        try #require(try await copied.read { try $0.trackTitles().count } == 8000)
        try await copied.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite], Copy.allCases)
    func `a copy that meets a full disk leaves nothing, and the store as it was`(_ kind: StoreKind, _ way: Copy) async throws {
        if kind == .sqlite, way == .compactCopy { return }
        let bed = try TestBed(kind)
        await #expect(processExitsWith: .success) {
            [
                kind = kind.rawValue as String, way = way.rawValue as String, folder = bed.folder as URL
            ] in
            guard let kind = StoreKind(rawValue: kind), let way = Copy(rawValue: way) else { exit(2) }
            try await FullDiskCopyTests.check(kind, way, folder)
        }
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `a copy to a descriptor says that its disk is full`(_ kind: StoreKind) async throws {
        let full = open("/dev/full", O_WRONLY)
        // Only Linux has such a device.
        guard full >= 0 else { return }
        defer { close(full) }
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Self.fill(container)
        let error = await #expect(throws: StoreError.self) { try await container.coordinator.backup(to: full) }
        #expect(error?.code == .full && error?.message.contains("Make room") == true, "\(String(describing: error))")
        try await container.close()
    }

    static func checkDeletion(_ kind: StoreKind, _ file: URL) async throws {
        let container = try await container(kind, file)
        try await fill(container)
        let coordinator = container.coordinator
        let token = coordinator.currentHistoryToken
        let count = try await coordinator.history().count
        // Smaller than every file, so that no file can be extended.
        try limit(1)
        let deleted: Int?
        do { deleted = try await coordinator.deleteHistory(before: token) } catch let error as StoreError {
            try #require(error.code == .full && error.message.contains("Make room"), "\(error)")
            deleted = nil
        }
        try #require(try await coordinator.history().count == count - (deleted ?? 0))
        try limit(1 << 28)
        try #require(try coordinator.store.verify() == [])
        if deleted == nil { try #require(try await coordinator.deleteHistory(before: token) == count) }
        try #require(try await coordinator.history().isEmpty)
        try await fill(container)
        try await container.close()
        let again = try await self.container(kind, file)
        try #require(try again.coordinator.store.verify() == [])
        try #require(try await again.read { try $0.trackTitles().count } == 8000)
        try await again.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S160: a deletion of history that meets a full disk deletes nothing or all`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        await #expect(processExitsWith: .success) { [kind = kind.rawValue as String, file = bed.file as URL] in
            guard let kind = StoreKind(rawValue: kind) else { exit(2) }
            try await FullDiskCopyTests.checkDeletion(kind, file)
        }
    }
}
