import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The part of `storage` with indexes and a relationship: items with an indexed number, a hundred per shelf.
struct IndexedWorkload: Sendable {
    let count: Int
    let saveEvery: Int
    let durability: DurabilityKind
    /// The number of each item. The numbers are a permutation, so a range of a hundred numbers has a hundred items.
    let numbers: [Int64]
    /// The lower bounds of the requested ranges.
    let starts: [Int64]
    /// The deleted items, in order.
    let deleted: [Int]
    /// The expected content of a file at the end: the number and the shelf of each remaining item.
    var left = Checksum()

    static let width = 100

    init(objects: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        count = max(objects / Self.width, 2) * Self.width
        self.saveEvery = saveEvery
        self.durability = durability
        var random = SeededNumbers(seed: seed &+ 2)
        numbers = (0..<Int64(count)).shuffled(using: &random)
        let last = count - Self.width
        starts = (0..<1_000).map { _ in Int64(random.below(last)) }
        deleted = Array(stride(from: 0, to: count, by: 5))
        for item in 0..<count where item % 5 != 0 { Self.add(item, number: numbers[item], shelf: item / Self.width, to: &left) }
    }

    /// Adds the stored values of an item. Items and shelves count from 0.
    static func add(_ item: Int, number: Int64, shelf: Int, to sum: inout Checksum) {
        sum.add(item, column: 0, value: .int(number))
        sum.add(item, column: 1, value: .int(Int64(shelf)))
    }

    func check(_ what: String, found: Int, expected: Int) throws {
        guard found == expected else { throw VerificationError("storage: \(what) gave \(found), expected \(expected)") }
    }

    var sum: Int { count * (count - 1) / 2 }

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
        let model = try Self.model()
        return try await RunFolder().run(.siblings(store), model: model) { container in
            try await work(container, model)
        } check: { container, work in
            try await check(container, shelves: work.shelves, items: work.items)
        }.costs
    }

    private func work(
        _ container: PersistentContainer, _ model: Model
    ) async throws -> (costs: [StorageOperation: Double], shelves: [ObjectID], items: [ObjectID]) {
        let writer = await container.newBackgroundContext(name: "import")
        let ids = await writer.perform { fill($0, model) }
        try await writer.save()
        let reader = await container.newBackgroundContext(name: "reader")
        var costs = try await reader.perform { context throws -> [StorageOperation: Double] in
            try read(context, model: model, shelves: ids.shelves)
        }
        let start = Clock.now()
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
        return (costs, ids.shelves, ids.items)
    }

    /// Throws unless the remaining items have their values, in a scan and from their shelves.
    private func check(_ container: PersistentContainer, shelves: [ObjectID], items: [ObjectID]) async throws {
        try await container.newBackgroundContext(name: "check").perform { context throws -> Void in
            let numbers = Dictionary(uniqueKeysWithValues: items.enumerated().map { ($1.key, $0) })
            let places = Dictionary(uniqueKeysWithValues: shelves.enumerated().map { ($1.key, $0) })
            var scanned = Checksum()
            func add(_ item: ManagedObject, on shelf: Int, to sum: inout Checksum) {
                guard case .int(let number) = item["number"] else { return }
                Self.add(numbers[item.objectID.key] ?? -1, number: number, shelf: shelf, to: &sum)
            }
            var all = EntityFetchRequest("Item")
            all.fetchBatchSize = 32_768
            try context.forEachBatch(of: all) { batch in
                for item in batch {
                    add(item, on: item["shelf"].referenceKey.flatMap { places[$0] } ?? -1, to: &scanned)
                }
            }
            try scanned.check("storage: items after deleting", left)
            var walked = Checksum()
            for (number, shelf) in shelves.enumerated() {
                for item in context.object(with: shelf).relatedObjects("items") { add(item, on: number, to: &walked) }
            }
            try walked.check("storage: shelves after deleting", left)
        }
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

    private func read(
        _ context: ManagedObjectContext, model: Model, shelves: [ObjectID]
    ) throws -> [StorageOperation: Double] {
        guard let attribute = model.entity(named: "Item")?.attribute(named: "number") else { return [:] }
        var costs: [StorageOperation: Double] = [:]
        var found = 0
        costs[.range] = try cost(starts.count * Self.width) {
            for start in starts {
                let range = Condition.all([
                    .compare("number", .greaterOrEqual, to: .int(start)),
                    .compare("number", .less, to: .int(start + Int64(Self.width))),
                ])
                found += try context.fetchIDs(EntityFetchRequest("Item", matching: range)).count
            }
        }
        try check("indexed ranges", found: found, expected: starts.count * Self.width)
        var sum = 0
        costs[.walk] = cost(count) {
            for shelf in shelves {
                for item in context.object(with: shelf).relatedObjects("items") {
                    if case .int(let number) = item[attribute: attribute] { sum += Int(number) }
                }
            }
        }
        try check("the walk", found: sum, expected: self.sum)
        return costs
    }
}
