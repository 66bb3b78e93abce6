import StoreInterface
import Testing

@Suite struct WritingTests {
    @Test(arguments: StoreKind.allCases) func anInsertedObjectIsRead(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        let generation = try contract.save { $0.insertItem(70, name: "seventy", number: 7) }
        let snapshot = try contract.snapshot()
        #expect(generation == 1)
        #expect(snapshot.generation == 1)
        #expect(try snapshot.value(Sample.item, 70, Sample.name) == .string("seventy"))
        #expect(try snapshot.version(Sample.item, 70) == 1)
        #expect(try snapshot.pageValues(Sample.item, 70)?[Sample.number] == .int(7))
        #expect(try snapshot.value(Sample.item, 71, Sample.name) == nil)
        #expect(try snapshot.version(Sample.item, 71) == nil)
        #expect(try snapshot.pageValues(Sample.item, 71) == nil)
        #expect(try snapshot.page(Sample.item, 900)?.presence ?? 0 == 0)
    }

    @Test(arguments: StoreKind.allCases) func aSparseUpdateKeepsTheOtherColumns(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertItem(64, name: "a", number: 1)
            layer.insertItem(65, name: "b", number: 2)
        }
        try contract.save { $0.updateItem(64, [Sample.number: .null, Sample.note: .string("noted")]) }
        let snapshot = try contract.snapshot()
        let values = try #require(try snapshot.pageValues(Sample.item, 64))
        #expect(values[Sample.name] == .string("a"))
        #expect(values[Sample.number] == .null)
        #expect(values[Sample.note] == .string("noted"))
        #expect(try snapshot.version(Sample.item, 64) == 2)
        #expect(try snapshot.version(Sample.item, 65) == 1)
        let page = try #require(try snapshot.page(Sample.item, 1))
        #expect(try page.contains(1))
        #expect(try !page.contains(2))
        #expect(try page.version(0) == 2)
        #expect(try page.version(1) == 1)
    }

    @Test(arguments: StoreKind.allCases) func presenceAndPageNumbersFollowInsertsAndDeletes(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in for key in [64, 66, 127, 640, 6400] as [ObjectKey] { layer.insertItem(key) } }
        try contract.save { layer in
            layer.delete(Sample.item, 66)
            layer.delete(Sample.item, 640)
        }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.pageNumbers(Sample.item) == [1, 100])
        #expect(try snapshot.page(Sample.item, 1)?.presence == 1 | 1 << 63)
        #expect(try snapshot.page(Sample.item, 10)?.presence ?? 0 == 0)
        for asked in [.max, 1, 0b110, 1 << 63 | 0b10, 0xff] as [UInt64] {
            #expect(try snapshot.page(Sample.item, 1)?.present(among: asked) == (1 | 1 << 63) & asked)
            #expect(try snapshot.page(Sample.item, 10)?.present(among: asked) ?? 0 == 0)
        }
        #expect(try snapshot.all(Sample.item) == [64, 127, 6400])
    }

    @Test(arguments: StoreKind.allCases) func anUpdateOfAMissingObjectInsertsOnlyWhenComplete(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.updateItem(64, [Sample.number: .int(1)])
            layer.update(Sample.owner, 64, of: 1, [0: .string("whole")])
        }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.all(Sample.item).isEmpty)
        #expect(try snapshot.all(Sample.owner) == [64])
        #expect(try snapshot.value(Sample.owner, 64, 0) == .string("whole"))
    }

    /// Not on SQLite, where another program may have set the counter of keys back. See ``SQLiteForeignChangeTests``.
    @Test(arguments: [StoreKind.memory, .lmdb]) func anInsertOverAnObjectReplacesIt(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { $0.insertItem(64, name: "old", number: 1) }
        try contract.save { $0.insertItem(64, name: "new") }
        let snapshot = try contract.snapshot()
        #expect(try snapshot.pageValues(Sample.item, 64)?[Sample.name] == .string("new"))
        #expect(try snapshot.lookup(Sample.item, column: Sample.name, value: .string("old")) == [])
        #expect(try snapshot.lookup(Sample.item, column: Sample.number, value: .int(1)) == [])
        #expect(try contract.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases) func aWriteThatThrowsLeavesNothing(_ kind: StoreKind) throws {
        struct Stop: Error {}
        let contract = try ContractStore(kind)
        try contract.save { $0.insertItem(64, name: "kept") }
        #expect(throws: Stop.self) {
            try contract.store.write(.durable) { transaction in
                let layer = Layer(schema: Sample.schema)
                layer.insertItem(65, name: "lost")
                layer.updateItem(64, [Sample.name: .string("lost")])
                layer.stamp(transaction.generation + 1)
                layer.seal()
                try transaction.apply(layer, changes: layer.changeSet())
                throw Stop()
            }
        }
        let snapshot = try contract.snapshot()
        #expect(snapshot.generation == 1)
        #expect(try snapshot.all(Sample.item) == [64])
        #expect(try snapshot.lookup(Sample.item, column: Sample.name, value: .string("lost")).isEmpty)
        #expect(try contract.store.changes(after: 0)?.count == 1)
        #expect(try contract.save { $0.insertItem(66) } == 2)
    }

    @Test(arguments: StoreKind.allCases) func aValueOfTheWrongKindIsRefused(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        #expect(throws: StoreError.self) { try contract.save { $0.insertItem(64, changing: [Sample.name: .null]) } }
        #expect(throws: StoreError.self) { try contract.save { $0.insertItem(64, changing: [Sample.second: .int(1 << 40)]) } }
        #expect(try contract.snapshot().all(Sample.item).isEmpty)
    }

    @Test(arguments: StoreKind.allCases) func indexesFollowUpdatesAndDeletes(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            for key in 64..<70 as Range<ObjectKey> { layer.insertItem(key, name: key < 67 ? "low" : "high", number: 5) }
        }
        try contract.save { layer in
            layer.updateItem(64, [Sample.name: .string("high")])
            layer.updateItem(65, [Sample.number: .null])
            layer.delete(Sample.item, 69)
        }
        let snapshot = try contract.snapshot()
        func found(_ column: Int, _ value: Value) throws -> [ObjectKey] {
            try snapshot.lookup(Sample.item, column: column, value: value)
        }
        #expect(try found(Sample.name, .string("low")) == [65, 66])
        #expect(try found(Sample.name, .string("high")) == [64, 67, 68])
        #expect(try found(Sample.number, .null) == [65])
        #expect(try found(Sample.number, .int(5)) == [64, 66, 67, 68])
        #expect(try found(Sample.flag, .bool(false)) == [64, 65, 66, 67, 68])
    }

    @Test(arguments: StoreKind.allCases) func aSoundStoreVerifiesAndABrokenReferenceIsFound(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertOwner(64, "one")
            layer.insertItem(64, changing: [Sample.owned: .reference(64)])
            layer.setLink(Sample.tags, 64, 64, linked: true)
        }
        #expect(try contract.store.verify() == [])
        try contract.save { $0.updateItem(64, [Sample.parent: .reference(9999)]) }
        #expect(try contract.store.verify().count == 1)
    }
}
