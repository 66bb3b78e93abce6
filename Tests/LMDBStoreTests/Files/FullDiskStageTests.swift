import Foundation
import LMDB
import StoreInterface
import StoreModel
import Synchronization
import Testing

@testable import LMDBStore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Full disks during other writes than saves: an error that says so, no loss of data, and the operation continues when there is
/// room.
///
/// First each call that takes room fails in its turn, then the system limits the size of files.
@Suite struct FullDiskStageTests {
    private static let tracks = 64 * 70

    // MARK: Every call in its turn

    @Test func aCompactionThatMeetsAFullDiskAtAnyCallGoesOnLater() throws {
        try Self.everyCall(least: 4) { scratch, disk in
            let store = try scratch.store()
            try disk.run { try Self.compact(store) }
            try Self.checkTracks(store)
            try Self.compact(store)
            try Self.checkTracks(store)
        }
    }

    @Test func aCompactCopyThatMeetsAFullDiskAtAnyCallLeavesNothingOfItself() throws {
        try Self.everyCall(least: 100) { scratch, disk in
            let store = try scratch.store()
            let target = scratch.folder.appendingPathComponent("small")
            let isMade = try disk.run { try CompactCopy(store, target: target, cancellation: Cancellation()).run() }
            try Self.checkCopy(target, isMade)
            try Self.checkTracks(store)
        }
    }

    @Test func aBackupThatMeetsAFullDiskAtAnyCallLeavesNothingOfItself() throws {
        try Self.everyCall(least: 2) { scratch, disk in
            let store = try scratch.store()
            let target = scratch.folder.appendingPathComponent("small")
            let isMade = try disk.run { _ = try store.backup(to: target, existing: .refuse) }
            try Self.checkCopy(target, isMade)
            try Self.checkTracks(store)
        }
    }

    @Test func S163_anIndexBuildThatMeetsAFullDiskAtAnyCallGoesOnLater() throws {
        try Self.everyCall(least: 1_000) { scratch, disk in
            do {
                let store = try LMDBStore.open(scratch.url, schema: Self.changed)
                try disk.run { while try store.continueMigration() != nil {} }
                try Self.checkTracks(store)
                try store.save { layer, _ in
                    for key in try store.newestSnapshot().keys(StoreQuery(entity: 1, limit: 64)) {
                        layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 0), entity: 1, key: key)
                    }
                }
            }
            try Self.finishBuild(scratch.url, tracks: Self.tracks - 64)
        }
    }

    @Test func S163_anOpenWithAChangedModelThatMeetsAFullDiskAtAnyCallLeavesTheOldOne() throws {
        try Self.everyCall(least: 6) { scratch, disk in
            let isOpened = try disk.run { _ = try LMDBStore.open(scratch.url, schema: Self.changed) }
            if !isOpened {
                let store = try scratch.store()
                try Self.checkTracks(store)
                try store.save { layer, _ in layer.put(Self.deletion(layer), entity: 1, key: 64) }
                try store.insertTracks(1)
            }
            try Self.finishBuild(scratch.url, tracks: Self.tracks)
        }
    }

    @Test func S164_aStagedMigrationThatMeetsAFullDiskAtAnyCallLeavesTheOldFileOrTheNewOne() throws {
        try Self.everyCall(least: 4) { scratch, disk in
            let file = MigratableLMDBFile(scratch.url, LMDBStore.Options())
            let isReplaced = try disk.run {
                let copy = try file.makeCopy()
                do {
                    _ = try copy.store.open(Self.changed)
                    try copy.replaceOriginal()
                } catch {
                    copy.discard()
                    throw error
                }
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
            #expect(!left.contains { $0.contains(".partial-") })
            let stored = try #require(try file.storedSchema())
            #expect(stored.entities.count == (isReplaced ? 3 : 2) || disk.lastCall == .commit, "\(disk)")
            try Self.finishBuild(scratch.url, tracks: Self.tracks)
        }
    }

    // MARK: The system's limit

    enum Stage: String, CaseIterable { case compaction, compactCopy, backup, indexBuild }

    /// Runs in a process of its own, whose files may not grow beyond a limit. First the store is filled up to it.
    @Test(arguments: Stage.allCases) func aStageOnAFullDiskIsRefusedLeavesDeletesPossibleAndGoesOnWithRoom(
        _ stage: Stage
    ) async throws {
        let scratch = try Scratch()
        await #expect(processExitsWith: .success) { [path = scratch.url.path as String, stage = stage.rawValue as String] in
            signal(SIGXFSZ, SIG_IGN)
            let url = URL(fileURLWithPath: path)
            let stage = try #require(FullDiskStageTests.Stage(rawValue: stage))
            try FullDiskStageTests.limit(3 << 20)
            let keys = try DiskFullTests.fillUntilFull(try LMDBStore.open(url, schema: Samples.schema))
            var schema = Samples.schema
            if stage == .indexBuild {
                // Enough indexes to need more room than the saves have left free.
                let pairs: [[ColumnIndex]] = [[0, 1], [0, 2], [0, 3], [0, 5], [1, 2], [2, 3]]
                schema.entities[1].indexes = pairs.map { .init(columns: $0) }
            }
            // Putting an index into force takes a page. Building it takes many.
            try FullDiskStageTests.limit(64 << 20)
            let store = try LMDBStore.open(url, schema: schema)
            try FullDiskStageTests.limit(3 << 20)
            if stage != .indexBuild { try FullDiskStageTests.limit(1 << 18) }
            var error: StoreError?
            do { try FullDiskStageTests.run(stage, store) } catch let refusal as StoreError { error = refusal }
            try #require(error?.code == .full, "\(String(describing: error))")
            try #require(error?.message.contains("room") == true, "\(String(describing: error))")
            try FullDiskStageTests.limit(3 << 20)
            try #require(try store.snapshot().count(StoreQuery(entity: Samples.track)) == keys.count)
            try #require(try store.verify() == [])
            // Deletes succeed. Then the operation continues, with the room that they made or with more.
            try DiskFullTests.delete(Array(keys.prefix(keys.count / 2)), in: store)
            try FullDiskStageTests.limit(64 << 20)
            try FullDiskStageTests.run(stage, store)
            try #require(try store.snapshot().count(StoreQuery(entity: Samples.track)) == keys.count - keys.count / 2)
            try #require(try store.verify() == [])
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path).sorted()
        let made = [.backup, .compactCopy].contains(stage) ? ["copy"] : []
        #expect(names.filter { !$0.hasPrefix("store") && !$0.hasSuffix("-lock") && !$0.hasSuffix("-signal") } == made)
    }

    private static func run(_ stage: Stage, _ store: LMDBStore) throws {
        let target = store.url.deletingLastPathComponent().appendingPathComponent("copy")
        switch stage {
        case .compaction: try compact(store)
        case .compactCopy: try CompactCopy(store, target: target, cancellation: Cancellation()).run()
        case .backup: _ = try store.backup(to: target, existing: .refuse)
        case .indexBuild: while try store.continueMigration() != nil {}
        }
    }

    private static func limit(_ bytes: Int) throws {
        var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(64 << 20))
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
    }
}

// MARK: What is done, and what must be there

extension FullDiskStageTests {
    /// One more index, one column less, and one more entity.
    fileprivate static var changed: StoreSchema {
        var schema = Samples.schema
        schema.migration.allowedLoss = .everything
        schema.entities[1].columns[1].index = .indexed
        schema.entities[1].columns.remove(at: 3)
        schema.entities.append(EntitySchema(name: "Album", columns: [ColumnSchema(name: "title", type: .string)]))
        return schema
    }

    fileprivate static func deletion(_ layer: Layer) -> Row { Row.make(kind: .delete, layer: layer.id, columnCount: 0) }

    fileprivate static func compact(_ store: LMDBStore) throws {
        var compaction = Compaction(store, options: CompactionOptions(age: .any, effort: .fast), cancellation: Cancellation()) {
            _ in
        }
        _ = try compaction.run()
    }

    fileprivate static func checkTracks(_ store: LMDBStore) throws {
        #expect(try store.snapshot().count(StoreQuery(entity: 1)) == tracks)
        let findings = try store.verify()
        #expect(findings == [])
    }

    fileprivate static func checkCopy(_ target: URL, _ isMade: Bool) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: target.deletingLastPathComponent().path)
        let copies = names.filter { $0.contains("small") && !$0.hasSuffix("-lock") }
        #expect(copies == (isMade ? ["small"] : []))
        if isMade { try checkTracks(try LMDBStore.open(target, schema: Samples.schema)) }
    }

    fileprivate static func finishBuild(_ url: URL, tracks: Int) throws {
        let store = try LMDBStore.open(url, schema: changed)
        while try store.continueMigration() != nil {}
        let snapshot = try store.newestSnapshot()
        let query = StoreQuery(entity: 1, predicate: .compare(1, .equal, to: .string("none")))
        #expect(try snapshot.explain(query).contains("index on title"))
        #expect(try snapshot.count(StoreQuery(entity: 1)) == tracks)
        let findings = try store.verify()
        #expect(findings == [])
    }

    /// Runs `attempt` on a file of its own with `tracks` tracks. The disk is full at the first call, at a later one, and so on,
    /// until no call fails.
    fileprivate static func everyCall(least: Int, _ attempt: (Scratch, FullDisk) throws -> Void) throws {
        let template = try Scratch()
        do { try template.store().insertTracks(tracks) }
        var place = 0
        while place < 100_000 {
            let scratch = try Scratch()
            try FileManager.default.copyItem(at: template.url, to: scratch.url)
            let disk = FullDisk(at: place, in: scratch.folder)
            try attempt(scratch, disk)
            if disk.lastCall == nil { break }
            place += 1 + place / 2
        }
        #expect(place >= least, "only \(place) calls were looked at")
    }
}

/// Fails one of the calls that take room on the disk.
private final class FullDisk: Sendable, CustomStringConvertible {
    private static let calls: Set<LMDBCall> = [
        .environmentOpen, .openDatabase, .put, .cursorPut, .delete, .cursorDelete, .drop, .reserve, .commit, .copy,
        .copyToDescriptor,
    ]
    private let state: Mutex<(left: Int, met: LMDBCall?)>
    private let place: Int
    private let folder: URL

    /// - Parameter folder: The folder of the files that meet the full disk.
    init(at place: Int, in folder: URL) {
        (self.place, self.folder) = (place, folder)
        state = Mutex((place, nil))
    }

    /// The call that failed.
    var lastCall: LMDBCall? { state.withLock { $0.met } }
    var description: String { "call \(place), \(String(describing: lastCall))" }

    /// - Returns: Whether `body` succeeded.
    @discardableResult
    func run(_ body: () throws -> Void) throws -> Bool {
        do {
            try LMDBFaults.withInjector(at: folder.path, { self.answer($0) }) { try body() }
            return true
        } catch let error as StoreError {
            #expect(error.code == .full, "\(self): \(error)")
            #expect(lastCall != nil)
            return false
        }
    }

    private func answer(_ call: LMDBCall) -> Int32? {
        state.withLock { state in
            guard Self.calls.contains(call) else { return nil }
            defer { state.left -= 1 }
            guard state.left == 0 else { return nil }
            state.met = call
            return ENOSPC
        }
    }
}
