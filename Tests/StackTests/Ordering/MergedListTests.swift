import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Ordered lists of objects with the same unique value, which a save merges into one object.
@Suite struct MergedListTests {
    private static let policies: [MergePolicy] = [.objectTrump, .overwrite, .storeTrump, .rollback]

    /// The hidden entity with the positions of songs in books.
    private static let order: EntityIndex = 3

    /// How the members of the lists are settled: whether their titles are unique, and whether their entities precede that of the lists.
    private enum Members {
        case repeatable, uniqueAfterLists, uniqueBeforeLists

        static let unique: [Members] = [.uniqueAfterLists, .uniqueBeforeLists]
    }

    /// Books with unique numbers. A chapter belongs to one book, and a song to any number of them.
    private static func model(_ members: Members = .repeatable) throws -> Model {
        let index: IndexKind = members == .repeatable ? .none : .unique
        let book = EntityDescription(
            name: "Book",
            properties: [
                .attribute(.init(name: "isbn", type: .int64, index: .unique)),
                .relationship(
                    .init(name: "chapters", destination: "Chapter", inverse: "book", cardinality: .toMany, isOrdered: true)),
                .relationship(.init(name: "songs", destination: "Song", inverse: "books", cardinality: .toMany, isOrdered: true)),
            ])
        let others = [
            EntityDescription(
                name: "Chapter",
                properties: [
                    .attribute(.init(name: "title", type: .string, index: index)),
                    .relationship(.init(name: "book", destination: "Book", inverse: "chapters", cardinality: .toOne)),
                ]),
            EntityDescription(
                name: "Song",
                properties: [
                    .attribute(.init(name: "title", type: .string, index: index)),
                    .relationship(.init(name: "books", destination: "Book", inverse: "songs", cardinality: .toMany)),
                ]),
        ]
        return try Model(members == .uniqueBeforeLists ? others + [book] : [book] + others)
    }

    /// Creates a book with the one number of these tests, and with a chapter and a song of each title.
    private static func makeBook(_ titles: [String], in context: ManagedObjectContext) -> ManagedObject {
        let book = context.insert("Book")
        book["isbn"] = 1
        book.chapters = titles.map { context.makeChapter($0) }
        book.songs = titles.map { context.makeSong($0) }
        return book
    }

    /// A store with a context that saves under a policy, and a root context.
    private struct Shelf {
        let bed: TestBed
        let container: PersistentContainer
        let ours: BackgroundContext
        let theirs: BackgroundContext

        init(_ combination: Combination, _ policy: MergePolicy, members: Members = .repeatable) async throws {
            try await self.init(combination.store, policy, stack: combination.stack, members: members)
        }

        init(_ store: StoreKind, _ policy: MergePolicy, stack: ContextStack = .siblings, members: Members) async throws {
            bed = try TestBed(store)
            container = try await bed.container(stack, model: try MergedListTests.model(members))
            ours = await container.makeBackgroundContext(name: "ours")
            theirs = container.newBatchOperationContext(name: "theirs")
            // The policy of the root counts.
            await MainActor.run { [container] in container.mainContext.mergePolicy = policy }
            await ours.perform { $0.mergePolicy = policy }
        }
    }

    /// Compares the stored titles of the chapters and songs of the only book, and counts the positions of the songs.
    private static func expect(_ titles: String, of book: ObjectID, in container: PersistentContainer) async throws {
        let chapters = try await Books.stored(book, in: container).joined()
        let songs = try await Mixes.stored(book, in: container)
        #expect(chapters == titles)
        #expect(songs == titles)
        let places = try container.coordinator.store.snapshot().count(StoreQuery(entity: order))
        #expect(places == titles.count, "each pair has one position")
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: members with positions of the new object's list, which come between those of the stored object.
    @Test(arguments: Combination.all, policies)
    func `S107, S108: members of a new object come after those of the stored object with its unique value`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        let shelf = try await Shelf(combination, policy)
        let book = try await shelf.theirs.perform(andSave: .durable) { Self.makeBook(["a"], in: $0).objectID }
        // Each save makes a position that does not go on from the one before.
        for title in ["b", "c"] {
            try await shelf.theirs.perform(andSave: .durable) { context in
                let book = try context.existingObject(with: book)
                book.add(context.makeChapter(title), to: "chapters")
                book.add(context.makeSong(title), to: "songs")
            }
        }
        await shelf.ours.perform { _ = Self.makeBook(["x", "y"], in: $0) }
        try await shelf.ours.save(through: .store)
        try await Self.expect("abcxy", of: book, in: shelf.container)
        if combination.stack == .siblings || combination.stack == .split {
            let (chapters, songs) = (try await Books.titles(book, in: shelf.ours), try await Mixes.titles(book, in: shelf.ours))
            #expect(chapters.joined() == "abcxy" && songs == "abcxy", "S110: the context shows the merged lists")
        }
        try await shelf.container.close()
    }

    /// Catches: members of two lists that alternate, because each list was arranged on its own.
    @Test(arguments: Combination.all, policies)
    func `S107, S176: the lists of new objects with one unique value follow each other`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        let shelf = try await Shelf(combination, policy)
        let books = await shelf.ours.perform { context in
            [["b", "a"], ["d", "c"]].map { titles in
                let book = Self.makeBook([titles[0]], in: context)
                book.chapters.insert(context.makeChapter(titles[1]), at: 0)
                book.songs.insert(context.makeSong(titles[1]), at: 0)
                return book.objectID
            }
        }
        try await shelf.ours.save(through: .store)
        try await Self.expect("abcd", of: books[0], in: shelf.container)
        try await shelf.container.close()
    }

    /// Catches: a member that loses its place in a list because it was moved to the list of an object that becomes the same one.
    @Test(arguments: Combination.rooted, policies)
    func `S107, S108: a member that a new object takes from the stored one keeps its place`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        let shelf = try await Shelf(combination, policy)
        let book = try await shelf.ours.perform(andSave: .durable) { Self.makeBook(["a", "b", "c"], in: $0).objectID }
        try await shelf.ours.perform { context in
            let stored = try context.existingObject(with: book)
            let (chapter, song) = (stored.chapters[1], stored.songs[1])
            let twin = Self.makeBook([], in: context)
            twin.chapters = [chapter, context.makeChapter("x")]
            twin.songs = [song, context.makeSong("x")]
        }
        try await shelf.ours.save()
        try await Self.expect("abcx", of: book, in: shelf.container)
        try await shelf.container.close()
    }

    /// Catches: a second position of a pair, with each repetition, and a stored member that goes to the place of the new one.
    @Test(arguments: Combination.rooted, policies)
    func `S107, S108: a stored member keeps its place if a new one with its unique value comes into the list`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        for members in Members.unique {
            let shelf = try await Shelf(combination, policy, members: members)
            let book = try await shelf.ours.perform(andSave: .durable) { Self.makeBook(["a", "b", "c"], in: $0).objectID }
            for _ in 0..<2 {
                try await shelf.ours.perform { context in
                    let stored = try context.existingObject(with: book)
                    stored.chapters.insert(context.makeChapter("c"), at: 0)
                    stored.songs.insert(context.makeSong("c"), at: 0)
                }
                try await shelf.ours.save()
                try await Self.expect("abc", of: book, in: shelf.container)
            }
            try await shelf.container.close()
        }
    }

    /// Catches: a position in the list that the context has chosen, which is lost because the member becomes a stored one.
    @Test(arguments: Combination.rooted, policies)
    func `S107, S108: a stored member comes to the place of a new one with its unique value if it is not in the list`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        for members in Members.unique {
            let shelf = try await Shelf(combination, policy, members: members)
            let book = try await shelf.ours.perform(andSave: .durable) { context in
                context.makeSong("x")
                return Self.makeBook(["a", "b"], in: context).objectID
            }
            try await shelf.ours.perform { context in
                let stored = try context.existingObject(with: book)
                stored.chapters.insert(context.makeChapter("x"), at: 1)
                stored.songs.insert(context.makeSong("x"), at: 1)
            }
            try await shelf.ours.save()
            try await Self.expect("axb", of: book, in: shelf.container)
            try await shelf.container.close()
        }
    }

    /// Catches: results that depend on which entity is settled first, and a second position of a pair.
    @Test(arguments: Combination.all, policies)
    func `S107, S108: a stored member keeps its place if a new list and its new member are merged`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        for members in Members.unique {
            let shelf = try await Shelf(combination, policy, members: members)
            let book = try await shelf.theirs.perform(andSave: .durable) { Self.makeBook(["a", "b", "c"], in: $0).objectID }
            await shelf.ours.perform { _ = Self.makeBook(["b", "x", "a", "y"], in: $0) }
            try await shelf.ours.save(through: .store)
            try await Self.expect("abcxy", of: book, in: shelf.container)
            try await shelf.container.close()
        }
    }

    /// Catches: a move of the stored member that is lost with the position of the new one.
    @Test(arguments: Combination.rooted, policies)
    func `S107, S108: a moved member stays where it was moved if a new one with its unique value comes into the list`(
        _ combination: Combination, _ policy: MergePolicy
    ) async throws {
        for members in Members.unique {
            let shelf = try await Shelf(combination, policy, members: members)
            let book = try await shelf.ours.perform(andSave: .durable) { Self.makeBook(["a", "b", "c"], in: $0).objectID }
            try await shelf.ours.perform { context in
                let stored = try context.existingObject(with: book)
                let (chapters, songs) = (stored.chapters, stored.songs)
                stored.chapters = [chapters[2], chapters[0], chapters[1]]
                stored.songs = [songs[2], songs[0], songs[1]]
                _ = Self.makeBook(["c", "x"], in: context)
            }
            try await shelf.ours.save()
            try await Self.expect("cabx", of: book, in: shelf.container)
            try await shelf.container.close()
        }
    }

    /// Catches: two positions of one pair, and an order that depends on which entity is settled first.
    @Test(arguments: StoreKind.allCases, policies)
    func `S107, S176: new members with one unique value have the first of their places`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        for members in Members.unique {
            let shelf = try await Shelf(kind, policy, members: members)
            let book = await shelf.ours.perform { context in
                let (first, second) = (context.makeSong("b"), context.makeSong("b"))
                // The song that lives comes last.
                let books = [[second, context.makeSong("a")], [first, context.makeSong("c"), context.makeSong("a")]].map {
                    songs in
                    let book = Self.makeBook([], in: context)
                    book.songs = songs
                    return book
                }
                return books[0].objectID
            }
            try await shelf.ours.save()
            let songs = try await Mixes.stored(book, in: shelf.container)
            #expect(songs == "bac")
            let places = try shelf.container.coordinator.store.snapshot().count(StoreQuery(entity: Self.order))
            #expect(places == 3, "each pair has one position")
            #expect(try shelf.container.coordinator.store.verify() == [])
            try await shelf.container.close()
        }
    }
}
