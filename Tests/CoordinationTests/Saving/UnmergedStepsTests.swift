import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A child that reads an older state than its parent is in conflict with every save that its parent has not merged, also if the writer
/// cannot tell those saves any more.
@Suite struct UnmergedStepsTests {
    private static func increment(_ id: ObjectID, _ context: ManagedObjectContext) throws {
        let object = try context.existingObject(with: id)
        guard case .int(let plays) = object["plays"] else { return }
        object["plays"] = .int(plays + 1)
    }

    private static func plays(_ id: ObjectID, _ context: ManagedObjectContext) throws -> Value? {
        try context.existingObject(with: id)["plays"]
    }

    /// Another process sets the plays of a track.
    private static func update(_ id: ObjectID, plays: Int64, _ store: FaultyStore) throws {
        let layer = Layer(schema: Music.model.storeSchema)
        let entity = try #require(Music.model.entity(named: "Track"))
        let row = Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
        row[Music.column("Track", "plays")] = .int(plays)
        layer.put(row, entity: entity.number, key: id.key)
        try store.saveElsewhere(layer)
    }

    /// Makes the writer forget its steps, as after some thousand saves.
    private static func forgetSteps(_ held: HeldSaves) {
        held.container.coordinator.writer.shared.withLock { $0.recent = ChangeFeed(limit: StoreWriter.recentLimit) }
    }

    // MARK: Moves that are no merges

    /// Catches: what a context merged before it was pinned to an older state counts as merged for the children that read that state.
    @Test(arguments: StoreKind.allCases)
    func `S151: what a context merged before it was pinned to an older state is a conflict with its child`(
        _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind)
        let root = await held.container.makeBackgroundContext(name: "root")
        let old = await root.perform { context in
            context.automaticallyMergesChanges = false
            return context.snapshot
        }
        try await held.setPlays(1)
        await root.perform { context in
            context.refreshAllObjects()
            context.pin(to: old)
        }
        let child = await root.newBackgroundChild(name: "child")
        #expect(try await child.perform { try Self.plays(held.track, $0) } == .int(0))
        try await root.perform(andSave: .durable) { _ = $0.makeTrack("y") }
        try await child.perform { try Self.increment(held.track, $0) }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
    }

    /// Catches: a parent that a snapshot budget has moved counts as one that has merged.
    @Test(arguments: StoreKind.allCases)
    func `S152: a snapshot budget that moves a parent does not hide a save from its child`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let root = await held.container.makeBackgroundContext(name: "root")
        await root.perform { $0.automaticallyMergesChanges = false }
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { try Self.increment(held.track, $0) }
        try await held.setPlays(5)
        await root.perform { $0.advanceIfClean() }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        await child.perform { $0.rollback() }
        await root.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        try await child.perform { try Self.increment(held.track, $0) }
        try await child.save(through: .store)
        #expect(try await root.perform { try Self.plays(held.track, $0) } == .int(6))
    }
}
