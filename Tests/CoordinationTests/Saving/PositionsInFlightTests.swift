import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Unsaved positions in ordered relationships while a save is running, and another context moves the object to another list (S046).
@Suite struct PositionsInFlightTests {
    private let bed: TestBed
    private let container: PersistentContainer
    private var coordinator: PersistentStoreCoordinator { container.coordinator }
    private let lists: [String: ObjectID]

    /// Three lists of three songs each: `a1`, `a2` and `a3` are in the list `a`.
    init() async throws {
        bed = try TestBed(.lmdb)
        container = try await bed.container(.siblings, model: Lists.model())
        lists = try await container.coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            var lists: [String: ObjectID] = [:]
            for name in ["a", "b", "c"] {
                let list = context.insert("Playlist")
                list["name"] = .string(name)
                list.setRelatedObjects(
                    "items",
                    to: (1...3).map { number in
                        let song = context.insert("Song")
                        song["title"] = .string("\(name)\(number)")
                        return song
                    })
                lists[name] = list.objectID
            }
            return lists
        }
    }

    private static func titles(_ list: ManagedObject) -> [String] {
        list.relatedObjects("items").map { if case .string(let title) = $0["title"] { title } else { "" } }
    }

    private func titles(_ name: String, in context: BackgroundContext) async throws -> [String] {
        try await context.perform { try Self.titles($0.existingObject(with: #require(lists[name]))) }
    }

    private func stored(_ name: String) async throws -> [String] {
        try await titles(name, in: coordinator.newBackgroundContext())
    }

    /// Makes the last song of a list its first one.
    private func reorder(_ name: String, in context: BackgroundContext) async throws {
        try await context.perform { context in
            let list = try context.existingObject(with: #require(lists[name]))
            let songs = list.relatedObjects("items")
            list.setRelatedObjects("items", to: songs.suffix(1) + songs.dropLast())
        }
    }

    /// Makes a song the last one of another list.
    private func move(_ title: String, from name: String, to other: String, in context: BackgroundContext) async throws {
        try await context.perform { context in
            let songs = try context.existingObject(with: #require(lists[name])).relatedObjects("items")
            let song = try #require(songs.first { $0["title"] == .string(title) })
            song.setRelatedObject("collection", to: try context.existingObject(with: #require(lists[other])))
        }
    }

    /// Saves theirs and then ours, in one group of the writer, so that ours merges theirs during its own save. Calls `meanwhile` when both
    /// wait.
    private func save(
        _ theirs: BackgroundContext, _ ours: BackgroundContext, meanwhile: () async throws -> Void = {}
    ) async throws -> Result<Void, any Error> {
        let gate = DispatchSemaphore(value: 0)
        coordinator.writer.queue.async { gate.wait() }
        defer { gate.signal() }
        var saves: [Task<Void, any Error>] = []
        for (number, context) in [theirs, ours].enumerated() {
            saves.append(Task { try await context.save() })
            try await until("the save waits") { coordinator.writer.shared.withLock { $0.waiting.count } == number + 1 }
        }
        try await meanwhile()
        gate.signal()
        try await saves[0].value
        return await saves[1].result
    }

    private func contexts(_ policy: MergePolicy) async -> (ours: BackgroundContext, theirs: BackgroundContext) {
        let (ours, theirs) = (coordinator.newBackgroundContext(), coordinator.newBackgroundContext())
        await ours.perform {
            $0.automaticallyMergesChanges = true
            $0.mergePolicy = policy
        }
        return (ours, theirs)
    }

    /// Catches: a position that the failed save gives back, and that the next save writes into the other list.
    @Test func `S046: the position of a failed save is dropped if the object was moved to another list meanwhile`() async throws {
        let (ours, theirs) = await contexts(.error)
        try await reorder("a", in: ours)
        try await move("a3", from: "a", to: "c", in: theirs)
        let result = try await save(theirs, ours)
        #expect(throws: SaveError.self) { try result.get() }
        #expect(await ours.perform { !$0.hasChanges })
        #expect(try await titles("c", in: ours) == ["c1", "c2", "c3", "a3"])
        try await ours.save()
        #expect(try await stored("c") == ["c1", "c2", "c3", "a3"])
        #expect(try await stored("a") == ["a1", "a2"])
    }

    /// Catches: a position in the list to which the dropped change had moved the object.
    @Test func `S046: a position made during a save is dropped if the policy drops the move to its list`() async throws {
        let (ours, theirs) = await contexts(.storeTrump)
        try await move("a3", from: "a", to: "b", in: ours)
        try await move("a3", from: "a", to: "c", in: theirs)
        let result = try await save(theirs, ours) { try await reorder("b", in: ours) }
        try result.get()
        #expect(try await titles("c", in: ours) == ["c1", "c2", "c3", "a3"])
        try await ours.save()
        #expect(try await stored("c") == ["c1", "c2", "c3", "a3"])
        #expect(try await stored("b") == ["b1", "b2", "b3"])
    }

    /// Catches: a position that is kept in a list of which the context has not read that the object has left it.
    @Test(arguments: [MergePolicy.error, .objectTrump, .storeTrump])
    func `S100: without automatic merges, the policy decides about a position made during a save`(_ policy: MergePolicy)
        async throws
    {
        let (ours, theirs) = await contexts(policy)
        await ours.perform { $0.automaticallyMergesChanges = false }
        try await ours.perform { try $0.existingObject(with: #require(lists["b"]))["name"] = .string("other") }
        try await move("a3", from: "a", to: "c", in: theirs)
        try await save(theirs, ours) { try await reorder("a", in: ours) }.get()
        #expect(await ours.perform { $0.hasChanges })
        do {
            try await ours.save()
            #expect("\(policy)" != "\(MergePolicy.error)", "the change of another save is a conflict")
        } catch SaveError.conflicts { #expect("\(policy)" == "\(MergePolicy.error)") }
        #expect(try await stored("c") == ["c1", "c2", "c3", "a3"])
    }

    /// Catches: a move during a suspension, after which the list of the position is not known.
    @Test func `S046, S167: a position is dropped if the object was moved to another list during a suspension`() async throws {
        let (ours, theirs) = await contexts(.error)
        try await reorder("a", in: ours)
        try await container.suspend()
        try await move("a3", from: "a", to: "c", in: theirs)
        let saving = Task { try await theirs.save() }
        await container.resume()
        try await saving.value
        await ours.perform { $0.refreshAllObjects() }
        #expect(try await titles("c", in: ours) == ["c1", "c2", "c3", "a3"])
        #expect(await ours.perform { !$0.hasChanges })
    }
}
