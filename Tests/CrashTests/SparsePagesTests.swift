import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Pages are as full after many processes that insert a little as after one process that inserts much (S155).
@Suite struct SparsePagesTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    /// Returns the number of pages and of objects of an entity.
    private func pages(_ bed: TestBed) throws -> (pages: Int, objects: Int) {
        let store = try bed.description.open(Music.model.storeSchema)
        #expect(try store.verify() == [])
        let entity = try #require(Music.model.entity(named: "Track")).number
        let snapshot = try store.snapshot()
        return (try snapshot.pageNumbers(entity).count, try snapshot.count(StoreQuery(entity: entity)))
    }

    /// Inserts tracks and closes the store.
    /// - Parameter dropped: The number of objects that are inserted and rolled back before.
    private func insert(_ count: Int, dropped: Int = 0, _ bed: TestBed) async throws -> [ObjectID] {
        let closed = Closed()
        let ids: [ObjectID]
        do {
            let container = try await bed.container()
            closed.store = container.coordinator.store
            let worker = container.coordinator.newBackgroundContext()
            ids = await worker.perform { context in
                for _ in 0..<dropped { _ = context.makeTrack("dropped") }
                context.rollback()
                return (0..<count).map { context.makeTrack("t\($0)").objectID }
            }
            try await worker.save()
        }
        try await until("the store is closed") { closed.store == nil }
        return ids
    }

    /// `@unchecked Sendable` is right because the reference is written once, before it is waited for.
    private final class Closed: @unchecked Sendable {
        weak var store: (any ObjectStore)?
    }

    @Test(arguments: kinds, [1, 3])
    func `S155: processes that insert few objects each fill the pages`(_ kind: StoreKind, each: Int) async throws {
        let bed = try TestBed(kind)
        let openings = Rounds.of(40, long: 10_000)
        var ids: Set<ObjectID> = []
        for _ in 0..<openings { ids.formUnion(try await insert(each, bed)) }
        #expect(ids.count == openings * each, "no key is given out twice")
        let found = try pages(bed)
        #expect(found.objects == openings * each)
        #expect(found.pages <= 2 * (openings * each / 64 + 1), "\(found.pages) pages")
    }

    @Test(arguments: kinds)
    func `S155: keys of inserts that were rolled back are not given out again, and leave pages half full`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        var ids: Set<ObjectID> = []
        for _ in 0..<24 { ids.formUnion(try await insert(1, dropped: 1, bed)) }
        #expect(ids.count == 24)
        #expect(try pages(bed).pages <= 2)
    }

    /// Catches: keys that an idle context keeps when its container is closed.
    @Test(arguments: kinds)
    func `S155: closing returns the unused keys of contexts without an executor`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        for number in 0..<24 {
            let container = try await bed.container()
            let context = container.makeConfinedContext(name: "confined")
            for title in ["a", "b", "c"] { context.makeTrack(title) }
            try context.saveNow(.durable)
            if number % 3 > 0 {
                for _ in 0..<3 { context.makeTrack("dropped") }
                if number % 3 == 1 { context.rollback() } else { context.reset() }
            }
            try await container.close()
            withExtendedLifetime(context) {}
        }
        let found = try pages(bed)
        #expect(found.objects == 72)
        #expect(found.pages <= 4, "\(found.pages) pages")
    }

    @Test(arguments: kinds)
    func `S155: processes that insert one object each and are killed leave pages half full`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        for _ in 0..<8 { try await insertAndDie(bed) }
        let found = try pages(bed)
        #expect(found.objects == 8)
        #expect(found.pages == 1)
    }

    /// Inserts one track in a process that is killed then.
    private func insertAndDie(_ bed: TestBed) async throws {
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = bed.file.path as String, kind = bed.kind.rawValue as String] in
            let url = URL(fileURLWithPath: path)
            let container = try await PersistentContainer(
                model: Music.model, store: kind == "lmdb" ? .lmdb(url) : .sqlite(url))
            let worker = container.coordinator.newBackgroundContext()
            await worker.perform { _ = $0.makeTrack("t") }
            try await worker.save()
            kill(getpid(), SIGKILL)
        }
    }

    /// Catches: a killed process that had leased all keys of the pages that earlier processes had begun.
    ///
    /// The ten contexts of the first round begin ten pages. Each round takes three keys of each page: one for the object of a
    /// context, and two that the killed process leases. So the 64 keys of a page suffice for eight rounds, and no page is added.
    @Test(arguments: kinds)
    func `S155: a killed process loses two keys of each page that other processes have begun`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        for _ in 0..<8 {
            let container = try await bed.container()
            let contexts = (0..<10).map { _ in container.coordinator.newBackgroundContext() }
            for context in contexts {
                await context.perform { _ = $0.makeTrack("t") }
                try await context.save()
            }
            try await container.close()
            withExtendedLifetime(contexts) {}
            try await insertAndDie(bed)
        }
        let found = try pages(bed)
        #expect(found.objects == 88)
        #expect(found.pages <= 10, "\(found.pages) pages")
    }

    @Test(arguments: kinds)
    func `S002: processes that are open at once lease different keys`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        // Each opening of a store on SQLite has its own writer. A store on LMDB is shared within a process, so the leases are
        // taken here.
        let stores = try (0..<3).map { _ in try bed.description.open(Music.model.storeSchema) }
        var keys: [Range<ObjectKey>] = []
        for round in 0..<20 {
            let store = stores[round % 3]
            let taken = try store.write(.durable) { transaction in
                try transaction.allocateFreeKeys(0) + [transaction.allocateKeys(0, pages: 4)]
            }
            keys += taken
            // Every third process returns all keys except the first of each range.
            if round % 3 == 0 {
                try store.write(.durable) { try $0.giveBackKeys(taken.map { $0.dropFirst() }, 0) }
                keys = keys.dropLast(taken.count) + taken.map { $0.prefix(1) }
            }
        }
        let all = keys.flatMap(Array.init)
        #expect(Set(all).count == all.count)
    }
}
