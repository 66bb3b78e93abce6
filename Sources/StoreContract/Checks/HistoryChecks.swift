import StoreInterface
import StoreModel

/// The records of saves, and the deletion of the oldest ones.
enum HistoryChecks {
    static let all: [Check] = [
        Check(
            "the history has the saves after a generation",
            obligation: "ObjectStore.history returns the change sets of the saves after a generation, oldest first.",
            theHistoryGivesTheSavesAfterAGeneration),
        Check(
            "S160: every part of a save is in the history",
            obligation: "StoreTransaction.apply records the whole change set under the generation of its save.",
            everyPartOfASaveComesBack),
        Check(
            "S160: the history is read in parts",
            obligation: "ObjectStore.history returns at most `limit` change sets, and nothing after the newest.",
            theHistoryIsReadInParts),
        Check(
            "S160: the oldest saves are deleted by number and by age",
            obligation:
                "StoreTransaction.deleteHistory deletes from the oldest save on; ObjectStore.history returns nil where saves are missing.",
            theOldestSavesAreForgottenByNumberAndByAge),
        Check(
            "an aborted deletion of history deletes nothing",
            obligation: "ObjectStore.write aborts the transaction if its body throws.", aDeletionThatIsAbortedForgetsNothing),
    ]

    /// Returns the generations of the saves.
    @discardableResult
    private static func fill(_ tested: StoreUnderTest, saves: Int) throws -> [Generation] {
        try (0..<saves).map { save in
            try tested.save(metadata: SaveMetadata(author: "a\(save)", time: Int64(save) * 10)) {
                $0.insertItem(ObjectKey(64 + save))
            }
        }
    }

    static func everyPartOfASaveComesBack(_ trial: Trial) throws {
        var tested = try trial.newStore()
        let metadata = SaveMetadata(author: "me", contextName: "main", time: 1_234_567_890_123_456, processID: 42)
        try tested.save(metadata: metadata) { layer in
            for key in 64..<68 as Range<ObjectKey> { layer.insertItem(key, name: "é", number: 5) }
        }
        try tested.save(metadata: metadata) { layer in
            layer.updateItem(64, [Sample.number: .int(1)])
            layer.updateItem(65, [Sample.note: .string("x")])
            layer.updateItem(66, [Sample.number: .int(1)])
        }
        let before = try tested.snapshot()
        let values: [Value] = [.string("é"), .int(.min), .null, .uint(.max), .bool(true), .double(-0.5)]
        try tested.store.write(.durable) { transaction in
            let layer = Layer(schema: Sample.schema)
            layer.delete(Sample.item, 67)
            layer.stamp(transaction.nextGeneration)
            layer.seal()
            var changes = layer.changeSet(metadata: metadata)
            try changes.markDeleted(
                preserving: [ColumnSet(low: 1 << UInt64(Sample.name.rawValue) | 1 << UInt64(Sample.number.rawValue))],
                from: before)
            try expect(changes.tombstones.map(\.values.count), equals: [2])
            let kept = values.enumerated(as: ColumnIndex.self).map { Tombstone.Preserved(column: $0, value: $1) }
            changes.tombstones.append(Tombstone(entity: 1, key: 9, values: kept))
            try transaction.apply(layer, changes: changes)
        }
        try tested.reopen()
        let history = try require(tested.store.changes(after: 0))
        try expect(history.map(\.metadata), equals: [metadata, metadata, metadata])
        let page = try require(history[1].change(of: Sample.item)?.pages.first)
        try expect(page.columns(of: 0), equals: ColumnSet(low: 1 << UInt64(Sample.number.rawValue)))
        try expect(page.columns(of: 1), equals: ColumnSet(low: 1 << UInt64(Sample.note.rawValue)))
        try expect(page.columns(of: 2), equals: ColumnSet(low: 1 << UInt64(Sample.number.rawValue)))
        let tombstones = history[2].tombstones
        try expect(tombstones.first?.values.map(\.value), equals: [.string("é"), .int(5)])
        try expect(tombstones.last?.values.map(\.value), equals: values)
    }

    static func theHistoryIsReadInParts(_ trial: Trial) throws {
        let tested = try trial.newStore()
        try expect(tested.store.history(after: nil, limit: 10), equals: [])
        let saves = try Self.fill(tested, saves: 9)
        try expect(tested.store.history(after: nil, limit: 4)?.map(\.generation), equals: Array(saves[..<4]))
        try expect(tested.store.history(after: 0, limit: 4)?.map(\.generation), equals: Array(saves[..<4]))
        try expect(tested.store.history(after: saves[3], limit: 4)?.map(\.generation), equals: Array(saves[4..<8]))
        try expect(tested.store.history(after: saves[7], limit: 4)?.map(\.author), equals: ["a8"])
        try expect(tested.store.history(after: saves[8], limit: 4), equals: [])
        try expect(tested.store.history(after: saves[8].advanced(by: 100), limit: 4), equals: [])
    }

    static func theOldestSavesAreForgottenByNumberAndByAge(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let saves = try Self.fill(tested, saves: 9)
        try expect(tested.store.write(.durable) { try $0.deleteHistory(.through(saves[2]), limit: 2) }, equals: 2)
        try expect(tested.store.write(.durable) { try $0.deleteHistory(.through(saves[2]), limit: 2) }, equals: 1)
        try expect(tested.store.changes(after: saves[1]), equals: nil)
        try expect(tested.store.changes(after: saves[2])?.map(\.generation), equals: Array(saves[3...]))
        try expect(tested.store.write(.durable) { try $0.deleteHistory(.before(time: 50), limit: 10) }, equals: 2)
        try expect(tested.store.history(after: nil, limit: 1)?.map(\.generation), equals: [saves[5]])
        try expect(tested.store.write(.durable) { try $0.deleteHistory(.through(.max), limit: 100) }, equals: 4)
        try expect(tested.store.changes(after: saves[7]), equals: nil)
        try expect(tested.store.changes(after: saves[8]), equals: [])
        try expect(tested.store.verify(), equals: [])
        let next = try tested.save { $0.insertItem(200) }
        try expect(tested.store.changes(after: saves[8])?.map(\.generation), equals: [next])
        try expect(tested.snapshot().count(StoreQuery(entity: Sample.item)), equals: 10)
    }

    static func aDeletionThatIsAbortedForgetsNothing(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let saves = try Self.fill(tested, saves: 3)
        try expectAbort {
            try tested.store.write(.durable) { transaction in
                _ = try transaction.deleteHistory(.through(saves[1]), limit: 10)
                throw Abort()
            }
        }
        try expect(tested.store.changes(after: 0)?.count, equals: 3)
    }

    static func theHistoryGivesTheSavesAfterAGeneration(_ trial: Trial) throws {
        let tested = try trial.newStore()
        let first = try tested.save(author: "first") { layer in
            layer.insertOwner(64, "o")
            layer.insertItem(64)
            layer.setLink(Sample.tags, from: 64, to: 64, linked: true)
        }
        let second = try tested.save(author: "second") { $0.updateItem(64, [Sample.number: .int(1)]) }
        let third = try tested.save(author: "third") { $0.delete(Sample.item, 64) }
        let changes = try require(tested.store.changes(after: first))
        try expect(changes.map(\.author), equals: ["second", "third"])
        try expect(changes.map(\.generation), equals: [second, third])
        try expect(changes[0].change(of: Sample.item)?.updatedKeys, equals: [64])
        try expect(changes[0].change(of: Sample.item)?.pages.first?.columns.contains(Sample.number), equals: true)
        try expect(changes[1].change(of: Sample.item)?.deletedKeys, equals: [64])
        let oldest = try require(tested.store.changes(after: 0)?.first)
        try expect(oldest.links, equals: [.init(link: Sample.tags, sources: [64], destinations: [64])])
        try expect(tested.store.changes(after: third), equals: [])
    }
}
