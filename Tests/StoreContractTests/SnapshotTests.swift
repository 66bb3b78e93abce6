import Dispatch
import Platform
import StoreInterface
import Testing

@Suite struct SnapshotTests {
    @Test(arguments: StoreKind.isolated) func S150_aSnapshotNeverChanges(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            layer.insertOwner(64, "owner")
            for key in 64..<200 as Range<ObjectKey> { layer.insertItem(key, name: "old", number: 1) }
        }
        let old = try contract.snapshot()
        let heldPage = try #require(try old.page(Sample.item, 1))
        try contract.save { layer in
            for key in 64..<128 as Range<ObjectKey> { layer.delete(Sample.item, key) }
            layer.updateItem(130, [Sample.name: .string("new"), Sample.owned: .reference(64)])
            layer.insertItem(300)
            layer.setLink(Sample.tags, 130, 64, linked: true)
        }
        let new = try contract.snapshot()
        #expect(old.generation == 1)
        #expect(new.generation == 2)
        #expect(heldPage.presence == .max)
        #expect(try heldPage.value(3, Sample.name) == .string("old"))
        #expect(try old.all(Sample.item).count == 136)
        #expect(try old.value(Sample.item, 130, Sample.name) == .string("old"))
        #expect(try old.related(RelationTests.owned, to: 64) == [])
        #expect(try old.related(RelationTests.tags, to: 130) == [])
        #expect(try old.lookup(Sample.item, column: Sample.name, value: .string("new")) == [])
        #expect(try new.all(Sample.item).count == 73)
        #expect(try new.related(RelationTests.owned, to: 64) == [130])
        #expect(try new.related(RelationTests.tags, to: 130) == [64])
    }

    @Test(arguments: StoreKind.isolated) func S153_aReaderDoesNotWaitForARunningWrite(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { $0.insertItem(64, name: "old") }
        let held = try contract.snapshot()
        try contract.store.write(.durable) { transaction in
            let layer = Layer(schema: Sample.schema)
            layer.updateItem(64, [Sample.name: .string("new")])
            layer.stamp(transaction.generation + 1)
            layer.seal()
            try transaction.apply(layer, changes: layer.changeSet())
            // Reads on another thread, because a store may recognize this thread as the writer.
            let read = Mutex<[Value?]>([])
            let store = contract.store
            let done = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                let values = [
                    try? held.value(Sample.item, 64, Sample.name), try? store.snapshot().value(Sample.item, 64, Sample.name),
                ]
                read.withLock { $0 = values.map { $0 ?? nil } }
                done.signal()
            }
            #expect(done.wait(timeout: .now() + .seconds(600)) == .success)
            #expect(read.withLock { $0 } == [.string("old"), .string("old")])
        }
        #expect(try contract.snapshot().value(Sample.item, 64, Sample.name) == .string("new"))
    }

    @Test(arguments: StoreKind.isolated) func manySnapshotsAreMadeAndDropped(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        var kept: [any StoreSnapshot] = []
        for round in 1...60 {
            try contract.save { $0.insertItem(ObjectKey(64 + round)) }
            let snapshot = try contract.snapshot()
            if round % 6 == 0 { kept.append(snapshot) }
            if kept.count > 5 { kept.removeFirst() }
        }
        #expect(try kept.map { try $0.count(StoreQuery(entity: Sample.item)) } == [36, 42, 48, 54, 60])
    }

    @Test(arguments: StoreKind.allCases) func oneSnapshotServesManyThreads(_ kind: StoreKind) throws {
        let contract = try ContractStore(kind)
        try contract.save { layer in
            for key in 64..<1024 as Range<ObjectKey> { layer.insertItem(key, name: "\(key)", number: Int64(key)) }
        }
        let snapshot = try contract.snapshot()
        let wrong = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            for key in stride(from: ObjectKey(64 + part), to: 1024, by: 3) {
                if (try? snapshot.pageValues(Sample.item, key)?[Sample.number]) != .int(Int64(key)) { wrong.withLock { $0 += 1 } }
            }
        }
        #expect(wrong.withLock { $0 } == 0)
    }
}
