import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The part of `storage` with indexes and a relationship: items with an indexed number, a hundred on a shelf.
struct Shelves: Sendable {
    private let count: Int
    private let saveEvery: Int
    private let durability: DurabilityKind
    /// By item, counted from 0: the numbers are a permutation, so that a range of a hundred holds a hundred items.
    private let numbers: [Int64]
    /// The beginnings of the ranges asked for.
    private let starts: [Int64]

    private static let width = 100

    init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        count = max(objects / Self.width, 2) * Self.width
        self.saveEvery = saveEvery
        self.durability = durability
        var random = SeededNumbers(seed: seed &+ 2)
        numbers = (0..<Int64(count)).shuffled(using: &random)
        let last = count - Self.width
        starts = (0..<1_000).map { _ in Int64(random.below(last)) }
    }

    private func check(_ what: String, _ found: Int, _ expected: Int) throws {
        guard found == expected else { throw VerificationError("storage: \(what) gave \(found), expected \(expected)") }
    }

    private var sum: Int { count * (count - 1) / 2 }
    private var deleted: [Int] { Array(stride(from: 0, to: count, by: 5)) }

    private func cost(_ count: Int, _ body: () throws -> Void) rethrows -> Double {
        let start = Clock.now()
        try body()
        return Double(Clock.now() - start) / Double(count)
    }

    // MARK: In C calls

    func runSQLite() throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let database = try SQLiteFloor(path: folder.path("shelves.sqlite"), durability: durability).database
        try database.execute("CREATE TABLE Item (id_key INTEGER PRIMARY KEY, number INTEGER, shelf INTEGER)")
        try database.execute("CREATE INDEX Item_number ON Item (number)")
        try database.execute("CREATE INDEX Item_shelf ON Item (shelf)")
        let insert = try database.prepare("INSERT INTO Item VALUES (?, ?, ?)")
        try database.execute("BEGIN IMMEDIATE")
        for item in 0..<count {
            insert.bind(1, Int64(item + 1))
            insert.bind(2, numbers[item])
            insert.bind(3, Int64(item / Self.width + 1))
            try insert.run()
        }
        try database.execute("COMMIT")
        var costs: [StorageOperation: Double] = [:]
        var found = 0
        let range = try database.prepare("SELECT id_key FROM Item WHERE number >= ? AND number < ?")
        try database.execute("BEGIN")
        costs[.range] = try cost(starts.count * Self.width) {
            for start in starts {
                range.bind(1, start)
                range.bind(2, start + Int64(Self.width))
                while try range.step() { found += range.int(0) > 0 ? 1 : 0 }
                range.reset()
            }
        }
        try check("indexed ranges on raw SQLite", found, starts.count * Self.width)
        var sum = 0
        let walk = try database.prepare("SELECT number FROM Item WHERE shelf = ?")
        costs[.walk] = try cost(count) {
            for shelf in 1...(count / Self.width) {
                walk.bind(1, Int64(shelf))
                while try walk.step() { sum += Int(walk.int(0)) }
                walk.reset()
            }
        }
        try database.execute("COMMIT")
        try check("the walk on raw SQLite", sum, self.sum)
        let delete = try database.prepare("DELETE FROM Item WHERE id_key = ?")
        let deleted = deleted
        costs[.delete] = try cost(deleted.count) {
            for first in stride(from: 0, to: deleted.count, by: saveEvery) {
                try database.execute("BEGIN IMMEDIATE")
                for item in deleted[first..<min(deleted.count, first + saveEvery)] {
                    delete.bind(1, Int64(item + 1))
                    try delete.run()
                }
                try database.execute("COMMIT")
            }
        }
        return costs
    }

    // MARK: Through objects

    private static func model() throws -> Model {
        try Model([
            EntityDescription(
                name: "Shelf",
                properties: [
                    .attribute(AttributeDescription(name: "name", type: .string)),
                    .relationship(
                        RelationshipDescription(name: "items", destination: "Item", inverse: "shelf", cardinality: .toMany)),
                ]),
            EntityDescription(
                name: "Item",
                properties: [
                    .attribute(AttributeDescription(name: "number", type: .int64, index: .indexed)),
                    .relationship(
                        RelationshipDescription(name: "shelf", destination: "Shelf", inverse: "items", cardinality: .toOne)),
                ]),
        ])
    }

    func runStrata(_ store: StoreKind) async throws -> [StorageOperation: Double] {
        let folder = try RunFolder()
        let model = try Self.model()
        let container = try await PersistentContainer(model: model, store: folder.store(store, .snapshot), stack: .siblings)
        let writer = await container.newBackgroundContext(name: "import")
        let ids = await writer.perform { fill($0, model) }
        try await writer.save()
        let reader = await container.newBackgroundContext(name: "reader")
        var costs = try await reader.perform { context throws -> [StorageOperation: Double] in try read(context, ids.shelves) }
        let start = Clock.now()
        let deleted = deleted
        for first in stride(from: 0, to: deleted.count, by: saveEvery) {
            await writer.perform { context in
                for item in deleted[first..<min(deleted.count, first + saveEvery)] {
                    context.delete(context.object(with: ids.items[item]))
                }
            }
            try await writer.save(durability.durability)
        }
        if durability == .deferred { try await container.flush() }
        costs[.delete] = Double(Clock.now() - start) / Double(deleted.count)
        let left = try await container.newBackgroundContext(name: "check").perform { context throws in
            try context.count(EntityFetchRequest("Item"))
        }
        try check("deleting", left, count - deleted.count)
        return costs
    }

    private func fill(_ context: ManagedObjectContext, _ model: Model) -> (shelves: [ObjectID], items: [ObjectID]) {
        guard let shelf = model.entity(named: "Shelf"), let item = model.entity(named: "Item") else { return ([], []) }
        var shelves: [ManagedObject] = []
        var items: [ObjectID] = []
        for number in 0..<count {
            if number % Self.width == 0 {
                shelves.append(context.insert(shelf, values: [.string("shelf \(number / Self.width)")]))
            }
            let place = Value.reference(shelves[number / Self.width].objectID.key)
            items.append(context.insert(item, values: [.int(numbers[number]), place]).objectID)
        }
        return (shelves.map(\.objectID), items)
    }

    private func read(_ context: ManagedObjectContext, _ shelves: [ObjectID]) throws -> [StorageOperation: Double] {
        var costs: [StorageOperation: Double] = [:]
        var found = 0
        costs[.range] = try cost(starts.count * Self.width) {
            for start in starts {
                let range = Condition.all([
                    .compare("number", .greaterOrEqual, .int(start)), .compare("number", .less, .int(start + Int64(Self.width))),
                ])
                found += try context.fetchIDs(EntityFetchRequest("Item", matching: range)).count
            }
        }
        try check("indexed ranges", found, starts.count * Self.width)
        var sum = 0
        costs[.walk] = cost(count) {
            for shelf in shelves {
                for item in context.object(with: shelf).relatedObjects("items") {
                    if case .int(let number) = item["number"] { sum += Int(number) }
                }
            }
        }
        try check("the walk", sum, self.sum)
        return costs
    }
}
