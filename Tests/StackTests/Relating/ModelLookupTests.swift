import ObjectGraph
import StoreModel
import TestSupport
import Testing

@Suite struct ModelLookupTests {
    @Test(arguments: StoreKind.allCases)
    func `typed objects are found by ids of any entity`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model(Guest.self, Party.self, Badge.self))
        try await container.newBatchOperationContext().perform { context in
            let guest = Guest(party: nil, name: "Ada")
            let party = Party(title: "Ball")
            context.insert(guest)
            context.insert(party)
            #expect(context.model(for: guest.id) === guest)
            #expect(context.registeredModel(for: party.id) === party)
            try context.saveNow()
            let id = guest.id
            context.reset()
            #expect(context.registeredModel(for: id) == nil)
            let found = try #require(context.model(for: id) as? Guest)
            #expect(found.name == "Ada")
            #expect(context.registeredModel(for: id) === found)
            // Unknown objects read as deleted; ids of other stores and entities give nil.
            let unknown = ObjectID(store: id.store, entity: id.entity, key: id.key.advanced(by: 1000))
            #expect((context.model(for: unknown) as? Guest)?.name == "")
            #expect(context.model(for: ObjectID(store: id.store, entity: 77, key: 1)) == nil)
            #expect(context.model(for: ObjectID(store: id.store, entity: -1, key: 1)) == nil)
            #expect(context.registeredModel(for: ObjectID(store: id.store, entity: 77, key: 1)) == nil)
            #expect(context.registeredModel(for: ObjectID(store: id.store, entity: -1, key: 1)) == nil)
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `the provisional id of a new object leads to it until its insertion is saved`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model(Guest.self, Party.self, Badge.self))
        try await container.newBatchOperationContext().perform { context in
            let (ada, bob) = (Guest(party: nil, name: "Ada"), Guest(party: nil, name: "Bob"))
            let provisional = ada.managedObject.identifier
            #expect(ada.managedObject.identifier == provisional)
            #expect(bob.managedObject.identifier != provisional)
            #expect(context.model(for: provisional) == nil)
            context.insert(ada)
            #expect(ada.managedObject.identifier == ada.id)
            #expect(context.model(for: provisional) === ada)
            #expect(context.registeredModel(for: provisional) === ada)
            #expect(context.model(for: bob.managedObject.identifier) == nil)
            // An object that was related to one of the context arrives by itself.
            let carl = Guest(party: nil, name: "Carl")
            let other = carl.managedObject.identifier
            carl.friends = [ada]
            #expect(context.model(for: other) === carl)
            try context.saveNow()
            #expect(context.model(for: provisional) == nil)
            #expect(context.model(for: ada.id) === ada)
        }
        try await container.close()
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S002: a new object has a provisional id, and from its insertion on a final one`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model(Guest.self, Party.self, Badge.self))
        let main = container.mainContext
        let guests = ["Ada", "Bob", "Eve"].map { Guest(party: nil, name: $0) }
        let provisional = guests.map(\.id)
        #expect(guests.map(\.id) == provisional && guests.map(\.persistentModelID) == provisional)
        #expect(Set(provisional).count == 3)
        let known = Set(guests)
        for guest in guests { main.insert(guest) }
        let ids = guests.map(\.id)
        #expect(guests.map(\.persistentModelID) == ids && Set(ids).count == 3 && Set(ids).isDisjoint(with: provisional))
        #expect(ids.allSatisfy { $0.store == main.storeIdentity })
        // The identity of the objects does not change, and the context knows both ids.
        #expect(guests.allSatisfy { known.contains($0) })
        for (guest, id) in zip(guests, provisional) { #expect(main.model(for: id) === guest) }
        try await main.save()
        #expect(guests.map(\.id) == ids)
        #expect(throws: ContextError.self) { try main.existingObject(with: provisional[0]) }
        let names = try await container.read { context in
            try ids.map { try context.existingObject(Guest.self, with: $0).name }
        }
        #expect(names == ["Ada", "Bob", "Eve"])
        // A rollback removes a new object, which has a provisional id again.
        let carl = Guest(party: nil, name: "Carl")
        main.insert(carl)
        let inserted = carl.id
        main.rollback()
        #expect(carl.id != inserted && carl.id == carl.id && carl.managedObjectContext == nil)
        withExtendedLifetime(container) {}
    }

    @Test(arguments: StoreKind.allCases)
    func `an object is gone when its deletion is saved, and not before`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model(Guest.self, Party.self, Badge.self))
        try await container.newBatchOperationContext().perform { context in
            let guest = Guest(party: nil, name: "Ada")
            context.insert(guest)
            try context.saveNow()
            context.delete(guest)
            #expect(guest.isDeleted)
            #expect(!guest.managedObject.isGone)
            #expect(guest.name == "Ada")
            context.rollback()
            #expect(!guest.isDeleted && !guest.managedObject.isGone)
            context.delete(guest)
            try context.saveNow()
            #expect(guest.isDeleted && guest.managedObject.isGone)
        }
        try await container.close()
    }
}
