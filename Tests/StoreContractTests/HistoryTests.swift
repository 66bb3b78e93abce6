import StoreInterface
import Testing

/// The history of every store, and how it is deleted.
@Suite struct HistoryTests {
    private static func fill(_ contract: ContractStore, saves: Int) throws {
        for save in 0..<saves {
            try contract.save(origin: SaveOrigin(author: "a\(save)", time: Int64(save) * 10)) {
                $0.insertItem(ObjectKey(64 + save))
            }
        }
    }

    @Test(arguments: StoreKind.allCases) func S160_everyPartOfASaveComesBack(_ kind: StoreKind) throws {
        var contract = try ContractStore(kind)
        let origin = SaveOrigin(author: "me", contextName: "main", time: 1_234_567_890_123_456, processID: 42)
        try contract.save(origin: origin) { layer in
            for key in 64..<68 as Range<ObjectKey> { layer.insertItem(key, name: "é", number: 5) }
        }
        try contract.save(origin: origin) { layer in
            layer.updateItem(64, [Sample.number: .int(1)])
            layer.updateItem(65, [Sample.note: .string("x")])
            layer.updateItem(66, [Sample.number: .int(1)])
        }
        let before = try contract.snapshot()
        let values: [Value] = [.string("é"), .int(.min), .null, .uint(.max), .bool(true), .double(-0.5)]
        try contract.store.write(.durable) { transaction in
            let layer = Layer(schema: Sample.schema)
            layer.delete(Sample.item, 67)
            layer.stamp(transaction.generation + 1)
            layer.seal()
            var changes = layer.changeSet(origin: origin)
            try changes.markDeleted(
                preserving: [ColumnSet(low: 1 << UInt64(Sample.name) | 1 << UInt64(Sample.number))], from: before)
            #expect(changes.tombstones.map(\.values.count) == [2])
            changes.tombstones.append(
                Tombstone(entity: 1, key: 9, values: values.enumerated().map { .init(column: $0, value: $1) }))
            try transaction.apply(layer, changes: changes)
        }
        if StoreKind.persistent.contains(kind) { contract.store = try contract.openAgain() }
        let history = try #require(try contract.store.changes(after: 0))
        #expect(history.map(\.origin) == [origin, origin, origin])
        let page = try #require(history[1].change(of: Sample.item)?.pages.first)
        #expect(page.columns(of: 0) == ColumnSet(low: 1 << UInt64(Sample.number)))
        #expect(page.columns(of: 1) == ColumnSet(low: 1 << UInt64(Sample.note)))
        #expect(page.columns(of: 2) == ColumnSet(low: 1 << UInt64(Sample.number)))
        let tombstones = history[2].tombstones
        #expect(tombstones.first?.values.map(\.value) == [.string("é"), .int(5)])
        #expect(tombstones.last?.values.map(\.value) == values)
    }

    @Test(arguments: StoreKind.allCases) func S160_theHistoryIsReadInParts(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        #expect(try contract.store.history(after: nil, limit: 10) == [])
        try Self.fill(contract, saves: 9)
        #expect(try contract.store.history(after: nil, limit: 4)?.map(\.generation) == [1, 2, 3, 4])
        #expect(try contract.store.history(after: 4, limit: 4)?.map(\.generation) == [5, 6, 7, 8])
        #expect(try contract.store.history(after: 8, limit: 4)?.map(\.author) == ["a8"])
        #expect(try contract.store.history(after: 9, limit: 4) == [])
        #expect(try contract.store.history(after: 100, limit: 4) == [])
    }

    @Test(arguments: StoreKind.allCases) func S160_theOldestSavesAreForgottenByNumberAndByAge(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try Self.fill(contract, saves: 9)
        #expect(try contract.store.write(.durable) { try $0.deleteHistory(.through(3), limit: 2) } == 2)
        #expect(try contract.store.write(.durable) { try $0.deleteHistory(.through(3), limit: 2) } == 1)
        #expect(try contract.store.changes(after: 2) == nil)
        #expect(try contract.store.changes(after: 3)?.map(\.generation) == Array(4...9))
        #expect(try contract.store.write(.durable) { try $0.deleteHistory(.before(time: 50), limit: 10) } == 2)
        #expect(try contract.store.history(after: nil, limit: 1)?.map(\.generation) == [6])
        #expect(try contract.store.write(.durable) { try $0.deleteHistory(.through(.max), limit: 100) } == 4)
        #expect(try contract.store.changes(after: 8) == nil)
        #expect(try contract.store.changes(after: 9) == [])
        #expect(try contract.store.verify() == [])
        try contract.save { $0.insertItem(200) }
        #expect(try contract.store.changes(after: 9)?.map(\.generation) == [10])
        #expect(try contract.snapshot().count(StoreQuery(entity: Sample.item)) == 10)
    }

    @Test(arguments: StoreKind.allCases) func aDeletionThatIsAbortedForgetsNothing(_ kind: StoreKind) throws {
        struct Stop: Error {}
        let contract = try ContractStore(kind)
        try Self.fill(contract, saves: 3)
        #expect(throws: Stop.self) {
            try contract.store.write(.durable) { transaction in
                _ = try transaction.deleteHistory(.through(2), limit: 10)
                throw Stop()
            }
        }
        #expect(try contract.store.changes(after: 0)?.count == 3)
    }
}
