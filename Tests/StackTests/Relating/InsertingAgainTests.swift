import ObjectGraph
import TestSupport
import Testing

/// Models that are deleted and inserted again before a save (S048).
@Suite struct InsertingAgainTests {
    /// Runs `body` in a background context, a root or a child, with a saved guest of a party. The guest has a badge and a friend, and there
    /// is another party, without guests. Saves afterwards, and returns the guests.
    private static func withGuest(
        _ combination: Combination, _ body: @escaping @Sendable (ManagedObjectContext, Guest, Party) throws -> Void
    ) async throws -> [String] {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Model(Guest.self, Party.self, Badge.self))
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let guest = Guest(party: Party(title: "p"), friends: [Guest(party: nil, name: "friend")], name: "guest")
            context.insert(guest)
            guest.badge = Badge(code: 1)
            context.insert(Party(title: "alone"))
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            let guests = try context.fetch(FetchRequest<Guest>(sortBy: [SortBy(\.name)]))
            let parties = try context.fetch(FetchRequest<Party>(sortBy: [SortBy(\.title)]))
            try body(context, try #require(guests.last), try #require(parties.first))
        }
        try await worker.save(through: .store)
        #expect(try container.coordinator.store.verify() == [])
        let reader = await container.newBackgroundContext()
        return try await reader.perform { context throws in
            try context.fetch(FetchRequest<Guest>(sortBy: [SortBy(\.name)])).map { guest in
                "\(guest.name)@\(guest.party?.title ?? "-") \(guest.badge == nil ? "-" : "badge") \(guest.friends.count)"
            }
        }
    }

    /// Catches: an insertion that does nothing, and a model that the next save deletes.
    @Test(arguments: Combination.all, [false, true])
    func `S048: inserting a model takes its unsaved deletion back`(_ combination: Combination, _ isSealed: Bool) async throws {
        let saved = try await Self.withGuest(combination) { context, guest, _ in
            let (party, badge, friend) = (try #require(guest.party), try #require(guest.badge), guest.friends[0])
            let id = guest.id
            guest.name = "changed"
            context.delete(guest)
            #expect(guest.isDeleted && party.guests.isEmpty && badge.guest == nil)
            // A child seals the layer that has the deletion.
            let child = isSealed ? context.newBackgroundChild() : nil
            context.insert(guest)
            withExtendedLifetime(child) {}
            #expect(!guest.isDeleted && guest.id == id && guest.name == "changed")
            #expect(guest.party === party && party.guests == [guest])
            #expect(guest.badge == nil && badge.guest == nil && guest.friends.isEmpty && friend.admirers.isEmpty)
            #expect(context.deletedObjects.isEmpty && context.insertedObjects.isEmpty)
            #expect(try context.fetch(FetchRequest<Guest>(sortBy: [SortBy(\.name)])) == [guest, friend])
            context.insert(guest)
            #expect(guest.badge == nil && guest.name == "changed", "an object that is not deleted stays as it is")
        }
        #expect(saved == ["changed@p - 0", "friend@- - 0"])
    }

    @Test(arguments: Combination.all)
    func `S048: a model refers to nothing that was deleted, and an unchanged one has no changes`(
        _ combination: Combination
    ) async throws {
        let saved = try await Self.withGuest(combination) { context, guest, alone in
            let party = try #require(guest.party)
            context.delete(alone)
            context.insert(alone)
            #expect(!alone.isDeleted && !context.hasChanges)
            context.delete(guest)
            context.delete(party)
            context.insert(guest)
            #expect(guest.party == nil && party.isDeleted)
            context.insert(party)
            #expect(!party.isDeleted && party.guests.isEmpty)
        }
        #expect(saved == ["friend@- - 0", "guest@- - 0"])
    }

    /// Catches: a model that a rollback takes out of its context, although its object is in the store.
    @Test(arguments: Combination.all, [false, true])
    func `S048: a rollback keeps a model whose deletion was taken back or undone`(
        _ combination: Combination, _ isUndone: Bool
    ) async throws {
        let saved = try await Self.withGuest(combination) { context, guest, alone in
            let history = UndoHistory()
            context.undoHistory = history
            // The only property, so that the layer that brings the object back has all of its changes.
            alone.title = "changed"
            context.delete(guest)
            context.processPendingChanges()
            context.delete(alone)
            context.processPendingChanges()
            if isUndone { try history.undo() } else { context.insert(alone) }
            #expect(!alone.isDeleted && alone.title == "changed" && guest.isDeleted)
            context.rollback()
            #expect(!alone.isDeleted && alone.title == "alone" && alone.managedObjectContext === context)
            #expect(!guest.isDeleted && guest.badge != nil && guest.friends.count == 1 && !context.hasChanges)
            #expect(try context.fetch(FetchRequest<Party>(sortBy: [SortBy(\.title)])).first === alone)
            context.undoHistory = nil
        }
        #expect(saved == ["friend@- - 0", "guest@p badge 1"])
    }

    /// Catches: an object that comes back with null in every property, because its record is gone.
    @Test(arguments: StoreKind.allCases)
    func `S048: a model that another context has deleted, too, stays deleted`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: Model(Guest.self, Party.self, Badge.self))
        let (first, second) = await (container.newBackgroundContext(), container.newBackgroundContext())
        try await second.perform(andSave: .durable) { $0.insert(Guest(party: nil, name: "guest")) }
        try await first.perform { context throws in
            context.refreshAllObjects()
            context.delete(try #require(try context.fetch(FetchRequest<Guest>()).first))
        }
        try await second.perform(andSave: .durable) { context throws in
            context.delete(try #require(try context.fetch(FetchRequest<Guest>()).first))
        }
        try await first.perform { context throws in
            let deleted = try #require(context.deletedObjects.first)
            context.refreshAllObjects()
            let guest = try #require(context.model(for: deleted.objectID) as? Guest)
            context.insert(guest)
            #expect(guest.isDeleted && context.insertedObjects.isEmpty)
        }
        try await first.save()
        #expect(try container.coordinator.store.verify() == [])
        let reader = await container.newBackgroundContext()
        let count = try await reader.perform { try $0.count(FetchRequest<Guest>()) }
        #expect(count == 0)
    }

    /// Catches: an insertion that is not recorded, so that an undo of the deletion conflicts with it or loses a group.
    @Test(arguments: Combination.all)
    func `S162: an insertion that takes a deletion back is undone and redone`(_ combination: Combination) async throws {
        let saved = try await Self.withGuest(combination) { context, guest, _ in
            let history = UndoHistory()
            context.undoHistory = history
            context.delete(guest)
            context.processPendingChanges()
            context.insert(guest)
            context.processPendingChanges()
            try history.undo()
            #expect(guest.isDeleted)
            try history.redo()
            #expect(!guest.isDeleted && guest.party != nil && guest.badge == nil)
            for _ in 0..<2 { try history.undo() }
            #expect(!guest.isDeleted && guest.badge != nil && guest.friends.count == 1)
            #expect(!context.hasChanges && !history.canUndo)
            // Both in one group.
            context.delete(guest)
            context.insert(guest)
            context.processPendingChanges()
            #expect(guest.badge == nil)
            try history.undo()
            #expect(guest.badge != nil && guest.friends.count == 1 && !context.hasChanges)
            context.undoHistory = nil
        }
        #expect(saved == ["friend@- - 0", "guest@p badge 1"])
    }
}
