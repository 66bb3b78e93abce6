import Dispatch
import StoreInterface
import StoreModel
import TestSupport

@testable import ObjectGraph

/// A container with one saved track, and a writer whose queue is blocked between ``block()`` and ``release()``.
struct HeldSaves {
    let container: PersistentContainer
    let track: ObjectID
    private let bed: TestBed
    private let gate = DispatchSemaphore(value: 0)

    init(_ kind: StoreKind, _ stack: ContextStack = .siblings) async throws {
        bed = try TestBed(kind)
        container = try await bed.container(stack)
        // Through main, because a root that programs do not see does not merge the saves of others.
        let worker = await container.makeBackgroundContext()
        track = await worker.perform { context in
            let track = context.makeTrack("x")
            track["isrc"] = .string("A")
            return track.objectID
        }
        try await worker.save(through: .store)
    }

    func block() { container.coordinator.writer.queue.async { [gate] in gate.wait() } }
    func release() { gate.signal() }

    /// Returns when this many saves wait for the writer.
    func queued(_ count: Int) async throws {
        try await until("\(count) saves wait") { container.coordinator.writer.shared.withLock { $0.waiting.count } == count }
    }

    /// Another context sets the plays of the track.
    func setPlays(_ plays: Int64) async throws {
        try await container.newBatchOperationContext().perform(andSave: .durable) {
            try $0.existingObject(with: track)["plays"] = .int(plays)
        }
    }

    /// The titles that a new context shows.
    func titles() async throws -> [String] {
        try await container.makeBackgroundContext(name: "after").perform { try $0.trackTitles() }
    }

    /// The number of saves in the history that update an object.
    func updates(of id: ObjectID) throws -> Int {
        let history = try container.coordinator.store.history(after: 0, limit: 100) ?? []
        return history.count { $0.entities.contains { $0.entity == id.entity && $0.updatedKeys.contains(id.key) } }
    }
}
