import StoreInterface
import StoreModel

/// Many random saves, applied to a store and to dictionaries, and compared in all that a snapshot can be asked.
enum RandomSaveChecks {
    static let all: [Check] = [
        Check(
            "after many random saves a store holds what dictionaries hold",
            obligation: "StoreTransaction.apply and every read of StoreSnapshot, together.", aStoreHoldsWhatDictionariesHold)
    ]

    private static let items = ObjectKey(64)..<464
    private static let owners = ObjectKey(64)..<104

    static func aStoreHoldsWhatDictionariesHold(_ trial: Trial) throws {
        var random = trial.random
        var tested = try trial.newStore()
        var model = PlainModel(schema: Sample.schema)
        for round in 0..<max(20, trial.subject.randomSaves) {
            let operations = Self.operations(on: model, &random)
            let generation = try tested.save { layer in for operation in operations { operation(layer) } }
            let layer = Layer(schema: Sample.schema)
            for operation in operations { operation(layer) }
            model.save(layer, as: generation)
            if round % 20 == 19 {
                try tested.reopen()
                try Self.compare(try tested.snapshot(), model: model, using: &random)
            }
        }
        try expect(tested.store.changes(after: 0), equals: model.history)
        try tested.expectRelationFindingsOnly()
    }

    private static func operations(on state: PlainModel, _ random: inout SeededRandom) -> [(Layer) -> Void] {
        var operations: [(Layer) -> Void] = []
        var touched: Set<ObjectKey> = []
        // Objects that exist before or after this save. A link may be added to an object that the same save deletes.
        var linkable = Set(state.keys(Sample.item))
        let linkableOwners = state.keys(Sample.owner)
        for _ in 0..<Int.random(in: 1...40, using: &random) {
            let key = ObjectKey.random(in: items, using: &random)
            guard touched.insert(key).inserted else { continue }
            if !state.exists(Sample.item, key) {
                linkable.insert(key)
                let values = Population.item(items: items, owners: owners, &random)
                operations.append { $0.insert(Sample.item, key: key, values: values) }
            } else if random.chance(30) {
                operations.append { $0.delete(Sample.item, key) }
            } else {
                let column = ColumnIndex(rawValue: Int.random(in: 0...8, using: &random))
                var values = [Sample.number: random.chance(30) ? .null : Value.int(random.pick(Population.numbers))]
                values[column] = Population.value(column, items: items, owners: owners, &random)
                let changes = values
                operations.append { $0.updateItem(key, changes) }
            }
        }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let key = ObjectKey.random(in: owners, using: &random)
            guard touched.insert(key.advanced(by: 1_000_000)).inserted else { continue }
            if !state.exists(Sample.owner, key) {
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
            operations.append { $0.setLink(Sample.tags, from: source, to: destination, linked: linked) }
        }
        return operations
    }

    private static func compare(
        _ tested: any StoreSnapshot, model: PlainModel, using random: inout SeededRandom
    ) throws {
        try expect(tested.generation, equals: model.generation)
        for entity in [Sample.item, Sample.owner] {
            try expect(tested.all(entity), equals: model.keys(entity))
            try expect(tested.pageNumbers(entity), equals: model.pageNumbers(entity))
            for (key, object) in model.objects[entity] {
                let values = try require(tested.pageValues(entity, key))
                try expect(
                    zip(values, object.values).allSatisfy { ValueChecks.isSame($0, $1) },
                    "\(object.values) of object \(key), but found \(values)")
                try expect(tested.version(entity, key), equals: object.version)
            }
        }
        for key in items {
            try expect(tested.related(RelationChecks.tags, to: key), equals: model.related(RelationChecks.tags, to: key))
        }
        for key in owners {
            try expect(tested.related(RelationChecks.tagged, to: key), equals: model.related(RelationChecks.tagged, to: key))
            try expect(tested.related(RelationChecks.owned, to: key), equals: model.related(RelationChecks.owned, to: key))
        }
        for name in Population.names {
            let found = try tested.lookup(Sample.item, column: Sample.name, value: .string(name))
            try expect(found, equals: model.keys(StoreQuery(entity: Sample.item, predicate: .isIn(Sample.name, [.string(name)]))))
        }
        for _ in 0..<20 {
            let query = StoreQuery(entity: Sample.item, predicate: RandomPredicate.make(depth: 2, &random))
            try expect(tested.keys(query), equals: model.keys(query), "\(query.predicate)")
        }
    }
}
