import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// An object that a context has merged, or whose changes it has dropped, is in no conflict with its next save.
@Suite struct UnmergedMergesTests {
    /// Another process updates a property of an object.
    private static func update(_ id: ObjectID, _ entity: String, _ property: String, to value: Value, _ store: FaultyStore) throws
    {
        let layer = Layer(schema: Music.model.storeSchema)
        let columns = try #require(Music.model.entity(named: entity)).columns.count
        let row = Row.make(kind: .update, layer: layer.id, columnCount: columns)
        row[Music.column(entity, property)] = value
        layer.put(row, entity: id.entity, key: id.key)
        try store.saveElsewhere(layer)
    }

    /// Catches: the version of a save in memory is compared with the generation that it is going to have.
    @Test(arguments: StoreKind.allCases, [Durability.durable, .deferred(within: .seconds(600))])
    func `S091: a save in memory that a context has read during its own save is no conflict once it is merged`(
        _ kind: StoreKind, _ durability: Durability
    ) async throws {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        await a.perform { $0.automaticallyMergesChanges = false }
        let other = await held.container.makeBackgroundContext(name: "other")
        let saves = Mutex<[ChangeSet]>([])
        await other.perform { context in
            _ = context.addObserver { notice in if notice.kind == .didSave { saves.withLock { $0.append(notice.changes) } } }
        }
        for plays in [Int64(1), 2] {
            try await other.perform(andSave: durability) { context in
                context.refreshAllObjects()
                try context.existingObject(with: held.track)["plays"] = .int(plays)
            }
        }
        held.block()
        let saving = Task { try await a.perform(andSave: durability) { _ = $0.makeTrack("y") } }
        try await held.queued(1)
        try await a.perform { try $0.existingObject(with: held.track)["plays"] = .int(3) }
        held.release()
        try await saving.value
        let merged = saves.withLock { $0 }
        await a.perform { $0.mergeChanges(from: merged[0]) }
        await #expect(throws: SaveError.self) { try await a.save(durability) }
        await a.perform { $0.mergeChanges(from: merged[1]) }
        try await a.save(durability)
    }
}
