import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Merges and refreshes while a save is running: what the save has taken, and what comes after it.
@Suite struct MergesInFlightTests {
    private let bed: TestBed
    private let container: PersistentContainer
    private var coordinator: PersistentStoreCoordinator { container.coordinator }

    init() async throws {
        bed = try TestBed(.lmdb)
        container = try await bed.container()
    }

    private static func names(_ context: ManagedObjectContext) throws -> KeyedCollection<String, String> {
        try context.collection("names", of: String.self)
    }

    private func set(_ key: String, to value: String?, in context: BackgroundContext) async throws {
        try await context.perform { try Self.names($0)[key] = value }
    }

    private func stored(_ key: String) async throws -> String? {
        try await coordinator.newBackgroundContext().perform { try Self.names($0)[key] }
    }

    /// Runs `body` while the writer waits, and returns after the saves that it started.
    private func whileWriterWaits(_ body: () async throws -> [Task<Void, any Error>]) async throws -> [Result<Void, any Error>] {
        let gate = DispatchSemaphore(value: 0)
        coordinator.writer.queue.async { gate.wait() }
        let saves: [Task<Void, any Error>]
        do { saves = try await body() } catch {
            gate.signal()
            throw error
        }
        gate.signal()
        var results: [Result<Void, any Error>] = []
        for save in saves { results.append(await save.result) }
        return results
    }

    /// Starts a save, and returns when the writer has it.
    private func begin(_ context: BackgroundContext, waiting: Int) async throws -> Task<Void, any Error> {
        let save = Task { try await context.save() }
        try await until("the save waits") { coordinator.writer.shared.withLock { $0.waiting.count } == waiting }
        return save
    }

    /// Two contexts that insert one key, whose saves wait; `ours` merges theirs while its own save is running.
    private func contest(_ policy: MergePolicy, then change: String?? = .none) async throws
        -> (ours: BackgroundContext, results: [Result<Void, any Error>])
    {
        // The types of the collection are known.
        let first = coordinator.newBackgroundContext()
        try await set("other", to: "0", in: first)
        try await first.save()
        let (ours, theirs) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        await ours.perform {
            $0.automaticallyMergesChanges = true
            $0.mergePolicy = policy
        }
        try await set("a", to: "theirs", in: theirs)
        try await set("a", to: "ours", in: ours)
        let results = try await whileWriterWaits {
            let saves = [try await begin(theirs, waiting: 1), try await begin(ours, waiting: 2)]
            if case .some(let value) = change { try await set("a", to: value, in: ours) }
            return saves
        }
        return (ours, results)
    }

    /// Catches: a value that vanishes because the entry that it changes was moved to that of another save, which was merged meanwhile.
    @Test(arguments: [MergePolicy.objectTrump, .overwrite], ["newer", nil])
    func `S192: a change of an entry that is being saved is kept when a merge finds the key inserted`(
        _ policy: MergePolicy, _ value: String?
    ) async throws {
        let (ours, results) = try await contest(policy, then: .some(value))
        for result in results { try result.get() }
        #expect(try await stored("a") == "ours")
        #expect(try await ours.perform { try Self.names($0)["a"] } == value)
        #expect(await ours.perform { $0.hasChanges })
        try await ours.save()
        #expect(try await stored("a") == value)
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a change that is lost with a new entry, because the save has changed the entry of others under the key instead.
    @Test(arguments: [MergePolicy.objectTrump, .overwrite], ["newer", nil])
    func `S109, S192: a change of a key that a child has set again is kept during the save that joins the entries`(
        _ policy: MergePolicy, _ value: String?
    ) async throws {
        let (ours, theirs) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        try await set("a", to: "base", in: theirs)
        try await theirs.save()
        await ours.perform { context in
            context.automaticallyMergesChanges = false
            context.refreshAllObjects()
            context.mergePolicy = policy
        }
        try await set("a", to: nil, in: ours)
        let child = await ours.newBackgroundChild()
        try await set("a", to: "ours", in: child)
        try await child.save()
        try await set("a", to: "theirs", in: theirs)
        try await theirs.save()
        let results = try await whileWriterWaits {
            let save = try await begin(ours, waiting: 1)
            try await set("a", to: value, in: ours)
            return [save]
        }
        for result in results { try result.get() }
        #expect(try await stored("a") == "ours")
        #expect(try await ours.perform { try Self.names($0)["a"] } == value)
        #expect(await ours.perform { $0.hasChanges })
        try await ours.save()
        #expect(try await stored("a") == value)
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: two entries under one key, with which each further save fails.
    @Test func `S192: an entry whose save failed is one with the entry that was merged meanwhile`() async throws {
        let (ours, results) = try await contest(.error)
        try results[0].get()
        #expect(throws: SaveError.self) { try results[1].get() }
        #expect(try await ours.perform { try Self.names($0).keys } == ["a", "other"])
        #expect(try await ours.perform { try Self.names($0)["a"] } == "ours")
        try await ours.save()
        #expect(try await stored("a") == "ours")
    }

    /// Catches: two owners of one object after a save that failed.
    @Test func `S052: one-to-one ends agree after a save that failed because of a merge`() async throws {
        let (first, second, profile) = try await coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            (context.makeArtist("1").objectID, context.makeArtist("2").objectID, context.insert("Profile").objectID)
        }
        let (ours, theirs) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        await ours.perform { $0.automaticallyMergesChanges = true }
        for (context, artist) in [(theirs, second), (ours, first)] {
            try await context.perform { context in
                try context.existingObject(with: artist).setRelatedObject(
                    "profile", to: try context.existingObject(with: profile))
            }
        }
        let results = try await whileWriterWaits {
            [try await begin(theirs, waiting: 1), try await begin(ours, waiting: 2)]
        }
        try results[0].get()
        #expect(throws: SaveError.self) { try results[1].get() }
        let owners = try await ours.perform { context in
            try [first, second].filter { try context.existingObject(with: $0).relatedObject("profile") != nil }
        }
        #expect(owners == [first])
    }

    /// Catches: a change that is saved although the program has dropped it.
    @Test(arguments: [false, true])
    func `S024: a refresh drops the newer change of an object whose insertion is being saved`(_ isDeletion: Bool) async throws {
        let context = coordinator.newBackgroundContext()
        let id = await context.perform { context in
            let track = context.makeTrack("t")
            track["plays"] = .int(1)
            return track.objectID
        }
        let results = try await whileWriterWaits {
            let save = try await begin(context, waiting: 1)
            try await context.perform { context in
                let track = try context.existingObject(with: id)
                if isDeletion { context.delete(track) } else { track["plays"] = .int(9) }
                context.refresh(track, mergeChanges: false)
                #expect(track["plays"] == .int(1) && !track.isDeleted)
            }
            return [save]
        }
        try results[0].get()
        #expect(await context.perform { !$0.hasChanges })
        #expect(try await context.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
        #expect(try await coordinator.titles() == ["t"])
    }
}
