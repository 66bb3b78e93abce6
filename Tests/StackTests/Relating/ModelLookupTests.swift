import ObjectGraph
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
