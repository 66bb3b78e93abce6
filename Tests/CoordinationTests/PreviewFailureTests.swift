import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Previews of saves that follow deferred saves which cannot be written as they were accepted (S065).
@Suite struct PreviewFailureTests {
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let coordinator: PersistentStoreCoordinator

    init() throws {
        coordinator = try .music(store, SteppedClock())
    }

    private static let diskFull = StoreError(.full, "the disk is full. Make room")
    private static let title = Music.column("Track", "title")

    private func saveLater(_ title: String) async throws {
        try await coordinator.newBackgroundContext(name: title).perform(andSave: .deferred(within: .seconds(600))) {
            _ = $0.makeTrack(title)
        }
    }

    /// Saves a track by a connection that does not wait for the deferred saves of this one.
    private func saveElsewhere() throws {
        let layer = Layer(schema: Music.model.storeSchema)
        let entity = try #require(Music.model.entity(named: "Track"))
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: entity.columns.count)
        row.fill(with: entity.defaults)
        row[Self.title] = "elsewhere"
        layer.put(row, entity: entity.number, key: ObjectKey(1 << 30))
        try store.saveElsewhere(layer)
    }

    /// Returns a preview of the save of a new track.
    private func preview() async -> SavePreview {
        let context = coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("new") }
        return await context.previewSave()
    }

    /// Catches: an internal error as the failure of a preview whose save would succeed.
    @Test func `S065: a preview follows deferred saves that another process has overtaken`() async throws {
        try await saveLater("a")
        try saveElsewhere()
        let preview = await preview()
        #expect(preview.failure == nil && !preview.changes.isEmpty, "\(preview)")
        #expect(try await coordinator.titles() == ["a", "elsewhere"])
    }

    @Test func `S065: a preview names what keeps the deferred saves before it from being written`() async throws {
        try await saveLater("a")
        try saveElsewhere()
        store.fail { call, _ in call == .commit ? Self.diskFull : nil }
        #expect((await preview().failure as? StoreError)?.code == .full)
        let context = coordinator.newBackgroundContext()
        let error = await #expect(throws: StoreError.self) {
            try await context.perform(andSave: .durable) { _ = $0.makeTrack("durable") }
        }
        #expect(error?.code == .full)
        store.fail(nil)
        #expect(await preview().failure == nil)
    }

    /// Catches: a preview that fails because of a deferred save of another context.
    @Test func `S065: a preview does not fail because an earlier deferred save cannot be written`() async throws {
        try await saveLater("bad")
        let entity = Music.query("Track").entity
        store.refuse { layer in
            var isRefused = false
            layer.forEachRow(of: entity, \.inserted) { _, row in if row[Self.title] == "bad" { isRefused = true } }
            return isRefused ? StoreError(.valueTooLarge, "a value is too large. Change it") : nil
        }
        let preview = await preview()
        #expect(preview.failure == nil && !preview.changes.isEmpty, "\(preview)")
        await #expect(throws: SaveError.self) { try await coordinator.flush() }
    }

    /// Catches: a check that a rollback has ended, and that the end of a running preview brings back.
    @Test func `S048, S065: a rollback during a preview ends the checks of objects`() async throws {
        let (ours, other) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        let track = await ours.perform { $0.makeTrack("a").objectID }
        try await ours.save()
        try await ours.perform { context throws in
            context.automaticallyMergesChanges = false
            context.detectConflicts(for: try context.existingObject(with: track))
            context.makeTrack("new")
        }
        let gate = DispatchSemaphore(value: 0)
        coordinator.writer.queue.async { gate.wait() }
        async let preview = ours.previewSave()
        while await ours.perform({ $0.tracker.takenChecks.watched.isEmpty }) { await Task.yield() }
        await ours.perform { $0.rollback() }
        gate.signal()
        _ = await preview
        try await other.perform { context throws in
            context.refreshAllObjects()
            try context.existingObject(with: track)["plays"] = 7
        }
        try await other.save()
        await ours.perform { _ = $0.makeTrack("later") }
        try await ours.save()
        #expect(try await coordinator.titles() == ["a", "later"])
    }
}
