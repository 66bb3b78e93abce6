import LMDB
import LMDBStore
import ObjectGraph
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

@Suite struct LeaseTests {
    /// Catches: a crash on an insert if no keys can be leased, and leases that continue after keys that were picked at random.
    @Test func S002_insertingGoesOnWithoutALeaseAndItsIdsStay() async throws {
        let bed = try TestBed(.lmdb)
        let store = try bed.description.open(Music.model.storeSchema)
        let fault = LMDBFaults.inject(at: bed.folder.path) { $0 == .commit ? ENOSPC : nil }
        let coordinator = try PersistentStoreCoordinator(model: Music.model, store: store)
        let context = coordinator.newBackgroundContext()
        let unleased = await context.perform { $0.makeTrack("without a lease").objectID }
        fault.end()
        #expect(unleased.key.rawValue >= 1 << 61, "no lease comes there")
        try await context.save()
        let next = coordinator.newBackgroundContext()
        for _ in 0..<3 {
            let leased = await next.perform { $0.makeTrack("leased").objectID }
            #expect(leased.key.rawValue < 1 << 32)
            try await next.save()
            let other = try PersistentStoreCoordinator(model: Music.model, store: bed.description.open(Music.model.storeSchema))
            let more = await other.newBackgroundContext().perform { $0.makeTrack("leased by another").objectID }
            #expect(more.key.rawValue < 1 << 32 && more != leased)
        }
        let count = try await next.perform { context throws in try context.count(EntityFetchRequest("Track")) }
        #expect(count == 4)
        #expect(try await next.perform { try $0.existingObject(with: unleased).objectID } == unleased)
        #expect(try store.verify() == [])
    }
}
