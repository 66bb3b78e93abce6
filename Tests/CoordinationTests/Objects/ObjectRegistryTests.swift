import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct ObjectRegistryTests {
    private static let track = Music.query("Track").entity

    /// Calls `body` with a context whose registry is empty.
    private func withContext(_ body: @Sendable (ManagedObjectContext) throws -> Void) async throws {
        let coordinator = try PersistentStoreCoordinator.music(
            FaultyStore(schema: Music.model.storeSchema), SteppedClock())
        try await coordinator.newBackgroundContext().perform { try body($0) }
    }

    private static func object(_ key: ObjectKey, _ context: ManagedObjectContext) -> ManagedObject {
        context.object(with: ObjectID(store: context.storeIdentity, entity: track, key: key))
    }

    @Test func `S001: a registered object is found by entity and key until it is released`() async throws {
        try await withContext { context in
            let registry = context.registry
            // The ends of a page, and a key in the sparse part of the table.
            let keys: [ObjectKey] = [64, 127, 128, ObjectKey(64 << 28), ObjectKey(1 << 61)]
            var objects = keys.map { Self.object($0, context) }
            for (key, object) in zip(keys, objects) {
                #expect(registry.object(Self.track, key) === object)
                #expect(Self.object(key, context) === object)
                #expect(registry.object(Self.track.next, key) == nil)
            }
            #expect(registry.count == keys.count && registry.registrations == UInt64(keys.count))
            objects.removeFirst()
            #expect(registry.object(Self.track, keys[0]) == nil)
            #expect(registry.count == keys.count - 1)
            objects = []
            #expect(registry.count == 0)
            #expect(registry.registrations == UInt64(keys.count), "released objects are counted too")
        }
    }

    /// Catches: pages that stay for objects that were read once, and a page that is released although it has objects again.
    @Test func pagesThatAreEmptyForALongTimeAreReleased() async throws {
        try await withContext { context in
            let registry = context.registry
            for page in 1...200 { _ = Self.object(PageAddress.key(page: PageNumber(rawValue: UInt64(page)), slot: 0), context) }
            #expect(registry.page(Self.track, 7) != nil, "kept for a while")
            let again = Self.object(PageAddress.key(page: 7, slot: 3), context)
            for page in 201...300 { _ = Self.object(PageAddress.key(page: PageNumber(rawValue: UInt64(page)), slot: 0), context) }
            #expect(registry.count == 1)
            for page in [1, 6, 8, 200] as [PageNumber] { #expect(registry.page(Self.track, page) == nil, "\(page)") }
            #expect(registry.object(Self.track, again.key) === again)
            #expect(registry.page(Self.track, 300) != nil)
        }
    }

    @Test func `S006: an object with unsaved changes is retained, and released once`() async throws {
        try await withContext { context in
            let registry = context.registry
            let key = context.makeTrack("a").key
            #expect(registry.object(Self.track, key)?.isRetained == true)
            let object = try #require(registry.object(Self.track, key))
            registry.retain(object)
            context.rollback()
            #expect(!object.isRetained)
            registry.release(object)
            #expect(registry.object(Self.track, key) == nil, "nothing remains of an insertion that is rolled back")
        }
        try await withContext { context in
            _ = context.makeTrack("a")
            #expect(context.registry.count == 1)
            context.rollback()
            #expect(context.registry.count == 0)
        }
    }

    /// Catches: a visit of an object that an earlier call of the same loop has released.
    @Test func aLoopOverAllObjectsMayReleaseThem() async throws {
        try await withContext { context in
            var objects = (0..<200).map { Self.object(ObjectKey(64 + 40 * $0), context) }
            let keys = Set(objects.map(\.key))
            var visited: Set<ObjectKey> = []
            context.registry.forEach { visited.insert($0.key) }
            #expect(visited == keys)
            var calls = 0
            context.registry.forEach { _ in
                calls += 1
                objects = []
            }
            #expect(calls == 1 && context.registry.count == 0)
        }
    }
}
