import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes of ordered relationships in several contexts, compared with plain arrays.
@Suite struct OrderedRandomTests {
    /// The chapters of each book, as plain arrays.
    typealias Shelf = [ObjectID: [String]]

    private static func shelf(_ books: [ObjectID], in context: ManagedObjectContext) throws -> Shelf {
        var shelf: Shelf = [:]
        for id in books { shelf[id] = try context.existingObject(with: id).chapterTitles }
        return shelf
    }

    /// Changes the books of a context and the plain arrays in the same way. Returns the titles of the objects whose place was changed.
    private static func change(
        _ books: [ObjectID], _ shelf: inout Shelf, in context: ManagedObjectContext, _ random: inout SeededGenerator,
        _ prefix: String
    ) throws {
        let id = books[random.below(books.count)]
        let book = try context.existingObject(with: id)
        var titles = shelf[id] ?? []
        let title = "\(prefix)\(random.below(1_000_000_000))"
        switch random.below(8) {
        case 0:
            let chapter = context.makeChapter(title)
            chapter.setRelatedObject("book", to: book)
            titles.append(title)
        case 1:
            let at = random.below(titles.count + 1)
            book.chapters.insert(context.makeChapter(title), at: at)
            titles.insert(title, at: at)
        case 2 where !titles.isEmpty:
            context.delete(book.chapters[0])
            titles.removeFirst()
        case 3 where !titles.isEmpty:
            let (from, other) = (random.below(titles.count), books[random.below(books.count)])
            guard other != id else { return }
            let target = try context.existingObject(with: other)
            let at = random.below(target.chapters.count + 1)
            target.chapters.insert(book.chapters[from], at: at)
            shelf[other]?.insert(titles[from], at: at)
            titles.remove(at: from)
        case 4 where titles.count > 1 && random.chance(20):
            titles.shuffle(using: &random)
            book.arrangeChapters(titles)
        case 5 where titles.count > 3:
            let start = random.below(titles.count - 2)
            let block = Array(titles[start..<start + 2])
            titles.removeSubrange(start..<start + 2)
            titles.insert(contentsOf: block, at: random.below(titles.count + 1))
            book.arrangeChapters(titles)
        default:
            guard !titles.isEmpty else { return }
            let (from, to) = (random.below(titles.count), random.below(titles.count))
            titles.insert(titles.remove(at: from), at: to)
            book.arrangeChapters(titles)
        }
        shelf[id] = titles
    }

    private static func make(_ container: PersistentContainer) async throws -> [ObjectID] {
        let worker = await container.newBackgroundContext()
        return [try await Books.make(["a", "b", "c", "d"], in: worker), try await Books.make(["e"], in: worker)]
    }

    /// One random session in a context: changes, undo and redo, and a child. Returns the expected content.
    private static func session(
        _ books: [ObjectID], in worker: BackgroundContext, from committed: Shelf, _ random: inout SeededGenerator, _ round: String
    ) async throws -> Shelf {
        await worker.perform { $0.undoHistory = UndoHistory() }
        var pending = committed
        for step in 0..<1 + random.below(4) {
            let (start, generator) = (pending, random)
            (pending, random) = try await worker.perform { context throws in
                var (shelf, random) = (start, generator)
                for _ in 0..<1 + random.below(12) { try change(books, &shelf, in: context, &random, round) }
                #expect(try Self.shelf(books, in: context) == shelf, "round \(round), step \(step), STRATA_SEED=\(Seed.value)")
                return (shelf, random)
            }
            // A block that changes nothing is no group of changes.
            guard random.chance(30), pending != start else { continue }
            let expected = pending
            try await worker.perform { context throws in
                let history = try #require(context.undoHistory)
                try history.undo()
                #expect(try shelf(books, in: context) == start, "undo, round \(round), STRATA_SEED=\(Seed.value)")
                try history.redo()
                #expect(try shelf(books, in: context) == expected, "redo, round \(round), STRATA_SEED=\(Seed.value)")
            }
        }
        guard random.chance(40) else { return pending }
        let child = await worker.newBackgroundChild()
        let (start, generator) = (pending, random)
        (pending, random) = try await child.perform { context throws in
            var (shelf, random) = (start, generator)
            for _ in 0..<8 { try change(books, &shelf, in: context, &random, "c\(round)") }
            return (shelf, random)
        }
        try await child.save()
        return pending
    }

    @Test(arguments: Combination.all)
    func `S046: random changes in contexts and children equal changes of plain arrays`(_ combination: Combination) async throws {
        var random = SeededGenerator()
        let seed = random.seed
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Books.model())
        let books = try await Self.make(container)
        var committed: Shelf = [books[0]: ["a", "b", "c", "d"], books[1]: ["e"]]
        for round in 0..<Rounds.of(5, long: 200) {
            let worker = await container.newBackgroundContext(name: "round \(round)")
            let pending = try await Self.session(books, in: worker, from: committed, &random, "\(round)-")
            let shown = try await worker.perform { try Self.shelf(books, in: $0) }
            try #require(shown == pending, "STRATA_SEED=\(seed), round \(round)")
            if random.chance(15) {
                await worker.perform { $0.rollback() }
                let shown = try await worker.perform { try Self.shelf(books, in: $0) }
                #expect(shown == committed, "rollback, STRATA_SEED=\(seed), round \(round)")
            } else {
                try await worker.save(through: .store, random.chance(30) ? .deferred(within: .seconds(30)) : .durable)
                committed = pending
            }
            try await container.coordinator.refresh()
            let stored = try await container.coordinator.newBackgroundContext().perform { try Self.shelf(books, in: $0) }
            try #require(stored == committed, "STRATA_SEED=\(seed), round \(round)")
        }
        try await container.flush()
        #expect(try container.coordinator.store.verify() == [], "STRATA_SEED=\(seed)")
        try await container.close()
    }

    /// One side of a merge: the order that a context wanted, and the objects that it placed.
    private struct Side: Sendable {
        var shelf: Shelf
        var placed: Set<String>
    }

    private static func side(
        _ books: [ObjectID], in worker: BackgroundContext, _ prefix: String, _ random: inout SeededGenerator
    ) async throws -> Side {
        let generator = random
        let side: Side
        (side, random) = try await worker.perform { context throws in
            var random = generator
            var shelf = try Self.shelf(books, in: context)
            for _ in 0..<1 + random.below(4) { try Self.change(books, &shelf, in: context, &random, prefix) }
            #expect(try Self.shelf(books, in: context) == shelf)
            let placed = (context.insertedObjects + context.updatedObjects).filter { $0.entityName == "Chapter" }.map(\.title)
            return (Side(shelf: shelf, placed: Set(placed)), random)
        }
        return side
    }

    /// Each pair of objects that one context left alone has the order of the other.
    private static func check(_ merged: [String], _ book: ObjectID, _ sides: (Side, Side), _ note: String) {
        for (own, other) in [(sides.0, sides.1), (sides.1, sides.0)] {
            let wanted = (own.shelf[book] ?? []).filter { merged.contains($0) && !other.placed.contains($0) }
            let kept = Set(wanted)
            #expect(merged.filter(kept.contains) == wanted, "\(note)")
        }
    }

    @Test(arguments: StoreKind.allCases, ["storeTrump", "objectTrump", "overwrite", "rollback"])
    func `S107: merges of random orders converge and keep what the sides do not contradict`(
        _ kind: StoreKind, _ name: String
    ) async throws {
        let policies: [String: MergePolicy] = [
            "storeTrump": .storeTrump, "objectTrump": .objectTrump, "overwrite": .overwrite, "rollback": .rollback,
        ]
        let policy = try #require(policies[name])
        var random = SeededGenerator()
        let seed = random.seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Books.model())
        let books = try await Self.make(container)
        let workers = [container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext()]
        for worker in workers { await worker.perform { $0.mergePolicy = policy } }
        for round in 0..<Rounds.of(12, long: 400) {
            for worker in workers { await worker.perform { $0.refreshAllObjects() } }
            let first = try await Self.side(books, in: workers[0], "\(round)x-", &random)
            let second = try await Self.side(books, in: workers[1], "\(round)y-", &random)
            try await workers[0].save()
            let hasChanges = await workers[1].perform { $0.hasChanges }
            // A save that merges moves its context (S110). Without changes, there is no save.
            if hasChanges { try await workers[1].save() } else { await workers[1].perform { $0.refreshAllObjects() } }
            await workers[0].perform { $0.refreshAllObjects() }
            let merged = try await container.coordinator.newBackgroundContext().perform { try Self.shelf(books, in: $0) }
            for worker in workers {
                let shown = try await worker.perform { try Self.shelf(books, in: $0) }
                try #require(shown == merged, "STRATA_SEED=\(seed), round \(round)")
            }
            for book in books { Self.check(merged[book] ?? [], book, (first, second), "STRATA_SEED=\(seed), round \(round)") }
        }
        #expect(try container.coordinator.store.verify() == [], "STRATA_SEED=\(seed)")
        try await container.close()
    }
}
