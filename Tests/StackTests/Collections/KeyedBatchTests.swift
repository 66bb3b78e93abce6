import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Batches on keyed collections: deletions of ranges and imports of entries (S137, S192).
@Suite struct KeyedBatchTests {
    struct Draft: Codable, Sendable { var title: String }

    private static let keys = ["a", "b", "c", "d", "e"]
    private static let all = ["a=0", "b=1", "c=2", "d=3", "e=4"]

    private static func options(_ rows: Int = 100, _ durability: Durability = .durable) -> BatchOptions {
        var options = BatchOptions()
        options.rowsPerSave = rows
        options.durability = durability
        return options
    }

    /// Saves entries of the collection "numbers", and of two collections whose names begin like its name.
    private static func fill(_ container: PersistentContainer) async throws {
        try await container.write { context in
            for name in ["number", "numbers", "numbers2"] {
                let collection = try context.collection(name, of: Int.self)
                for (value, key) in keys.enumerated() { try collection.setValue(value, forKey: key) }
            }
        }
    }

    private static func shown(_ container: PersistentContainer, _ name: String = "numbers") async throws -> [String] {
        try await container.read { context in
            try context.collection(name, of: Int.self).all.entries().map { entry in "\(entry.key)=\(entry.value)" }
        }
    }

    private static func numbers(_ container: PersistentContainer) async throws -> KeyedCollectionReference<String, Int> {
        try await container.read { context in try context.collection("numbers", of: Int.self).reference }
    }

    private static func range(_ keys: Range<String>, _ container: PersistentContainer) async throws -> KeyedRangeReference {
        try await container.read { context in
            let numbers = try context.collection("numbers", of: Int.self)
            return numbers[keys].reference
        }
    }

    // MARK: Deletions

    @Test(arguments: Combination.all)
    func `S137, S192: a batch deletion removes a range of keys in one save and leaves all other keys`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let coordinator = container.coordinator
        try await Self.fill(container)
        let before = try await coordinator.history().count
        let result = try await coordinator.batchDelete(try await Self.range("b"..<"d", container))
        #expect(result.deletedCount == 2 && result.deletedIDs.count == 2 && result.changes.count == 1)
        #expect(result.insertedCount == 0 && result.updatedCount == 0)
        #expect(try await Self.shown(container) == ["a=0", "d=3", "e=4"])
        for name in ["number", "numbers2"] { #expect(try await Self.shown(container, name) == Self.all) }
        let saves = try await coordinator.history().dropFirst(before)
        #expect(saves.count == 1)
        let removed = saves.flatMap(\.changes).compactMap { change in change.removedEntry }
        #expect(removed.map { entry in entry.collection } == ["numbers", "numbers"])
        #expect(removed.map { entry in entry.key } == [Data("b".utf8), Data("c".utf8)])
        // Nothing is left to be deleted, or nothing is selected.
        for keys in ["b"..<"d", "e"..<"e"] {
            let again = try await coordinator.batchDelete(try await Self.range(keys, container))
            #expect(!again.hasChanged)
        }
        #expect(try await coordinator.history().count == before + 1)
        let numbers = try await Self.numbers(container)
        #expect(try await coordinator.batchDelete(numbers.all).deletedCount == 3)
        #expect(try await Self.shown(container).isEmpty)
        for name in ["number", "numbers2"] { #expect(try await Self.shown(container, name) == Self.all) }
        #expect(try await coordinator.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: a batch deletion of keys with several parts selects by their first part`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let log = try await container.read { context in
            try context.collection("log", of: String.self, key: (String, Int).self).reference
        }
        let entries = [
            (key: ("ann", 1), value: "in"), (key: ("ann", 2), value: "out"), (key: ("anna", 1), value: "in"),
        ]
        #expect(try await container.coordinator.insert(into: log, entries: entries).insertedCount == 3)
        let ann = try await container.read { context in
            let log = try context.collection("log", of: String.self, key: (String, Int).self)
            return log.range(withPrefix: "ann").reference
        }
        #expect(try await container.coordinator.batchDelete(ann).deletedCount == 2)
        let left = try await container.read { context in
            try context.collection("log", of: String.self, key: (String, Int).self).all.entries().map { entry in
                "\(entry.key.0) \(entry.key.1) \(entry.value)"
            }
        }
        #expect(left == ["anna 1 in"])
    }

    // MARK: Contexts

    @MainActor @Test(arguments: Combination.rooted)
    func `S110, S192: main and its live results show a batch deletion and an import`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        try await Self.fill(container)
        let numbers = try container.collection("numbers", of: Int.self)
        let results = try KeyedResults(numbers.all)
        try await until("main shows the entries") { results.count == 5 }
        try await container.coordinator.batchDelete(numbers["b"..<"d"].reference)
        try await until("the deletion is shown") { results.keys == ["a", "d", "e"] }
        #expect(numbers["b"] == nil)
        let entries = [(key: "c", value: 20), (key: "a", value: 10)]
        try await container.coordinator.insert(into: numbers.reference, entries: entries)
        try await until("the import is shown") { results.map { $0.value ?? -1 } == [10, 20, 3, 4] }
        #expect(results.keys == ["a", "c", "d", "e"] && numbers["a"] == 10)
        #expect(!container.mainContext.hasChanges)
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: unsaved changes of a context conflict with a batch deletion and an import under each policy`(
        _ kind: StoreKind
    ) async throws {
        for (policy, winner) in KeyedConflictTests.policies {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            try await Self.fill(container)
            let ours = container.coordinator.newBackgroundContext(name: "ours")
            try await ours.perform { context in
                context.mergePolicy = policy
                context.automaticallyMergesChanges = false
                let numbers = try context.collection("numbers", of: Int.self)
                for (key, value) in [("b", 10), ("d", 30), ("f", 50)] { try numbers.setValue(value, forKey: key) }
            }
            try await container.coordinator.batchDelete(try await Self.range("a"..<"c", container))
            let entries = [(key: "d", value: 40), (key: "f", value: 60)]
            try await container.coordinator.insert(into: try await Self.numbers(container), entries: entries)
            if case .error = policy {
                let error = await #expect(throws: SaveError.self) { try await ours.save() }
                guard case .conflicts(let conflicts) = error else { return _ = Issue.record("\(error as Any)") }
                #expect(conflicts.map(\.entityName).sorted() == ["numbers[\"b\"]", "numbers[\"d\"]", "numbers[\"f\"]"])
                continue
            }
            try await ours.save()
            let expected = winner == "ours" ? ["b=10", "c=2", "d=30", "e=4", "f=50"] : ["c=2", "d=40", "e=4", "f=60"]
            #expect(try await Self.shown(container) == expected, "\(policy)")
            #expect(try await container.coordinator.verify().isEmpty)
        }
    }

    // MARK: Imports

    @Test(arguments: StoreKind.allCases, [1, 2, 100])
    func `S137, S192: an import sets each value, and of two entries with one key the last one wins`(
        _ kind: StoreKind, _ rowsPerSave: Int
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await Self.fill(container)
        let entries = [
            (key: "a", value: 100), (key: "x", value: 1), (key: "b", value: 1), (key: "x", value: 2), (key: "a", value: 101),
        ]
        let result = try await container.coordinator.insert(
            into: try await Self.numbers(container), entries: entries, options: Self.options(rowsPerSave))
        #expect(try await Self.shown(container) == ["a=101", "b=1", "c=2", "d=3", "e=4", "x=2"])
        for name in ["number", "numbers2"] { #expect(try await Self.shown(container, name) == Self.all) }
        // The value of b is the one that it has.
        #expect(result.insertedCount == 1 && Set(result.updatedIDs).subtracting(result.insertedIDs).count == 1)
        #expect(try await container.coordinator.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `S137, S192: batches follow entries that are not on disk yet`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let numbers = try await Self.numbers(container)
        let deferred = Self.options(4, .deferred(within: .seconds(600)))
        let entries = (0..<9).map { number in (key: "k\(number)", value: number) }
        #expect(try await coordinator.insert(into: numbers, entries: entries, options: deferred).insertedCount == 9)
        let again = [(key: "k1", value: 10), (key: "k9", value: 90)]
        let updated = try await coordinator.insert(into: numbers, entries: again, options: deferred)
        #expect(updated.insertedCount == 1 && updated.updatedCount == 1)
        let range = try await Self.range("k3"..<"k9", container)
        #expect(try await coordinator.batchDelete(range, options: deferred).deletedCount == 6)
        for isOnDisk in [false, true] {
            if isOnDisk { try await coordinator.flush() }
            #expect(try await Self.shown(container) == ["k0=0", "k1=10", "k2=2", "k9=90"])
        }
        #expect(try await coordinator.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func `S190, S192: an import records the types of a new collection with its first entries`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let numbers = try await Self.numbers(container)
        // Without entries, nothing is recorded.
        let nothing: [(key: String, value: Int)] = []
        let empty = try await coordinator.insert(into: numbers, entries: nothing)
        #expect(!empty.hasChanged)
        let texts = try await container.read { try $0.collection("numbers", of: String.self).reference }
        let others = try await container.read { try $0.collection("numbers", of: Int.self, key: Int.self).all.reference }
        let unsaved = coordinator.newBackgroundContext(name: "unsaved")
        try await unsaved.perform { try $0.collection("numbers", of: String.self).setValue("two", forKey: "b") }
        let result = try await coordinator.insert(into: numbers, entries: [(key: "a", value: 1)])
        #expect(result.insertedCount == 1 && result.insertedIDs.count == 1 && result.changes.count == 1)
        let saves = try await coordinator.history().count
        let error = await #expect(throws: CollectionError.self) {
            try await coordinator.insert(into: texts, entries: [(key: "b", value: "two")])
        }
        #expect(
            error
                == .otherTypes(
                    collection: "numbers", stored: "values of type Int under keys of type String",
                    requested: "values of type String under keys of type String"))
        await #expect(throws: CollectionError.self) { try await coordinator.batchDelete(others) }
        await #expect(throws: CollectionError.self) { try await unsaved.save() }
        #expect(try await coordinator.history().count == saves)
        #expect(try await Self.shown(container) == ["a=1"])
        // A deletion of all entries keeps the types.
        try await coordinator.batchDelete(numbers.all)
        await #expect(throws: CollectionError.self) {
            try await coordinator.insert(into: texts, entries: [(key: "b", value: "two")])
        }
    }

    private struct Article: Codable, Sendable { var title: String }

    @Test(arguments: StoreKind.allCases)
    func `S190, S192: an import records the new name of the type of values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.write { try $0.collection("drafts", of: Draft.self).setValue(Draft(title: "A"), forKey: "a") }
        let articles = try await container.read {
            try $0.collection("drafts", of: Article.self, renamedFrom: "Draft").reference
        }
        let result = try await container.coordinator.insert(into: articles, entries: [(key: "b", value: Article(title: "B"))])
        #expect(result.insertedCount == 1 && result.updatedCount == 0)
        let titles = try await container.read { try $0.collection("drafts", of: Article.self).values.map(\.title) }
        #expect(titles == ["A", "B"])
        await #expect(throws: CollectionError.self) {
            try await container.read { try $0.collection("drafts", of: Draft.self).count }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S192: an import ends before a value that cannot be encoded`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let values = try await container.read { try $0.collection("values", of: KeyedUseTests.Unstorable.self).reference }
        let error = await #expect(throws: CollectionError.self) {
            try await container.coordinator.insert(into: values, entries: [(key: "a", value: KeyedUseTests.Unstorable())])
        }
        #expect(error?.description.contains("cannot store values[\"a\"]") == true)
        #expect(try await container.read { try $0.storedCollections().isEmpty })
    }

    // MARK: Progress

    @Test(arguments: StoreKind.allCases)
    func `S137, S192: an import of entries reports its saves, and a cancelled one keeps whole saves only`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let numbers = try await Self.numbers(container)
        let reports = Mutex<[String]>([])
        let entries = (0..<25).map { number in (key: "k\(number)", value: number) }
        try await coordinator.insert(into: numbers, entries: entries, options: Self.options(10)) { progress in
            reports.withLock { $0.append(progress.description) }
        }
        #expect(reports.withLock { $0 } == ["10 of 25 rows", "20 of 25 rows", "25 of 25 rows"])
        let many = (100..<2100).map { number in (key: "k\(number)", value: number) }
        let stopped = Task {
            try await coordinator.insert(into: numbers, entries: many, options: Self.options(10)) { progress in
                if progress.savedRows >= 20 { withUnsafeCurrentTask { $0?.cancel() } }
            }
        }
        let error = await #expect(throws: BatchError.self) { try await stopped.value }
        guard case .importStopped(let savedRows, let cause) = error else { return _ = Issue.record("\(error as Any)") }
        #expect(cause is CancellationError && (savedRows == 20 || savedRows == 30))
        #expect(try await container.read { try $0.collection("numbers", of: Int.self).count } == 25 + savedRows)
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await coordinator.insert(into: numbers, entries: [(key: "never", value: 0)])
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try await coordinator.verify().isEmpty)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S137, S192: an import reads lazy entries on the executor of its caller`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let numbers = try container.collection("numbers", of: Int.self)
        var made = 0
        // Written in the call, the compiler would choose the `map` that makes an array.
        let entries = (0..<25).lazy.map { number in
            MainActor.assertIsolated()
            made += 1
            return (key: "k\(number)", value: number)
        }
        let result = try await container.coordinator.insert(into: numbers.reference, entries: entries, options: Self.options(10))
        #expect(made == 25 && result.insertedCount == 25 && result.changes.count == 3)
    }

    @MainActor @Test(arguments: StoreKind.allCases)
    func `S192: the example of the article imports and deletes drafts`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let titles = ["Autumn", "autumn", "may", "spring"]
        // Sources/ObjectGraph/ObjectGraph.docc/KeyedCollections.md
        let drafts = try container.collection("drafts", of: Draft.self)
        let entries = titles.map { (key: $0, value: Draft(title: $0)) }
        try await container.coordinator.insert(into: drafts.reference, entries: entries)
        let result = try await container.coordinator.batchDelete(drafts["a"..<"n"].reference)
        print(result)  // 0 inserted, 0 updated, 2 deleted
        // end
        #expect("\(result)" == "0 inserted, 0 updated, 2 deleted")
        #expect("\(drafts.reference)" == "\(drafts)" && "\(drafts.all.reference)" == "a range of \(drafts)")
        try await until("main shows the batches") { try drafts.keys == ["Autumn", "spring"] }
    }
}
