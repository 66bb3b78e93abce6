import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes of ordered many-to-many relationships in several contexts, compared with plain arrays.
@Suite struct OrderedPairRandomTests {
    /// The songs of each mix, and the mixes of each song, as plain arrays.
    private struct Lists: Sendable, Equatable {
        var songs: [ObjectID: [ObjectID]] = [:]
        var mixes: [ObjectID: [ObjectID]] = [:]

        init(_ context: ManagedObjectContext) throws {
            for mix in try context.fetch(EntityFetchRequest("Mix")) { songs[mix.objectID] = mix.songs.map(\.objectID) }
            for song in try context.fetch(EntityFetchRequest("Song")) {
                mixes[song.objectID] = song.relatedObjects("mixes").map(\.objectID)
            }
        }

        mutating func set(_ mix: ObjectID, _ members: [ObjectID]) {
            let old = songs[mix] ?? []
            for song in old where !members.contains(song) { mixes[song]?.removeAll { $0 == mix } }
            for song in members where !old.contains(song) { mixes[song, default: []].append(mix) }
            songs[mix] = members
        }

        mutating func set(mixesOf song: ObjectID, _ members: [ObjectID]) {
            let old = mixes[song] ?? []
            for mix in old where !members.contains(mix) { songs[mix]?.removeAll { $0 == song } }
            for mix in members where !old.contains(mix) { songs[mix, default: []].append(song) }
            mixes[song] = members
        }

        mutating func delete(_ id: ObjectID) {
            songs[id] = nil
            mixes[id] = nil
            for mix in songs.keys { songs[mix]?.removeAll { $0 == id } }
            for song in mixes.keys { mixes[song]?.removeAll { $0 == id } }
        }

        /// The order of keys, in which the lists do not depend on the order of a dictionary.
        static func sorted(_ ids: some Sequence<ObjectID>) -> [ObjectID] { ids.sorted { $0.key < $1.key } }
    }

    private static func shuffled(_ members: [ObjectID], _ all: [ObjectID], _ random: inout SeededGenerator) -> [ObjectID] {
        var members = members
        for _ in 0..<1 + random.below(3) {
            switch random.below(4) {
            case 0:
                guard let new = all.filter({ !members.contains($0) }).randomElement(using: &random) else { continue }
                members.insert(new, at: random.below(members.count + 1))
            case 1: if !members.isEmpty { members.remove(at: random.below(members.count)) }
            default:
                guard !members.isEmpty else { continue }
                let moved = members.remove(at: random.below(members.count))
                members.insert(moved, at: random.below(members.count + 1))
            }
        }
        return members
    }

    /// Drops the changes of a mix, which may be deleted: it has the songs that it has below the context's changes, in their order. The
    /// place of the mix in the lists of songs is left open, because moves in these lists stay.
    private static func drop(_ mix: ObjectID, _ lists: inout Lists, base: Lists, in context: ManagedObjectContext) throws {
        context.refresh(context.object(with: mix), mergeChanges: false)
        let songs = (base.songs[mix] ?? []).filter { lists.mixes[$0] != nil }
        lists.songs[mix] = songs
        for song in lists.mixes.keys {
            lists.mixes[song]?.removeAll { $0 == mix }
            if songs.contains(song) { lists.mixes[song]?.append(mix) }
        }
        let shown = try Lists(context)
        #expect(shown.songs == lists.songs, "after a refresh of \(mix) without merging")
        #expect(
            shown.mixes.mapValues { Set($0) } == lists.mixes.mapValues { Set($0) }, "after a refresh of \(mix) without merging")
        lists = shown
    }

    /// Makes a random change. Returns whether it has dropped changes, which are not recorded for undo.
    private static func change(
        _ lists: inout Lists, base: Lists, in context: ManagedObjectContext, _ random: inout SeededGenerator
    ) throws -> Bool {
        let (mixes, songs) = (Lists.sorted(lists.songs.keys), Lists.sorted(lists.mixes.keys))
        switch random.below(11) {
        case 0: lists.mixes[context.makeSong("s").objectID] = []
        case 1: lists.songs[context.insert("Mix").objectID] = []
        case 2 where mixes.count + songs.count > 6:
            let id = (mixes + songs)[random.below(mixes.count + songs.count)]
            context.delete(try context.existingObject(with: id))
            lists.delete(id)
        case 3, 4:
            guard let song = songs.randomElement(using: &random) else { return false }
            let members = shuffled(lists.mixes[song] ?? [], mixes, &random)
            let object = try context.existingObject(with: song)
            object.setRelatedObjects("mixes", to: members.map { context.object(with: $0) })
            lists.set(mixesOf: song, members)
        case 5:
            guard let mix = Lists.sorted(base.songs.keys).randomElement(using: &random) else { return false }
            try drop(mix, &lists, base: base, in: context)
            return true
        default:
            guard let mix = mixes.randomElement(using: &random) else { return false }
            let members = shuffled(lists.songs[mix] ?? [], songs, &random)
            try context.existingObject(with: mix).songs = members.map { context.object(with: $0) }
            lists.set(mix, members)
        }
        return false
    }

    /// Makes random changes in one block, and undoes and redoes them sometimes. Returns the expected lists.
    ///
    /// - Parameter base: The lists below the unsaved changes of the context.
    private static func work(
        in context: BackgroundContext, from start: Lists, base: Lists, _ random: inout SeededGenerator, _ note: String
    ) async throws -> Lists {
        let generator = random
        let lists: Lists
        let hasDropped: Bool
        (lists, hasDropped, random) = try await context.perform { context throws in
            var (lists, random) = (start, generator)
            var hasDropped = false
            for _ in 0..<1 + random.below(8) {
                if try change(&lists, base: base, in: context, &random) { hasDropped = true }
            }
            #expect(try Lists(context) == lists, "\(note)")
            return (lists, hasDropped, random)
        }
        guard random.chance(40), lists != start, !hasDropped else { return lists }
        try await context.perform { context throws in
            try context.undoHistory?.undo()
            #expect(try Lists(context) == start, "undo, \(note)")
            try context.undoHistory?.redo()
            #expect(try Lists(context) == lists, "redo, \(note)")
        }
        return lists
    }

    @Test(arguments: Combination.all)
    func `S046: random orders of pairs in contexts and children equal plain arrays`(_ combination: Combination) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Mixes.model(mixes: true))
        let first = try await container.read { try Lists($0) }
        var committed = first
        for round in 0..<Rounds.of(4, long: 300) {
            let note = "STRATA_SEED=\(random.seed), round \(round)"
            let worker = await container.newBackgroundContext(name: "round \(round)")
            await worker.perform { $0.undoHistory = UndoHistory() }
            var pending = try await Self.work(in: worker, from: committed, base: committed, &random, note)
            if random.chance(50) {
                let child = await worker.newBackgroundChild()
                await child.perform { $0.undoHistory = UndoHistory() }
                let before = pending
                let after = try await Self.work(in: child, from: before, base: before, &random, note)
                pending = after
                try await child.save()
                try await worker.perform { context throws in
                    #expect(try Lists(context) == after, "after the child's save, \(note)")
                    guard before != after else { return }
                    try context.undoHistory?.undo()
                    #expect(try Lists(context) == before, "undo of the child, \(note)")
                    try context.undoHistory?.redo()
                }
            }
            if random.chance(15) {
                await worker.perform { $0.rollback() }
                pending = committed
            } else {
                try await worker.save(through: .store, random.chance(30) ? .deferred(within: .seconds(30)) : .durable)
            }
            committed = pending
            let shown = try await worker.perform { try Lists($0) }
            try #require(shown == committed, "\(note)")
            try await container.coordinator.refresh()
            let stored = try await container.coordinator.newBackgroundContext().perform { try Lists($0) }
            try #require(stored == committed, "\(note)")
        }
        try await container.flush()
        let pairs = committed.songs.values.reduce(0) { $0 + $1.count }
        #expect(try Mixes.positionCount(in: container) == pairs, "each pair has one position, STRATA_SEED=\(random.seed)")
        #expect(try container.coordinator.store.verify() == [], "STRATA_SEED=\(random.seed)")
        try await container.close()
    }
}
