import Dispatch
import StoreInterface
import StoreModel

/// Data that outlives a store object, or that two objects of one store share.
enum LeaseChecks {
    static let all: [Check] = [
        Check(
            "S002: allocated keys are whole pages and never overlap",
            obligation: "StoreTransaction.allocateKeys returns keys that no caller has had and none will get, in whole pages.",
            leasesAreWholePagesAndNeverOverlap),
        Check(
            "keys of an aborted transaction may be allocated again, committed ones never",
            obligation: "StoreTransaction.allocateKeys is durable with its transaction.", allocationsFollowTheirTransaction),
        Check(
            "S094: two objects of one store take turns",
            obligation: "ObjectStore.write waits for writers of other store objects and processes.", needsPersistence: true,
            twoStoresOnOneFileTakeTurns),
        Check(
            "saves survive opening the store again",
            obligation: "ObjectStore.write keeps what it committed; ObjectStore.identity is stored.", needsPersistence: true,
            savesSurviveReopening),
    ]

    static func leasesAreWholePagesAndNeverOverlap(_ trial: Trial) throws {
        var tested = try trial.newStore()
        let second = try tested.openAgain()
        var ranges: [Range<ObjectKey>] = []
        for pages in [1, 3, 16] {
            for store in [tested.store, second] {
                ranges.append(try store.write(.durable) { try $0.allocateKeys(Sample.item, pages: pages) })
            }
        }
        try tested.reopen()
        ranges.append(try tested.store.write(.durable) { try $0.allocateKeys(Sample.item, pages: 2) })
        try expect(
            ranges.allSatisfy { $0.lowerBound >= 64 && $0.lowerBound.slot == 0 && $0.count % 64 == 0 },
            "whole pages from key 64 on")
        try expect(ranges.map { $0.count / 64 }, equals: [1, 1, 3, 3, 16, 16, 2])
        for (first, second) in zip(ranges, ranges.dropFirst()) {
            try expect(first.upperBound <= second.lowerBound, "\(second) begins after \(first)")
        }
        let other = try tested.store.write(.durable) { try $0.allocateKeys(Sample.owner, pages: 1) }
        try expect(other.lowerBound, equals: 64)
    }

    static func twoStoresOnOneFileTakeTurns(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let stores = [tested.store, try tested.openAgain()]
        let failures = Gathered<String>()
        DispatchQueue.concurrentPerform(iterations: 2) { part in
            do {
                for round in 0..<40 {
                    try StoreUnderTest.save(stores[part]) { $0.insertItem(ObjectKey(64 + round * 2 + part), number: Int64(part)) }
                }
            } catch { failures.append("\(error)") }
        }
        try expect(failures.values, equals: [])
        let changes = try require(stores[0].changes(after: 0))
        try expect(changes.count, equals: 80)
        try expect(zip(changes, changes.dropFirst()).allSatisfy { $0.generation < $1.generation }, "ascending generations")
        for store in stores {
            let snapshot = try store.snapshot()
            try expect(snapshot.generation, equals: changes.last?.generation)
            try expect(snapshot.count(StoreQuery(entity: Sample.item)), equals: 80)
        }
        try expect(stores[0].identity, equals: stores[1].identity)
        try expect(stores[1].changes(after: 0), equals: changes)
    }

    static func savesSurviveReopening(_ trial: Trial) throws {
        var tested = try trial.newStore()
        let identity = tested.store.identity
        let first = try tested.save(.durable) { $0.insertItem(64, name: "durable") }
        let second = try tested.save(.deferred) { $0.insertItem(65, name: "deferred") }
        try tested.store.write(.durable) { _ in }
        try tested.reopen()
        let snapshot = try tested.snapshot()
        try expect(tested.store.identity, equals: identity)
        try expect(snapshot.generation, equals: second)
        try expect(snapshot.value(Sample.item, key: 64, column: Sample.name), equals: .string("durable"))
        try expect(snapshot.value(Sample.item, key: 65, column: Sample.name), equals: .string("deferred"))
        try expect(tested.store.changes(after: first)?.count, equals: 1)
        try expect(tested.store.fileBytes() > 0, "ObjectStore.fileBytes counts what the store keeps")
        try expect(tested.store.verify(), equals: [])
    }

    static func allocationsFollowTheirTransaction(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let first = try tested.store.write(.durable) { try $0.allocateKeys(Sample.item, pages: 2) }
        try expectAbort {
            try tested.store.write(.durable) { transaction in
                _ = try transaction.allocateKeys(Sample.item, pages: 1)
                throw Abort()
            }
        }
        let (free, second) = try tested.store.write(.durable) { transaction in
            (try transaction.allocateFreeKeys(Sample.item), try transaction.allocateKeys(Sample.item, pages: 1))
        }
        let all = [first, second] + free
        for (position, range) in all.enumerated() {
            for other in all[..<position] { try expect(!range.overlaps(other), "\(range) and \(other) share no key") }
        }
    }
}
