import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Objects that are inserted because they were related to an object of a context.
@Suite struct RelatingInsertsTests {
    private static func container(_ bed: TestBed, _ stack: ContextStack = .siblings) async throws -> PersistentContainer {
        try await bed.container(stack, model: Model(Guest.self, Party.self, Badge.self))
    }

    /// Runs `body` in a context with a saved party.
    private static func inParty(
        _ combination: Combination, _ body: @escaping @Sendable (ManagedObjectContext, Party) throws -> Void
    ) async throws -> [String] {
        let bed = try TestBed(combination.store)
        let container = try await container(bed, combination.stack)
        let writer = await container.newBackgroundContext()
        await writer.perform { $0.insert(Party(title: "p")) }
        try await writer.save(through: .store)
        try await writer.perform { context throws in
            let party = try #require(try context.fetch(FetchRequest<Party>()).first)
            try body(context, party)
        }
        try await writer.save(through: .store)
        let reader = await container.newBackgroundContext()
        return try await reader.perform { context throws in
            try context.fetch(FetchRequest<Guest>(sortBy: [SortBy(\.name)])).map { "\($0.name)@\($0.party?.title ?? "-")" }
        }
    }

    @Test(arguments: Combination.all)
    func `S175: an object related in its initializer is inserted and saved`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { context, party in
            let guest = Guest(party: party, name: "a", note: "n")
            // The model is found although none of its accessors has run.
            #expect(party.guests.count == 1 && party.guests[0] === guest && party.guests[0].note == "n")
            _ = Guest(party: party, name: "b")
            #expect(context.insertedObjects.count == 2 && guest.managedObjectContext === context)
            _ = Guest(party: party, name: "c")
        }
        #expect(saved == ["a@p", "b@p", "c@p"])
    }

    /// Catches: an arrival that is shown only when something else uses the context.
    @Test(arguments: Combination.all) @MainActor
    func `S146: an object related in its initializer is shown without another use of the context`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let main = container.mainContext
        let party = Party(title: "p")
        main.insert(party)
        main.processPendingChanges()
        var guests = Watch { _ = party.guests }
        _ = Guest(party: party, name: "a")
        try await until("the guests are shown") { guests.count > 0 }
        let results = try Results(FetchRequest<Guest>(), context: main)
        let shown = Watch { _ = results.count }
        guests = Watch { _ = party.guests }
        _ = Guest(party: party, name: "b")
        try await until("the guest is in the results") { shown.count > 0 && guests.count > 0 }
        #expect(results.count == 2)
    }

    @Test(arguments: Combination.all)
    func `S175: an object whose initializer reads the inverse keeps all its values`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { _, party in
            let first = Guest(sittingIn: party)
            let second = Guest(sittingIn: party)
            #expect(first.name == "p 1" && second.name == "p 2" && party.guests == [first, second] && first.note == "made")
        }
        #expect(saved == ["p 1@p", "p 2@p"])
    }

    /// Catches: half an object that the next save stores, and a model that the context retains after it is gone.
    @Test(arguments: Combination.all, [false, true])
    func `S175: a model whose initializer throws leaves no object`(_ combination: Combination, _ isShown: Bool) async throws {
        let saved = try await Self.inParty(combination) { context, party in
            #expect(throws: Guest.Refused.self) { try Guest(refusedBy: party, isShown: isShown) }
            #expect(!context.hasChanges && party.guests.isEmpty)
            let friend = Guest(party: nil, name: "friend")
            #expect(throws: Guest.Refused.self) { try Guest(refusedBy: party, friends: [friend], isShown: isShown) }
            // A use of the context in the initializer has inserted the friend, who is complete.
            #expect(friend.admirers.isEmpty && (friend.managedObjectContext != nil) == isShown)
            let guests = try context.fetch(FetchRequest<Guest>())
            #expect(guests.count == (isShown ? 1 : 0) && party.guests.isEmpty)
            _ = Guest(party: party, friends: [friend], name: "guest")
            #expect(friend.admirers == party.guests && party.guests.count == 1)
        }
        #expect(saved == ["friend@-", "guest@p"])
    }

    @Test(arguments: Combination.rooted)
    func `S175: relationships of every kind insert, from both ends`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { context, party in
            let (a, b, c, d) = (
                Guest(party: nil, name: "a"), Guest(party: nil, name: "b"), Guest(party: nil, name: "c"),
                Guest(party: nil, name: "d")
            )
            a.party = party
            party.guests.append(b)
            c.friends = [a]
            b.friends.append(d)
            let badge = Badge(guest: a, code: 1)
            #expect(a.badge == badge && badge.guest === a && badge.managedObjectContext === context)
            let other = Badge(code: 2)
            d.badge = other
            #expect(other.guest === d && Set(a.admirers) == [c] && d.admirers == [b])
            #expect(context.insertedObjects.count == 6 && party.guests == [a, b])
        }
        #expect(saved == ["a@p", "b@p", "c@-", "d@-"])
    }

    @Test(arguments: Combination.rooted)
    func `S175: all objects of a detached graph arrive together, cycles included`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { context, party in
            let (a, b, c) = (Guest(party: nil, name: "a"), Guest(party: nil, name: "b"), Guest(party: nil, name: "c"))
            a.friends = [b]
            b.friends = [c]
            c.friends = [a]
            let alone = Guest(party: nil, name: "alone")
            let former = Guest(party: nil, name: "former")
            b.friends.append(former)
            b.friends = [c]
            // The object refers to the graph, but nothing of the graph refers to it, and the program drops it.
            _ = Guest(party: nil, friends: [c], name: "d")
            #expect(a.managedObjectContext == nil && c.managedObjectContext == nil)
            b.party = party
            #expect(a.managedObjectContext === context && c.friends == [a] && context.insertedObjects.count == 4)
            #expect(alone.managedObjectContext == nil && former.managedObjectContext == nil && former.friends.isEmpty)
            // Keys follow the order in which the objects were related.
            let keys = [b, c, a].map { $0.managedObject.objectID.key }
            #expect(keys == keys.sorted())
        }
        #expect(saved == ["a@-", "b@p", "c@-", "d@-"])
    }

    @Test(arguments: Combination.rooted)
    func `S175: a chain of many objects arrives without recursion`(_ combination: Combination) async throws {
        // The store has no part in the recursion.
        let count = combination.store == .memory ? 20_000 : 500
        let saved = try await Self.inParty(combination) { context, party in
            var last = Guest(party: nil, name: "0")
            for number in 1..<count { last = Guest(party: nil, friends: [last], name: "\(number)") }
            last.party = party
            #expect(context.insertedObjects.count == count)
        }
        #expect(saved.count == count)
    }

    @Test(arguments: Combination.all)
    func `S175: inserting one object of a detached graph inserts all of it`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { context, _ in
            let party = Party(title: "q")
            for name in ["a", "b"] { _ = Guest(party: party, name: name) }
            #expect(party.guests.isEmpty && !context.hasChanges)
            context.insert(party)
            #expect(party.guests.map(\.name) == ["a", "b"])
        }
        #expect(saved == ["a@q", "b@q"])
    }

    @Test func `S175: a detached graph is released with the last of its models`() async throws {
        weak var first: ManagedObject?
        weak var second: ManagedObject?
        do {
            let party = Party(title: "q")
            do {
                let guest = Guest(party: party, name: "a")
                (first, second) = (guest.managedObject, party.managedObject)
                guest.friends = [Guest(party: nil, name: "b")]
            }
            // The object can still be inserted with its party.
            #expect(first != nil)
            _ = party
        }
        #expect(first == nil && second == nil)
    }

    @Test(arguments: Combination.rooted)
    func `S175: rollback removes inserted objects, however they were inserted`(_ combination: Combination) async throws {
        let saved = try await Self.inParty(combination) { context, party in
            let waiting = Guest(party: party, name: "a")
            context.rollback()
            #expect(!context.hasChanges && party.guests.isEmpty && waiting.managedObjectContext == nil)
            let later = Guest(party: party, name: "b")
            #expect(party.guests == [later])
        }
        #expect(saved == ["b@p"])
    }

    @Test(arguments: Combination.all)
    func `S175: a hook, a child and a notice see the related object`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let writer = await container.newBackgroundContext()
        await writer.perform { context in
            let party = Party(title: "p")
            context.insert(party)
            let counter = Counter()
            let token = context.addObserver { counter.note($0) }
            _ = Guest(party: party, name: "a")
            context.processPendingChanges()
            #expect(counter.all.flatMap { $0.changes.insertedIDs(in: context.storeIdentity) }.count == 2)
            context.removeObserver(token)
            _ = Guest(party: party, name: "b")
        }
        let child = await writer.perform { $0.newBackgroundChild() }
        try await child.perform { context throws in
            let party = try #require(try context.fetch(FetchRequest<Party>()).first)
            #expect(party.guests.map(\.name) == ["a", "b"])
            _ = Guest(party: party, name: "c")
        }
        try await child.save()
        try await writer.save(through: .store)
        #expect(try await writer.perform { try $0.count(FetchRequest<Guest>()) } == 3)
    }

    @Test(arguments: Combination.rooted)
    func `S175: an object related to a deleted object makes the save fail`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await Self.container(bed, combination.stack)
        let writer = await container.newBackgroundContext()
        await writer.perform { $0.insert(Party(title: "p")) }
        try await writer.save(through: .store)
        try await writer.perform { context throws in
            let party = try #require(try context.fetch(FetchRequest<Party>()).first)
            context.delete(party)
            _ = Guest(party: party, name: "a")
        }
        await #expect(throws: SaveError.self) { try await writer.save(through: .store) }
        try await writer.perform { context throws in
            let guest = try #require(context.insertedObjects.first)
            guest.setRelatedObject("party", to: nil)
        }
        try await writer.save(through: .store)
        #expect(try await writer.perform { try $0.count(FetchRequest<Guest>()) } == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `S048, S175: random graphs arrive, go and come back as a plain model says`(_ store: StoreKind) async throws {
        let bed = try TestBed(store)
        let container = try await Self.container(bed)
        let seed = SeededGenerator().seed
        for round in 0..<UInt64(Rounds.of(6, long: 40)) {
            let writer = await container.newBackgroundContext()
            let play = PartyPlay()
            let generator = GeneratorBox(SeededGenerator(seed: seed &+ round))
            for _ in 0..<12 {
                try await writer.perform { context throws in
                    for _ in 0..<25 { try play.step(context, &generator.value) }
                }
                if generator.value.chance(50) {
                    try await writer.save()
                    await writer.perform { _ in play.didSave() }
                } else if generator.value.chance(30) {
                    await writer.perform { context in
                        context.rollback()
                        play.didRollBack()
                    }
                }
                try await writer.perform { try play.check($0) }
            }
            await writer.perform { _ in play.forget() }
        }
    }
}

/// A generator that closures share. One executor at a time uses it.
private final class GeneratorBox: @unchecked Sendable {
    var value: SeededGenerator
    init(_ value: SeededGenerator) { self.value = value }
}
