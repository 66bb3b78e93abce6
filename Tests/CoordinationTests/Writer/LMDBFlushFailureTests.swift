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
}
