import Dispatch
import StoreInterface
import StoreModel

/// The state that a snapshot keeps while the store changes.
enum SnapshotChecks {
    static let all: [Check] = [
        Check(
            "S150: a snapshot never changes",
            obligation: "A StoreSnapshot shows one state for as long as it is held.", aSnapshotNeverChanges),
        Check(
            "S153: a reader does not wait for a running write",
            obligation: "ObjectStore.snapshot and reads of a snapshot never wait for a writer.",
            aReaderDoesNotWaitForARunningWrite),
        Check(
            "many snapshots are held and released",
            obligation: "Each StoreSnapshot shows its own state; releasing it frees what it holds.",
            manySnapshotsAreMadeAndDropped),
        Check(
            "one snapshot serves many threads",
            obligation: "Any number of threads may read a StoreSnapshot at once.", oneSnapshotServesManyThreads),
    ]

    static func aSnapshotNeverChanges(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let first = try tested.save { layer in
            layer.insertOwner(64, "owner")
            for key in 64..<200 as Range<ObjectKey> { layer.insertItem(key, name: "old", number: 1) }
        }
        let old = try tested.snapshot()
        let heldPage = try require(old.page(Sample.item, 1))
        let second = try tested.save { layer in
            for key in 64..<128 as Range<ObjectKey> { layer.delete(Sample.item, key) }
            layer.updateItem(130, [Sample.name: .string("new"), Sample.owned: .reference(64)])
            layer.insertItem(300)
            layer.setLink(Sample.tags, from: 130, to: 64, linked: true)
        }
        let new = try tested.snapshot()
        try expect(old.generation, equals: first)
        try expect(new.generation, equals: second)
        try expect(heldPage.presence, equals: .max)
        try expect(heldPage.value(3, Sample.name), equals: .string("old"))
        try expect(old.all(Sample.item).count, equals: 136)
        try expect(old.value(Sample.item, key: 130, column: Sample.name), equals: .string("old"))
        try expect(old.related(RelationChecks.owned, to: 64), equals: [])
        try expect(old.related(RelationChecks.tags, to: 130), equals: [])
        try expect(old.lookup(Sample.item, column: Sample.name, value: .string("new")), equals: [])
        try expect(new.all(Sample.item).count, equals: 73)
        try expect(new.related(RelationChecks.owned, to: 64), equals: [130])
        try expect(new.related(RelationChecks.tags, to: 130), equals: [64])
    }

    static func aReaderDoesNotWaitForARunningWrite(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { $0.insertItem(64, name: "old") }
        let held = try tested.snapshot()
        try tested.store.write(.durable) { transaction in
            let layer = Layer(schema: Sample.schema)
            layer.updateItem(64, [Sample.name: .string("new")])
            try transaction.apply(layer)
            // Another thread, because a store may know that this one is the writer.
            let read = Gathered<Value?>()
            let store = tested.store
            let done = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                let values = [
                    try? held.value(Sample.item, key: 64, column: Sample.name),
                    try? store.snapshot().value(Sample.item, key: 64, column: Sample.name),
                ]
                for value in values { read.append(value ?? nil) }
                done.signal()
            }
            try expect(done.wait(timeout: .now() + .seconds(600)), equals: .success, "the reader ends while the write runs")
            try expect(read.values, equals: [.string("old"), .string("old")])
        }
        try expect(tested.snapshot().value(Sample.item, key: 64, column: Sample.name), equals: .string("new"))
    }

    static func manySnapshotsAreMadeAndDropped(_ trial: Trial) throws {
        let tested = try trial.newStore()
        var kept: [any StoreSnapshot] = []
        for round in 1...60 {
            try tested.save { $0.insertItem(ObjectKey(64 + round)) }
            let snapshot = try tested.snapshot()
            if round % 6 == 0 { kept.append(snapshot) }
            if kept.count > 5 { kept.removeFirst() }
        }
        try expect(kept.map { try $0.count(StoreQuery(entity: Sample.item)) }, equals: [36, 42, 48, 54, 60])
    }

    static func oneSnapshotServesManyThreads(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try tested.save { layer in
            for key in 64..<1024 as Range<ObjectKey> { layer.insertItem(key, name: "\(key)", number: Int64(key.rawValue)) }
        }
        let snapshot = try tested.snapshot()
        let wrong = Gathered<ObjectKey>()
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            for key in stride(from: ObjectKey(64 + part), to: 1024, by: 3) {
                if (try? snapshot.pageValues(Sample.item, key)?[Sample.number]) != .int(Int64(key.rawValue)) { wrong.append(key) }
            }
        }
        try expect(wrong.values, equals: [], "keys that a thread read wrongly")
    }
}
