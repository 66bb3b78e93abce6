import LMDB
import LMDBStore
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Calls of LMDB that fail on the writer's queues (S066).
@Suite struct LMDBFlushFailureTests {
    struct Fault: Sendable, CustomStringConvertible {
        var call: LMDBCall
        var number: Int32
        var code: StoreError.Code

        var description: String { "\(call.rawValue) \(number)" }
    }

    static let faults = [LMDBCall.begin, .put, .commit].flatMap { call in
        [Fault(call: call, number: ENOSPC, code: .full), Fault(call: call, number: EIO, code: .inputOutput)]
    }

    /// Catches: an acknowledged save that is lost, or written twice, because the disk refused it once.
    @Test(arguments: faults)
    func `S066: deferred saves that the disk refuses stay visible and are written later`(_ fault: Fault) async throws {
        let bed = try TestBed(.lmdb)
        let clock = SteppedClock()
        let store = try bed.description.open(Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator(
            model: Music.model, store: store, name: "test", clock: clock.source)
        let context = coordinator.newBackgroundContext()
        // Reads also begin transactions, so the context reads before the disk fails.
        #expect(try await context.perform { try $0.trackTitles() } == [])
        for title in ["a", "b"] {
            try await context.perform(andSave: .deferred(within: .seconds(5))) { _ = $0.makeTrack(title) }
        }
        let faults = Atomic(0)
        let hook = LMDBFaults.inject(at: bed.folder.path) { call in
            guard call == fault.call else { return nil }
            faults.add(1, ordering: .relaxed)
            return fault.number
        }
        clock.advance(by: .seconds(5))
        try await coordinator.writer.onQueue { $0.finishFlush() }
        #expect(faults.load(ordering: .relaxed) > 0)
        #expect(coordinator.writer.state.pendingSaves == 2)
        #expect(try await context.perform { try $0.trackTitles() } == ["a", "b"])
        let error = await #expect(throws: StoreError.self) { try await coordinator.flush() }
        #expect(error?.code == fault.code, "\(String(describing: error))")
        hook.end()
        clock.advance(by: .seconds(1))
        try await coordinator.writer.onQueue { $0.finishFlush() }
        #expect(coordinator.writer.state.pendingSaves == 0)
        #expect(try store.snapshot().count(Music.query("Track")) == 2)
        #expect(try store.history(after: nil, limit: 10)?.count == 2)
        #expect(try store.verify() == [])
    }

    // MARK: A file that must be opened again

    /// Makes all transactions fail, as after a meta page could not be written, until the file is opened again.
    private final class Refusal: Sendable {
        private let isEnded = Atomic(false)
        private let hook = Mutex<LMDBFaults.Hook?>(nil)

        init(_ bed: TestBed) {
            let made = LMDBFaults.inject(at: bed.folder.path) { [weak self] call in
                guard let self else { return nil }
                if call == .environmentOpen { isEnded.store(true, ordering: .relaxed) }
                // MDB_PANIC
                return !hasEnded && (call == .begin || call == .renew) ? -30795 : nil
            }
            hook.withLock { $0 = made }
        }

        deinit { hook.withLock { $0?.end() } }

        var hasEnded: Bool { isEnded.load(ordering: .relaxed) }
    }

    private static func saveLater(_ context: BackgroundContext) async throws {
        // Reads also begin transactions, so the context reads before they fail.
        #expect(try await context.perform { try $0.trackTitles() } == [])
        try await context.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack("a") }
    }

    private static func check(_ bed: TestBed) async throws {
        let container = try await bed.container()
        #expect(try await container.newBatchOperationContext().perform { try $0.trackTitles() } == ["a"])
        #expect(try container.coordinator.store.history(after: nil, limit: 10)?.count == 1)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: acknowledged saves that are left out because LMDB calls every transaction of the environment an error.
    @Test func `S066: closing a container writes the deferred saves for which LMDB opens the file again`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let context = container.newBatchOperationContext()
        try await Self.saveLater(context)
        let refusal = Refusal(bed)
        let error = await #expect(throws: StoreError.self) { try await container.coordinator.flush() }
        #expect(error?.code == .mustReopen, "\(String(describing: error))")
        #expect(container.coordinator.writer.state.pendingSaves == 1)
        #expect(try await context.perform { try $0.trackTitles() } == ["a"])
        try await container.close()
        #expect(refusal.hasEnded)
        try await Self.check(bed)
    }

    /// Saves without waiting for the disk, and makes LMDB refuse transactions before the coordinator is released.
    private static func saveAndRelease(_ bed: TestBed, _ clock: SteppedClock) async throws -> Refusal {
        let store = try bed.description.open(Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator(
            model: Music.model, store: store, name: "test", clock: clock.source)
        try await saveLater(coordinator.newBackgroundContext())
        return withExtendedLifetime(coordinator) { Refusal(bed) }
    }

    @Test func `S066: the deferred saves of a released coordinator are written after LMDB has opened the file again`()
        async throws
    {
        let bed = try TestBed(.lmdb)
        let clock = SteppedClock()
        let refusal = try await Self.saveAndRelease(bed, clock)
        try await until("the file is opened again") {
            clock.advance(by: .seconds(1))
            return refusal.hasEnded
        }
        // The job of the last try keeps the writer.
        clock.advance(by: .seconds(1))
        try await bed.closed()
        try await Self.check(bed)
    }
}
