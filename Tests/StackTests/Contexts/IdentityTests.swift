import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct IdentityTests {
    @Test(arguments: Combination.all)
    func S001_oneInstancePerRecordAndContext(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a").objectID }
        try await worker.save(through: .store)
        let identical = try await worker.perform { context in
            try context.existingObject(with: id) === context.existingObject(with: id)
                && context.object(with: id) === context.objects("Track").first
        }
        #expect(identical)
    }

    @Test(arguments: Combination.all)
    func S002_anIdNeverChangesFromInsertThroughSave(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let before = await worker.perform { $0.makeTrack("a").objectID }
        try await worker.save(through: .store)
        let after = try await worker.perform { try $0.objects("Track").map(\.objectID) }
        #expect(after == [before])
        let fresh = await container.newBackgroundContext()
        #expect(try await fresh.perform { try $0.objects("Track").map(\.objectID) } == [before])
    }

    /// Catches: an id that cannot be read, because it is read through the context.
    @Test(arguments: StoreKind.allCases)
    func `S002: a saved object keeps its id after its context was deallocated`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let saved: ManagedObject
        let changed: ManagedObject
        let id: ObjectID
        do {
            let context = container.makeConfinedContext()
            saved = context.makeTrack("a")
            try context.saveNow()
            id = saved.objectID
        }
        do {
            let context = container.makeConfinedContext()
            changed = context.object(with: id)
            changed["plays"] = .int(9)
        }
        for object in [saved, changed] {
            #expect(object.managedObjectContext == nil)
            #expect(object.objectID == id)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S002_contextsInsertingAtOnceNeverShareAnId(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ids = await withTaskGroup(of: [ObjectID].self) { group in
            for worker in 0..<8 {
                let context = container.coordinator.newBackgroundContext(name: "worker \(worker)")
                group.addTask { await context.perform { context in (0..<500).map { context.makeTrack("\($0)").objectID } } }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(ids).count == 4_000)
    }

    @Test func S003_idsRoundTripThroughTextUrlAndCoding() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a").objectID }
        #expect(ObjectID(id.description) == id)
        #expect(ObjectID(url: id.url) == id)
        #expect(try JSONDecoder().decode([ObjectID].self, from: JSONEncoder().encode([id])) == [id])
        let store = "strata://\(id.store.uuid.uuidString)"
        let others = [
            "", "strata://", "strata://x/1/2", id.description + "/3", id.description.replacing("strata", with: "http"),
            // Each of these is another spelling, and an id has one spelling only.
            "\(store)/+1/2", "\(store)/1/02", "\(store)/1/-2", "\(store)/65536/2", "\(store)/1/2 ",
            "strata://\(id.store.uuid.uuidString.lowercased())/1/2",
        ]
        #expect(ObjectID("\(store)/1/2") != nil)
        for text in others {
            #expect(ObjectID(text) == nil, "\(text)")
        }
    }

    @Test(arguments: Combination.all)
    func S006_rollbackKeepsWhatTheContextIsToldToHold(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let (changed, deleted) = await worker.perform { ($0.makeTrack("a").objectID, $0.makeTrack("b").objectID) }
        try await worker.save(through: .store)
        try await worker.perform { context in
            context.retainsRegisteredObjects = true
            try context.existingObject(with: changed)["plays"] = .int(9)
            context.delete(try context.existingObject(with: deleted))
            context.rollback()
            #expect(context.registeredObject(for: changed) != nil)
            #expect(context.registeredObject(for: deleted) != nil)
            context.retainsRegisteredObjects = false
            #expect(context.registeredObject(for: changed) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S003_anIdOfAnotherStoreSelectsNothing(_ kind: StoreKind) async throws {
        let (bed, otherBed) = (try TestBed(kind), try TestBed(kind))
        let (container, other) = (try await bed.container(), try await otherBed.container())
        // Both stores have the same entities and keys.
        var ids: [ObjectID] = []
        for one in [container, other] {
            let context = one.coordinator.newBackgroundContext()
            ids.append(await context.perform { $0.makeTrack("a").objectID })
            try await context.save()
        }
        try #require(ids[0].key == ids[1].key && ids[0] != ids[1])
        let found = try await container.coordinator.newBackgroundContext().perform { [ids] context throws in
            try [[ids[0]], [ids[1]], ids].map { try context.count(EntityFetchRequest("Track", matching: .ids($0))) }
        }
        #expect(found == [1, 0, 1])
        let foreign = EntityFetchRequest("Track", matching: .ids([ids[1]]))
        #expect(try await !container.coordinator.batchUpdate(foreign, set: ["plays": .int(1)]).hasChanged)
        #expect(try await !container.coordinator.batchDelete(foreign).hasChanged)
    }

    @Test(arguments: StoreKind.allCases)
    func S004_registeredObjectKnowsOnlyWhatIsRegistered(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a").objectID }
        try await worker.save()
        let other = container.coordinator.newBackgroundContext()
        let found = try await other.perform { context in
            let before = context.registeredObject(for: id) == nil
            let object = try context.existingObject(with: id)
            return before && context.registeredObject(for: id) === object
        }
        #expect(found)
    }

    @Test(arguments: StoreKind.allCases)
    func S005_existingObjectThrowsForWhatIsNotThere(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let unknown = ObjectID(store: context.storeIdentity, entity: 3, key: ObjectKey(1 << 40))
            #expect(context.object(with: unknown).isFault)
            #expect(throws: ContextError.self) { try context.existingObject(with: unknown) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S006_cleanObjectsAreHeldWeaklyAndChangedOnesStrongly(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            let id = context.makeTrack("a").objectID
            #expect(context.registeredObject(for: id) != nil, "inserted objects are held")
            return id
        }
        try await worker.save()
        try await worker.perform { context in
            #expect(context.registeredObject(for: id) == nil, "clean objects are not")
            try context.existingObject(with: id)["plays"] = .int(9)
            #expect(context.registeredObject(for: id) != nil, "updated objects are")
            context.rollback()
            #expect(context.registeredObject(for: id) == nil)
            context.delete(try context.existingObject(with: id))
            #expect(context.registeredObject(for: id) != nil, "deleted objects are")
            context.rollback()
            context.retainsRegisteredObjects = true
            _ = try context.existingObject(with: id)
            #expect(context.registeredObject(for: id) != nil)
            context.retainsRegisteredObjects = false
            #expect(context.registeredObject(for: id) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S007_hasChangesExactlyWhenSomethingIsPending(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            #expect(!context.hasChanges)
            let dropped = context.makeTrack("gone")
            #expect(context.hasChanges)
            context.delete(dropped)
            #expect(!context.hasChanges)
            return context.makeTrack("a").objectID
        }
        try await worker.save()
        try await worker.perform { context in
            #expect(!context.hasChanges)
            let track = try context.existingObject(with: id)
            track["plays"] = .int(0)
            #expect(!context.hasChanges, "S032: an equal value is not a change")
            track["plays"] = .int(1)
            #expect(context.hasChanges && context.updatedObjects == [track])
            context.rollback()
            context.delete(track)
            #expect(context.hasChanges && context.deletedObjects == [track])
            context.rollback()
            #expect(!context.hasChanges)
        }
    }

    @Test func S007_anInsertSealedByAChildAndThenDeletedLeavesNothing() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container(.nested)
        await MainActor.run {
            let main = container.mainContext
            let track = main.makeTrack("a")
            let child = main.newBackgroundChild()
            main.delete(track)
            #expect(!main.hasChanges)
            #expect(main.deletedObjects.isEmpty)
            withExtendedLifetime(child) {}
        }
    }

    @Test func S008_anObjectWhoseContextIsGoneStopsWithItsReason() async throws {
        await #expect(processExitsWith: .failure) {
            let bed = try TestBed(.memory)
            let container = try await bed.container()
            await MainActor.run {
                let context = container.mainContext
                let object = context.makeTrack("a")
                context.reset()
                _ = object["title"]
            }
        }
    }
}
