import Foundation
import Strata
import Testing

/// Model layers written for SwiftData keep their data, in every store.
@Suite @MainActor struct ModelShapeTests {
    /// Runs `write` in a main context, then with another store in a child that saves through.
    ///
    /// Runs `compare` in another container with the same store: in its main context, in a child, and after `change` was saved in a context
    /// that reads the snapshot from before.
    private func reopen(
        _ store: TestStore, _ types: [any PersistentModel.Type], write: @MainActor (ManagedObjectContext) throws -> Void,
        compare: @MainActor (ManagedObjectContext) throws -> Void, change: @MainActor (ManagedObjectContext) throws -> Void
    ) async throws {
        for isChild in [false, true] {
            try await store.use { description in
                // Kept until the end for the sake of the store in memory.
                let first = try await PersistentContainer(model: Model(types), store: description)
                let writer = isChild ? first.mainContext.newChild(name: "writer") : first.mainContext
                try write(writer)
                try await writer.save(through: .store)
                let second = try await PersistentContainer(model: Model(types), store: description)
                let main = second.mainContext
                try compare(main)
                let child = main.newChild(name: "reader")
                try compare(child)
                let snapshot = try second.coordinator.snapshot()
                try change(main)
                #expect(main.hasChanges)
                try await main.save()
                main.read(from: snapshot)
                try compare(main)
                withExtendedLifetime((first, writer, second, child)) {}
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S173: a set of models has its inverse in a class of another file`(_ store: TestStore) async throws {
        try await reopen(store, [BookSet.self, SetBook.self]) { context in
            let set = BookSet()
            set.books = [SetBook("A"), SetBook("B")]
            context.insert(set)
        } compare: { context in
            let set = try #require(context.fetch(FetchRequest<BookSet>()).first)
            #expect(set.books.map(\.title).sorted() == ["A", "B"])
            #expect(try context.fetch(FetchRequest<SetBook>()).allSatisfy { $0.owner === set && set.books.contains($0) })
        } change: { context in
            for set in try context.fetch(FetchRequest<BookSet>()) { set.books = [] }
        }
    }

    /// Catches: a destination that is the text of the property's type, which is no name of an entity.
    @Test(arguments: TestStore.allCases)
    func `S173: an annotated relationship leads to a class that the source names by an alias`(_ store: TestStore) async throws {
        try await reopen(store, Crates.types) { context in
            let items = [Crates.Item(number: 1), Crates.Item(number: 2)]
            context.insert(Crates.Crate(name: "top", items: items, seal: Crates.Seal(text: "new")))
        } compare: { context in
            let crate = try #require(context.fetch(FetchRequest<Crates.Crate>()).first)
            #expect(crate.items.map(\.number).sorted() == [1, 2] && crate.seal?.text == "new")
            #expect(crate.items.allSatisfy { $0.crate === crate })
        } change: { context in
            for crate in try context.fetch(FetchRequest<Crates.Crate>()) { context.delete(crate) }
            #expect(try context.count(FetchRequest<CrateSchema.Part>()) == 0)
            #expect(try context.count(FetchRequest<CrateSchema.Stamp>()) == 0)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a private property of a private type is stored`(_ store: TestStore) async throws {
        try await reopen(store, [Bookmark.self]) { context in
            let bookmark = Bookmark(title: "a")
            bookmark.move(to: 3)
            context.insert(bookmark)
            bookmark.move(to: 7)
        } compare: { context in
            let bookmark = try #require(context.fetch(FetchRequest<Bookmark>()).first)
            #expect(bookmark.summary == "a, page 7, moved 2 times")
        } change: { context in
            for bookmark in try context.fetch(FetchRequest<Bookmark>()) { bookmark.move(to: 9) }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S173: relationships without annotation come back with their inverses`(_ store: TestStore) async throws {
        let id = UUID()
        try await reopen(store, Shelves.types) { context in
            let shelf = Shelves.Shelf(id: id, name: "top")
            let label = Shelves.Label(text: "blue")
            context.insert(shelf)
            context.insert(label)
            for number in 1...3 {
                let volume = Shelves.Volume(title: "volume \(number)", labels: [label], shelf: shelf)
                context.insert(volume)
                context.insert(Shelves.Mark(page: number, volume: volume))
                volume.position = Shelves.Position(page: number, offset: number == 2 ? 0.5 : nil)
                volume.lastDirection = number == 1 ? nil : .leftToRight
                let cover = Shelves.Cover()
                context.insert(cover)
                volume.cover = cover
            }
            #expect(label.volumes.count == 3)
            #expect(shelf.volumes?.map(\.title) == ["volume 1", "volume 2", "volume 3"])
        } compare: { context in
            let shelf = try #require(
                try context.fetch(FetchRequest<Shelves.Shelf>(where: #Predicate { $0.id == id })).first)
            #expect(shelf.id == id && shelf.name == "top")
            let volumes = try #require(shelf.volumes)
            #expect(volumes.map(\.title) == ["volume 1", "volume 2", "volume 3"])
            #expect(volumes.map(\.position?.page) == [1, 2, 3] && volumes.map(\.position?.offset) == [nil, 0.5, nil])
            #expect(volumes.map(\.lastDirection) == [nil, .leftToRight, .leftToRight])
            #expect(volumes.allSatisfy { $0.direction == .rightToLeft && $0.labels.map(\.text) == ["blue"] })
            #expect(volumes.map { $0.marks.map(\.page) } == [[1], [2], [3]])
            #expect(volumes.allSatisfy { volume in volume.marks.allSatisfy { $0.volume === volume } })
            #expect(volumes.allSatisfy { $0.cover?.volume === $0 })
            #expect(Set(volumes.map(\.id)).count == 3)
            let blue = FetchRequest<Shelves.Volume>(where: #Predicate { $0.labels.contains { $0.text == "blue" } })
            #expect(try context.count(blue) == 3)
            #expect(try context.count(FetchRequest<Shelves.Mark>(where: #Predicate { $0.volume.title == "volume 2" })) == 1)
        } change: { context in
            // Marks are not optional, so they go first.
            for mark in try context.fetch(FetchRequest<Shelves.Mark>()) { context.delete(mark) }
            for shelf in try context.fetch(FetchRequest<Shelves.Shelf>()) { context.delete(shelf) }
            #expect(try context.count(FetchRequest<Shelves.Volume>()) == 0)
            #expect(try context.count(FetchRequest<Shelves.Cover>()) == 0)
            #expect(try context.fetch(FetchRequest<Shelves.Label>()).map(\.volumes) == [[]])
        }
    }

    /// Catches: a set of models that is stored like a set of values, or that gets no inverse.
    @Test(arguments: TestStore.allCases)
    func `S173: sets of models without annotation are relationships with inverses`(_ store: TestStore) async throws {
        try await reopen(store, Choirs.types) { context in
            let songs = [Choirs.Song("one"), Choirs.Song("two")]
            let choir = Choirs.Choir(name: "a", songs: Set(songs))
            context.insert(choir)
            choir.singers = [Choirs.Singer("Ann"), Choirs.Singer("Bob")]
            choir.guests = [Choirs.Guest("Cid")]
            choir.years = [1999, 2001]
            let other = Choirs.Choir(name: "b", songs: [])
            context.insert(other)
            // From the other ends.
            Choirs.Singer("Dan").choir = other
            songs[0].choirs.insert(other)
            #expect(other.singers.map(\.name) == ["Dan"] && other.songs == [songs[0]])
            #expect(songs[0].choirs == [choir, other] && songs[1].choirs == [choir])
        } compare: { context in
            let choirs = try context.fetch(FetchRequest<Choirs.Choir>(sortBy: [.init(\.name)]))
            try #require(choirs.map(\.name) == ["a", "b"])
            #expect(choirs.map { $0.singers.map(\.name).sorted() } == [["Ann", "Bob"], ["Dan"]])
            #expect(choirs.map { $0.songs.map(\.title).sorted() } == [["one", "two"], ["one"]])
            #expect(choirs.map { $0.guests?.map(\.name) ?? [] } == [["Cid"], []])
            #expect(choirs.map(\.years) == [[1999, 2001], []])
            #expect(choirs.allSatisfy { choir in choir.singers.allSatisfy { $0.choir === choir } })
            let songs = try context.fetch(FetchRequest<Choirs.Song>(sortBy: [.init(\.title)]))
            #expect(songs.map(\.choirs) == [Set(choirs), [choirs[0]]])
            let withBob = FetchRequest<Choirs.Choir>(where: #Predicate { $0.singers.contains { $0.name == "Bob" } })
            #expect(try context.fetch(withBob) == [choirs[0]])
            let entity = try #require(context.model.entity(named: "Choir"))
            #expect(entity.relationships.map(\.name) == ["singers", "songs", "guests"])
            #expect(entity.relationships.map { $0.inverse != nil } == [true, true, false])
            #expect(context.model.inverseWarnings.isEmpty)
        } change: { context in
            let choirs = try context.fetch(FetchRequest<Choirs.Choir>(sortBy: [.init(\.name)]))
            let moved = try #require(choirs[0].singers.first)
            choirs[1].singers.insert(moved)
            #expect(moved.choir === choirs[1] && choirs[0].singers.count == 1 && choirs[1].singers.count == 2)
            choirs[1].songs = []
            #expect(try context.fetch(FetchRequest<Choirs.Song>()).allSatisfy { $0.choirs.subtracting([choirs[0]]).isEmpty })
            context.delete(choirs[0])
            let singers = try context.fetch(FetchRequest<Choirs.Singer>())
            #expect(singers.count == 3 && singers.count { $0.choir == nil } == 1)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S173: enums, structures and collections need no conformances`(_ store: TestStore) async throws {
        var random = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0 ... .max, using: &random)
        var generator = Seeded(state: seed)
        let expected = (0..<40).map { _ in Expense(&generator) }
        try await reopen(store, Spending.types) { context in
            for (number, values) in expected.enumerated() {
                let receipt = Spending.Receipt(amount: 0, currency: .euro)
                receipt.number = Int64(number)
                // Half of the objects get their values before they are inserted.
                if number.isMultiple(of: 2) { context.insert(receipt) }
                values.write(to: receipt)
                context.insert(receipt)
                #expect(Expense(receipt) == values, "seed \(seed)")
            }
        } compare: { context in
            let request = FetchRequest<Spending.Receipt>(sortBy: [.init(\.number)])
            let found = try context.fetch(request)
            #expect(found.map(Expense.init) == expected, "seed \(seed)")
            for (receipt, values) in zip(found, expected) {
                values.write(to: receipt)
                #expect(!receipt.hasChanges, "equal values are no change, seed \(seed)")
            }
            let limit = expected[0].amount
            let larger = FetchRequest<Spending.Receipt>(where: #Predicate { $0.amount > limit }, sortBy: [.init(\.amount)])
            #expect(
                try context.fetch(larger).map(\.amount) == expected.map(\.amount).filter { $0 > limit }.sorted(), "seed \(seed)")
            let krone = Spending.Currency.krone
            let inKrone = FetchRequest<Spending.Receipt>(where: #Predicate { $0.currency == krone })
            #expect(try context.count(inKrone) == expected.count { $0.currency == .krone }, "seed \(seed)")
        } change: { context in
            let found = try context.fetch(FetchRequest<Spending.Receipt>(sortBy: [.init(\.number)]))
            for (receipt, values) in zip(found, expected.reversed()) { values.write(to: receipt) }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S173: a self reference gets its inverse, and one of several candidates none`(_ store: TestStore) async throws {
        try await reopen(store, Lists.types) { context in
            let root = Lists.Folder(name: "root")
            let child = Lists.Folder(name: "child", parent: root)
            context.insert(root)
            context.insert(child)
            let errands = Lists.Errands()
            context.insert(errands)
            errands.status = .done
            errands.folder = child
            errands.first = root
            child.lists = [errands]
        } compare: { context in
            let root = try #require(
                try context.fetch(FetchRequest<Lists.Folder>(where: #Predicate { $0.parent == nil })).first)
            let child = try #require(root.children?.first)
            #expect(root.children?.count == 1 && child.parent === root && child.path == "root/child")
            let errands = try #require(child.lists.first)
            #expect(errands.status == .done && errands.title == "errands" && errands._title == 7)
            #expect(errands.folder === child && errands.first === root)
            let description = try #require(context.model.entity(named: "Errands"))
            #expect(description.relationships.allSatisfy { $0.inverse == nil })
        } change: { context in
            let root = try #require(
                try context.fetch(FetchRequest<Lists.Folder>(where: #Predicate { $0.parent == nil })).first)
            let child = try #require(root.children?.first)
            let errands = try #require(child.lists.first)
            child.lists = []
            #expect(errands.folder === child)
            root.children = nil
            #expect(root.children == [] && child.parent == nil)
        }
    }

    @Test func `S173: a class says itself whether it is Sendable`() async throws {
        let shared = Shared()
        #expect(await Task.detached { shared.name }.value == "shared")
    }

    @Test func `S173: relationships of earlier versions are not paired, and a refused inverse stays refused`() throws {
        func one(_ name: String, _ to: String, _ inference: InverseInference) -> PropertyDescription {
            .relationship(RelationshipDescription(name: name, destination: to, cardinality: .toOne, inference: inference))
        }
        func model(_ a: [PropertyDescription], _ b: [PropertyDescription]) throws -> [Int?] {
            let model = try Model([EntityDescription(name: "A", properties: a), EntityDescription(name: "B", properties: b)])
            return model.entities.flatMap { $0.relationships.map(\.inverse) }
        }
        #expect(try model([one("b", "B", .accepted)], [one("a", "A", .accepted)]) == [nil, nil])
        #expect(try model([one("b", "B", .wanted)], [one("a", "A", .refused)]) == [nil, nil])
        #expect(try model([one("b", "B", .wanted)], [one("a", "A", .accepted)]) == [0, 0])
        #expect(try model([one("b", "B", .wanted)], [one("a", "A", .wanted), one("c", "A", .accepted)]) == [nil, nil, nil])
        let ambiguous = try Model([
            EntityDescription(name: "A", properties: [one("b", "B", .wanted)]),
            EntityDescription(name: "B", properties: [one("a", "A", .accepted), one("c", "A", .accepted)]),
        ])
        #expect(ambiguous.inverseWarnings.count == 1)
        #expect(ambiguous.inverseWarnings.first?.contains("among A.b, B.a, B.c: ") == true)
        #expect(try Model(Lists.types).inverseWarnings.first?.contains("Errands.first, Errands.folder, Folder.lists") == true)
        #expect(try Model(Shelves.types).inverseWarnings.isEmpty && Model(Spending.types).inverseWarnings.isEmpty)
        #expect(try model([one("b", "B", .wanted), one("n", "A", .wanted), one("p", "A", .wanted)], []) == [nil, nil, nil])
    }

    /// Catches: a model written for SwiftData, which pairs such ends, whose ends do not change each other here, without a word.
    @Test func `S173: two ends with @Relationship that name no inverse are reported, with the remedy`() throws {
        let model = try Model(Harbors.types)
        let text = model.inverseWarnings.joined(separator: "\n")
        #expect(model.inverseWarnings.count == 2)
        #expect(text.contains("Harbor.ships and Ship.harbor are inverses: both have @Relationship without inverse:"), "\(text)")
        #expect(text.contains("Harbor.branches and Harbor.parent are inverses"), "\(text)")
        #expect(text.contains("write @Relationship(inverse: nil) at one end"), "\(text)")
        for (entity, name) in [("Harbor", "ships"), ("Ship", "harbor"), ("Harbor", "parent"), ("Crane", "harbor")] {
            let relationship = try #require(model.entity(named: entity)?.relationship(named: name))
            #expect(relationship.inverse == nil)
        }
        // A model that is described at run time names its inverses, and is not reported.
        #expect(try Model(Harbors.types.map { $0.entityDescription }).inverseWarnings.isEmpty)
    }
}

/// A generator whose numbers can be had again by its seed.
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The values of a receipt, apart from its object.
private struct Expense: Equatable {
    var amount: Decimal
    var tip: Decimal?
    var currency: Spending.Currency
    var fallback: Spending.Currency?
    var priority: Spending.Priority
    var other: Spending.Priority?
    var method: Spending.Method
    var methods: [Spending.Method]
    var place: Spending.Place?
    var places: [Spending.Place]
    var tags: [String]
    var counts: [String: Int]
    var words: Set<String>
    var shares: [Decimal]?
    var history: [Spending.Currency]
    var flags: Spending.Flags

    init(_ random: inout Seeded) {
        func decimal() -> Decimal {
            Decimal(Int64.random(in: -9_999_999...9_999_999, using: &random)) / [1, 10, 100, 1000].randomElement(using: &random)!
        }
        func method() -> Spending.Method {
            [.cash, .card(number: "\(Int.random(in: 0...9, using: &random))"), .split([0.5, 1, .infinity])]
                .randomElement(using: &random)!
        }
        func place() -> Spending.Place {
            Spending.Place(name: "ü\(Int.random(in: 0...9, using: &random))", notes: Bool.random(using: &random) ? nil : [""])
        }
        func some<T>(_ value: T) -> T? { Bool.random(using: &random) ? nil : value }
        func list<T>(_ element: () -> T) -> [T] { (0..<Int.random(in: 0...4, using: &random)).map { _ in element() } }
        func word() -> String { "w\(Int.random(in: 0...99, using: &random))" }
        amount = decimal()
        tip = some(decimal())
        currency = Spending.Currency.allCases.randomElement(using: &random)!
        fallback = some(.krone)
        priority = some(.low) ?? .high
        other = some(.high)
        self.method = method()
        methods = list(method)
        self.place = some(place())
        places = list(place)
        tags = list(word)
        counts = Dictionary(list { (word(), Int.random(in: 0...9, using: &random)) }, uniquingKeysWith: +)
        words = Set(list(word))
        shares = some(list(decimal))
        history = list { .euro }
        flags = some([.shared, .late]) ?? []
    }

    init(_ receipt: Spending.Receipt) {
        amount = receipt.amount
        tip = receipt.tip
        currency = receipt.currency
        fallback = receipt.fallback
        priority = receipt.priority
        other = receipt.other
        method = receipt.method
        methods = receipt.methods
        place = receipt.place
        places = receipt.places
        tags = receipt.tags
        counts = receipt.counts
        words = receipt.words
        shares = receipt.shares
        history = receipt.history
        flags = receipt.flags
    }

    func write(to receipt: Spending.Receipt) {
        receipt.amount = amount
        receipt.tip = tip
        receipt.currency = currency
        receipt.fallback = fallback
        receipt.priority = priority
        receipt.other = other
        receipt.method = method
        receipt.methods = methods
        receipt.place = place
        receipt.places = places
        receipt.tags = tags
        receipt.counts = counts
        receipt.words = words
        receipt.shares = shares
        receipt.history = history
        receipt.flags = flags
    }
}
