import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Maintenance of a store while it is suspended (S167).
@Suite struct SuspendedMaintenanceTests {
    private static func container(_ bed: TestBed) async throws -> PersistentContainer {
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        for title in ["a", "b", "c"] { try await context.perform(andSave: .durable) { _ = $0.makeTrack(title) } }
        return container
    }

    /// Catches: a deletion that opens the file of a suspended store, and leaves it open.
    @Test(arguments: StoreKind.allCases)
    func `S167: deleting history waits until the container is resumed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let coordinator = container.coordinator
        let token = coordinator.currentHistoryToken
        try await container.suspend()
        // A deletion that may not wait says so.
        let refused = #expect(throws: StoreError.self) { try coordinator.deleteHistoryNow(before: token) }
        #expect(refused?.code == .suspended)
        let refusedByDate = #expect(throws: StoreError.self) { try coordinator.deleteHistoryNow(before: .distantFuture) }
        #expect(refusedByDate?.code == .suspended)
        let deleted = Flag()
        let deletion = Task {
            defer { deleted.set() }
            return try await coordinator.deleteHistory(before: token)
        }
        try await until("the deletion waits, or has ended") {
            SuspensionTests.waitingCount(container) == 1 || deleted.wait(atMost: .zero)
        }
        #expect(!deleted.wait(atMost: .zero))
        #expect(try SuspensionTests.used(bed) == [])
        await container.resume()
        #expect(try await deletion.value == 3)
        #expect(try await coordinator.history().isEmpty)
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S167: a deletion of history that waits ends when its container is closed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let token = container.coordinator.currentHistoryToken
        try await container.suspend()
        let deletion = Task { try await container.coordinator.deleteHistory(before: token) }
        try await until("the deletion waits") { SuspensionTests.waitingCount(container) == 1 }
        try await container.close()
        let error = await #expect(throws: StoreError.self) { try await deletion.value }
        #expect(error?.code == .closed)
    }

    /// Catches: a compaction that goes on waiting although its task is cancelled, until the container is resumed.
    @Test func `S167: a compaction that waits ends when its task is cancelled`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await Self.container(bed)
        try await container.suspend()
        let ended = Flag()
        let compaction = Task {
            defer { ended.set() }
            return try await container.compact()
        }
        try await until("the compaction waits") { SuspensionTests.waitingCount(container) == 1 }
        compaction.cancel()
        try await until("the compaction has ended") { ended.wait(atMost: .zero) }
        await #expect(throws: CancellationError.self) { try await compaction.value }
        #expect(SuspensionTests.waitingCount(container) == 0)
        #expect(try SuspensionTests.used(bed) == [])
        await container.resume()
        try await container.compact()
        try await container.close()
    }

    /// Catches: a compaction that waits for ever, because its task was cancelled before it waited.
    @Test func `S167: a compaction of a suspended container in a cancelled task ends at once`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await Self.container(bed)
        try await container.suspend()
        let ended = Flag()
        let compaction = Task {
            defer { ended.set() }
            withUnsafeCurrentTask { $0?.cancel() }
            return try await container.compact()
        }
        try await until("the compaction has ended") { ended.wait(atMost: .zero) }
        await #expect(throws: CancellationError.self) { try await compaction.value }
        await container.resume()
        try await container.close()
    }

    /// Catches: an import that goes on waiting although its task is cancelled, until the container is resumed.
    @Test(arguments: StoreKind.allCases)
    func `S137, S167: an import that waits ends when its task is cancelled`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        try await container.suspend()
        let ended = Flag()
        let inserting = Task {
            defer { ended.set() }
            return try await container.coordinator.insert(into: "Track", ["title"], rows: [[.string("d")]])
        }
        try await until("the import waits") { SuspensionTests.waitingCount(container) == 1 }
        inserting.cancel()
        try await until("the import has ended") { ended.wait(atMost: .zero) }
        await #expect(throws: CancellationError.self) { try await inserting.value }
        await container.resume()
        #expect(try await container.read { try $0.trackTitles() } == ["a", "b", "c"])
        try await container.coordinator.insert(into: "Track", ["title"], rows: [[.string("d")]])
        #expect(try await container.read { try $0.trackTitles() } == ["a", "b", "c", "d"])
        try await container.close()
    }

    /// Catches: a copy that fails because only other reads open the file again.
    @Test(arguments: [false, true])
    func `S167: a suspended store can be copied, and suspended again`(_ isCompact: Bool) async throws {
        let bed = try TestBed(.lmdb)
        let container = try await Self.container(bed)
        try await container.suspend()
        let copy = bed.folder.appendingPathComponent("copy")
        if isCompact { try await container.compactCopy(to: copy) } else { try await container.coordinator.backup(to: copy) }
        try await container.suspend()
        #expect(try SuspensionTests.used(bed) == [])
        await container.resume()
        try await container.close()
        let copied = try await PersistentContainer(model: Music.model, store: .lmdb(copy))
        #expect(try await copied.read { try $0.trackTitles() } == ["a", "b", "c"])
        try await copied.close()
    }

    enum End: CaseIterable { case suspending, closing }

    /// Catches: a suspension that succeeds although the file is open, because its caller was cancelled.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: a cancelled suspension does not say that it has closed a file that is still read`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let (begun, mayEnd) = (Flag(), Flag())
        let backup = Task {
            try await container.coordinator.backup(to: bed.folder.appendingPathComponent("copy")) { _ in
                begun.set()
                _ = mayEnd.wait(atMost: .seconds(600))
            }
        }
        try await until("the backup has begun") { begun.wait(atMost: .zero) }
        let suspension = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await container.suspend()
        }
        let error = await #expect(throws: StoreError.self) { try await suspension.value }
        #expect(error?.code == .inUseElsewhere)
        // The container is not suspended: its saves pass.
        try await container.coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("d") }
        mayEnd.set()
        _ = try await backup.value
        try await container.close()
    }

    /// Catches: a file that is open after the suspension, because a copy has a connection of its own.
    @Test(arguments: [StoreKind.lmdb, .sqlite], End.allCases)
    func `S167: a store is neither suspended nor closed while a backup reads it`(_ kind: StoreKind, _ end: End) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed)
        let (begun, mayEnd) = (Flag(), Flag())
        let copy = bed.folder.appendingPathComponent("copy")
        let backup = Task {
            try await container.coordinator.backup(to: copy) { _ in
                begun.set()
                _ = mayEnd.wait(atMost: .seconds(600))
            }
        }
        try await until("the backup has begun") { begun.wait(atMost: .zero) }
        let error = await #expect(throws: StoreError.self) {
            switch end {
            case .suspending: try await container.suspend()
            case .closing: try await container.close()
            }
        }
        #expect(error?.code == .inUseElsewhere && error?.message.contains("a backup") == true)
        mayEnd.set()
        #expect(try await backup.value.generation == 3)
        if end == .suspending {
            try await container.suspend()
            #expect(try SuspensionTests.used(bed) == [])
        }
        try await container.close()
        #expect(try SuspensionTests.used(bed) == [])
        let copied = try await PersistentContainer(model: Music.model, store: kind == .lmdb ? .lmdb(copy) : .sqlite(copy))
        #expect(try await copied.read { try $0.trackTitles() } == ["a", "b", "c"])
        try await copied.close()
    }
}
