import StoreInterface
import StoreModel

/// The effect of a transaction, as a snapshot shows it.
enum WritingChecks {
    static let all: [Check] = [
        Check(
            "an inserted object is read",
            obligation: "StoreTransaction.apply writes each row of a layer under the generation of its save.",
            anInsertedObjectIsRead),
        Check(
            "an update of some columns keeps the others",
            obligation: "StoreTransaction.apply changes only the columns that an update row has set.",
            aSparseUpdateKeepsTheOtherColumns),
        Check(
            "presence and page numbers follow inserts and deletes",
            obligation: "StoreSnapshot.pageNumbers and StorePage.presence tell which objects exist.",
            presenceAndPageNumbersFollowInsertsAndDeletes),
        Check(
            "an update of a missing object inserts it only if all columns are set",
            obligation: "StoreTransaction.apply drops an incomplete update of a missing object.",
            anUpdateOfAMissingObjectInsertsOnlyWhenComplete),
        Check(
            "a write that throws leaves nothing",
            obligation: "ObjectStore.write aborts the transaction if its body throws, and rethrows the error.",
            aWriteThatThrowsLeavesNothing),
        Check(
            "a value of another type is refused",
            obligation: "StoreTransaction.apply throws a StoreError for a value that the column does not accept.",
            aValueOfTheWrongKindIsRefused),
        Check(
            "look-ups follow updates and deletes",
            obligation: "StoreTransaction.apply keeps indexes up to date.", indexesFollowUpdatesAndDeletes),
        Check(
            "verify finds a reference that leads to no object",
            obligation: "ObjectStore.verify returns nothing for a sound store and one finding per fault.",
            aSoundStoreVerifiesAndABrokenReferenceIsFound),
        Check(
            "generations ascend, and each commit begins at nextGeneration",
            obligation: "StoreTransaction.nextGeneration is greater than every generation in the store.", generationsAscend),
        Check(
            "several saves in one transaction have consecutive generations",
            obligation: "StoreTransaction.apply gives each row the generation that the numbers have for its version.",
            oneCommitOfSeveralSaves
        ),
    ]

    static func anInsertedObjectIsRead(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let generation = try tested.save { $0.insertItem(70, name: "seventy", number: 7) }
        let snapshot = try tested.snapshot()
        try expect(generation > 0, "the generation of a save is greater than 0, which a new store has")
        try expect(snapshot.generation, equals: generation)
        try expect(snapshot.value(Sample.item, key: 70, column: Sample.name), equals: .string("seventy"))
        try expect(snapshot.version(Sample.item, 70), equals: generation)
        try expect(snapshot.pageValues(Sample.item, 70)?[Sample.number], equals: .int(7))
        try expect(snapshot.value(Sample.item, key: 71, column: Sample.name), equals: nil)
        try expect(snapshot.version(Sample.item, 71), equals: nil)
        try expect(snapshot.pageValues(Sample.item, 71), equals: nil)
        try expect(snapshot.page(Sample.item, 900)?.presence ?? 0, equals: 0)
    }

    static func aSparseUpdateKeepsTheOtherColumns(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let first = try tested.save { layer in
            layer.insertItem(64, name: "a", number: 1)
            layer.insertItem(65, name: "b", number: 2)
        }
        let second = try tested.save { $0.updateItem(64, [Sample.number: .null, Sample.note: .string("noted")]) }
        let snapshot = try tested.snapshot()
        let values = try require(snapshot.pageValues(Sample.item, 64))
        try expect(values[Sample.name], equals: .string("a"))
        try expect(values[Sample.number], equals: .null)
        try expect(values[Sample.note], equals: .string("noted"))
        try expect(snapshot.version(Sample.item, 64), equals: second)
        try expect(snapshot.version(Sample.item, 65), equals: first)
        let page = try require(snapshot.page(Sample.item, 1))
        try expect(page.contains(1), equals: true)
        try expect(page.contains(2), equals: false)
        try expect(page.version(0), equals: second)
        try expect(page.version(1), equals: first)
    }

    static func presenceAndPageNumbersFollowInsertsAndDeletes(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in for key in [64, 66, 127, 640, 6400] as [ObjectKey] { layer.insertItem(key) } }
        try tested.save { layer in
            layer.delete(Sample.item, 66)
            layer.delete(Sample.item, 640)
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.pageNumbers(Sample.item), equals: [1, 100])
        try expect(snapshot.page(Sample.item, 1)?.presence, equals: 1 | 1 << 63)
        try expect(snapshot.page(Sample.item, 10)?.presence ?? 0, equals: 0)
        for asked in [.max, 1, 0b110, 1 << 63 | 0b10, 0xff] as [UInt64] {
            try expect(snapshot.page(Sample.item, 1)?.present(among: asked), equals: (1 | 1 << 63) & asked)
            try expect(snapshot.page(Sample.item, 10)?.present(among: asked) ?? 0, equals: 0)
        }
        try expect(snapshot.all(Sample.item), equals: [64, 127, 6400])
    }

    static func anUpdateOfAMissingObjectInsertsOnlyWhenComplete(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.updateItem(64, [Sample.number: .int(1)])
            layer.update(Sample.owner, key: 64, of: 1, values: [0: .string("whole")])
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.all(Sample.item), equals: [])
        try expect(snapshot.all(Sample.owner), equals: [64])
        try expect(snapshot.value(Sample.owner, key: 64, column: 0), equals: .string("whole"))
    }

    static func aWriteThatThrowsLeavesNothing(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let kept = try tested.save { $0.insertItem(64, name: "kept") }
        try expectAbort {
            try tested.store.write(.durable) { transaction in
                let layer = Layer(schema: Sample.schema)
                layer.insertItem(65, name: "lost")
                layer.updateItem(64, [Sample.name: .string("lost")])
                try transaction.apply(layer)
                throw Abort()
            }
        }
        let snapshot = try tested.snapshot()
        try expect(snapshot.generation, equals: kept)
        try expect(snapshot.all(Sample.item), equals: [64])
        try expect(snapshot.lookup(Sample.item, column: Sample.name, value: .string("lost")), equals: [])
        try expect(tested.store.changes(after: 0)?.count, equals: 1)
        let next = try tested.save { $0.insertItem(66) }
        try expect(next > kept, "the save after an aborted one has a greater generation than \(kept)")
    }

    static func aValueOfTheWrongKindIsRefused(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try expectError { try tested.save { $0.insertItem(64, changing: [Sample.name: .null]) } }
        try expectError { try tested.save { $0.insertItem(64, changing: [Sample.second: .int(1 << 40)]) } }
        try expect(tested.snapshot().all(Sample.item), equals: [])
    }

    static func indexesFollowUpdatesAndDeletes(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            for key in 64..<70 as Range<ObjectKey> { layer.insertItem(key, name: key < 67 ? "low" : "high", number: 5) }
        }
        try tested.save { layer in
            layer.updateItem(64, [Sample.name: .string("high")])
            layer.updateItem(65, [Sample.number: .null])
            layer.delete(Sample.item, 69)
        }
        let snapshot = try tested.snapshot()
        func found(_ column: ColumnIndex, _ value: Value) throws -> [ObjectKey] {
            try snapshot.lookup(Sample.item, column: column, value: value)
        }
        try expect(found(Sample.name, .string("low")), equals: [65, 66])
        try expect(found(Sample.name, .string("high")), equals: [64, 67, 68])
        try expect(found(Sample.number, .null), equals: [65])
        try expect(found(Sample.number, .int(5)), equals: [64, 66, 67, 68])
        try expect(found(Sample.flag, .bool(false)), equals: [64, 65, 66, 67, 68])
    }

    static func aSoundStoreVerifiesAndABrokenReferenceIsFound(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            layer.insertOwner(64, "one")
            layer.insertItem(64, changing: [Sample.owned: .reference(64)])
            layer.setLink(Sample.tags, from: 64, to: 64, linked: true)
        }
        try expect(tested.store.verify(), equals: [])
        try tested.save { $0.updateItem(64, [Sample.parent: .reference(9999)]) }
        try expect(tested.store.verify().count, equals: 1)
    }

    static func generationsAscend(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try expect(tested.snapshot().generation, equals: 0, "a new store has no save")
        var last: Generation = 0
        for number in 0..<20 as Range<ObjectKey> {
            let (newest, next) = try tested.store.write(.deferred) { ($0.generation, $0.nextGeneration) }
            try expect(newest, equals: last, "StoreTransaction.generation is that of the newest save")
            try expect(next > last, "nextGeneration is greater than \(last); it is \(next)")
            last = try tested.save { $0.insertItem(number.advanced(by: 64)) }
            try expect(tested.snapshot().generation, equals: last)
            try expect(tested.store.mayHaveCommitted(after: last) && tested.snapshot().generation != last, equals: false)
        }
    }

    static func oneCommitOfSeveralSaves(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let before = try tested.save { $0.insertItem(64, name: "old") }
        let sequences = [SaveSequence(3), SaveSequence(4), SaveSequence(9)]
        let numbers = try tested.store.write(.durable) { transaction in
            let numbers = CommitNumbers(sequences, first: transaction.nextGeneration)
            for (position, sequence) in sequences.enumerated() {
                let layer = Layer(schema: Sample.schema)
                layer.insertItem(ObjectKey(70 + position), name: "new")
                layer.updateItem(64, [Sample.number: .int(Int64(position))])
                layer.stamp(.accepted(sequence))
                layer.seal()
                try transaction.apply(layer, changes: layer.changeSet(), numbers: numbers)
            }
            return numbers
        }
        let generations = sequences.map { numbers.generation(of: .accepted($0)) }
        try expect(generations, equals: [numbers.first, numbers.first.next, numbers.first.next.next])
        let snapshot = try tested.snapshot()
        try expect(snapshot.generation, equals: generations[2])
        try expect([70, 71, 72].map { try snapshot.version(Sample.item, $0) }, equals: generations)
        try expect(snapshot.version(Sample.item, 64), equals: generations[2])
        try expect(snapshot.value(Sample.item, key: 64, column: Sample.number), equals: .int(2))
        try expect(tested.store.changes(after: before)?.map(\.generation), equals: generations)
    }
}
