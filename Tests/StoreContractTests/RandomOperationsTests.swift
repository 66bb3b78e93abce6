import Foundation
import MemoryStore
import StoreInterface
import Testing

/// Long random histories on a store and on the store in memory. Both are compared completely after some steps.
@Suite struct RandomOperationsTests {
    private static let items = ObjectKey(64)..<464
    private static let owners = ObjectKey(64)..<104

    @Test(arguments: StoreKind.allCases) func aStoreDoesWhatTheStoreInMemoryDoes(_ kind: StoreKind) throws {
        var random = SeededRandom("operations on \(kind)")
        var contract = try ContractStore(kind)
        let reference = MemoryStore(schema: Sample.schema)
        let rounds = ProcessInfo.processInfo.environment["STRATA_LONG"] == nil ? 60 : 1000
        for round in 0..<rounds {
            let operations = try Self.operations(on: try reference.snapshot(), &random)
            try ContractStore.save(reference) { layer in for operation in operations { operation(layer) } }
            try contract.save { layer in for operation in operations { operation(layer) } }
            if round % 20 == 19 {
                if StoreKind.persistent.contains(kind) { contract.store = try contract.openAgain() }
                try Self.compare(try contract.snapshot(), try reference.snapshot(), &random)
            }
        }
        #expect(try contract.store.changes(after: 0) == reference.changes(after: 0))
        #expect(try contract.store.verify().count == reference.verify().count)
    }

    private static func operations(on state: any StoreSnapshot, _ random: inout SeededRandom) throws -> [(Layer) -> Void] {
        var operations: [(Layer) -> Void] = []
        var touched: Set<ObjectKey> = []
        // The objects that exist before or after this save. A link may be added to an object that the same save deletes.
        var linkable = Set(try state.all(Sample.item))
        let linkableOwners = try state.all(Sample.owner)
        for _ in 0..<Int.random(in: 1...40, using: &random) {
            let key = ObjectKey.random(in: items, using: &random)
            guard touched.insert(key).inserted else { continue }
            if try state.version(Sample.item, key) == nil {
                linkable.insert(key)
                let values = Population.item(items: items, owners: owners, &random)
                operations.append { $0.insert(Sample.item, key, values) }
            } else if random.chance(30) {
                operations.append { $0.delete(Sample.item, key) }
            } else {
                let column = Int.random(in: 0...8, using: &random)
                var values = [Sample.number: random.chance(30) ? .null : Value.int(random.pick(Population.numbers))]
                values[column] = Population.value(column, items: items, owners: owners, &random)
                let changes = values
                operations.append { $0.updateItem(key, changes) }
            }
        }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let key = ObjectKey.random(in: owners, using: &random)
            guard touched.insert(key + 1_000_000).inserted else { continue }
            if try state.version(Sample.owner, key) == nil {
                let title = random.pick(Population.names)
                operations.append { $0.insertOwner(key, title) }
            } else if random.chance(40) {
                operations.append { $0.delete(Sample.owner, key) }
            }
        }
        let sources = linkable.sorted()
        for _ in 0..<Int.random(in: 0...20, using: &random) where !sources.isEmpty && !linkableOwners.isEmpty {
            let source = random.pick(sources)
            let destination = random.pick(linkableOwners)
            let linked = random.chance(70)
            operations.append { $0.setLink(Sample.tags, source, destination, linked: linked) }
        }
        return operations
    }

    private static func compare(
        _ tested: any StoreSnapshot, _ reference: any StoreSnapshot, _ random: inout SeededRandom
    ) throws {
        #expect(tested.generation == reference.generation)
        for entity in [Sample.item, Sample.owner] {
            #expect(try tested.all(entity) == reference.all(entity))
            #expect(try tested.pageNumbers(entity) == reference.pageNumbers(entity))
            for key in try reference.all(entity) {
                let values = try #require(try tested.pageValues(entity, key))
                let wanted = try #require(try reference.pageValues(entity, key))
                #expect(zip(values, wanted).allSatisfy { ValueTests.isSame($0, $1) })
                #expect(try tested.version(entity, key) == reference.version(entity, key))
            }
        }
        for key in items {
            #expect(try tested.related(RelationTests.tags, to: key) == reference.related(RelationTests.tags, to: key))
        }
        for key in owners {
            #expect(try tested.related(RelationTests.tagged, to: key) == reference.related(RelationTests.tagged, to: key))
            #expect(try tested.related(RelationTests.owned, to: key) == reference.related(RelationTests.owned, to: key))
        }
        for name in Population.names {
            let found = try tested.lookup(Sample.item, column: Sample.name, value: .string(name))
            #expect(try found == reference.lookup(Sample.item, column: Sample.name, value: .string(name)))
        }
        for _ in 0..<20 {
            let query = StoreQuery(entity: Sample.item, predicate: RandomPredicate.make(depth: 2, &random))
            #expect(try tested.keys(query) == reference.keys(query), "\(query.predicate)")
        }
    }
}
