import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct RoomTests {
    private func options(_ mapSize: Int, maximum: Int?) -> LMDBStore.Options {
        var options = LMDBStore.Options()
        options.mapSize = mapSize
        options.maximumMapSize = maximum
        return options
    }

    @Test func aFullMapGrowsAndTheSaveIsMadeOnce() throws {
        let scratch = try Scratch()
        let store = try scratch.store(options(1 << 20, maximum: nil))
        for _ in 0..<12 { try store.insertTracks(5000) }
        #expect(try store.fileBytes() > 2 << 20)
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 60_000)
        #expect(try store.snapshot().generation == 12)
        #expect(try store.verify() == [])
    }

    /// Catches: a compact copy that is as large as its map, so that opening has no room for what it writes.
    @Test func `S164, S168: a restored copy that is larger than the map is opened, also with another schema`() throws {
        let scratch = try Scratch()
        let small = options(1 << 20, maximum: nil)
        let store = try scratch.store(small)
        for _ in 0..<8 { try store.insertTracks(5000) }
        let backup = scratch.url.appendingPathExtension("backup")
        _ = try store.backup(to: backup, existing: .refuse, cancellation: Cancellation())
        let restored = scratch.url.appendingPathExtension("restored")
        try MigratableLMDBFile(restored, small).restore(from: backup, cancellation: Cancellation())
        var larger = Samples.schema
        larger.version = SchemaVersion(9, 0, 0)
        larger.entities[Samples.artist].columns[1].index = .indexed
        for (url, schema) in [(restored, Samples.schema), (backup, larger)] {
            let copy = try LMDBStore.open(url, schema: schema, options: small)
            #expect(try copy.snapshot().count(StoreQuery(entity: Samples.track)) == 40_000)
            #expect(try copy.verify() == [])
        }
    }

    @Test func aFullStoreRefusesInsertsTakesDeletesAndThenInsertsAgain() throws {
        let scratch = try Scratch()
        let store = try scratch.store(options(1 << 22, maximum: 1 << 22))
        var keys: [ObjectKey] = []
        var refusal: StoreError?
        while refusal == nil {
            do {
                keys += try store.insertTracks(640)
            } catch let error as StoreError {
                refusal = error
            }
        }
        #expect(refusal?.code == .full, "\(String(describing: refusal))")
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == keys.count)
        for start in stride(from: 0, to: keys.count, by: 64) {
            try store.save { layer, _ in
                for key in keys[start..<min(start + 64, keys.count)] {
                    layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
                }
            }
        }
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 0)
        try store.insertTracks(640)
        #expect(try store.verify() == [])
    }

    @Test func aSnapshotStaysReadableWhileTheMapCannotGrow() throws {
        let scratch = try Scratch()
        let store = try scratch.store(options(1 << 20, maximum: nil))
        let keys = try store.insertTracks(64)
        let held = try store.snapshot()
        var refusal: StoreError?
        for _ in 0..<100 where refusal == nil {
            do { try store.insertTracks(640) } catch let error as StoreError { refusal = error }
        }
        #expect(refusal?.code == .full)
        #expect(try held.keys(StoreQuery(entity: Samples.track)) == keys)
        #expect(try held.value(Samples.track, key: keys[5], column: 0) == .string("isrc-5"))
    }

    @Test func aSaveThatFailedHalfwayIsNotCommittedEvenIfTheBodyGoesOn() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        #expect(throws: StoreError.self) {
            try store.write(.durable) { transaction in
                let layer = Layer(schema: store.schema)
                let keys = try transaction.allocateKeys(Samples.track, pages: 2)
                layer.put(Samples.row(Samples.trackValues(1), in: layer), entity: Samples.track, key: keys.lowerBound)
                var wrong = Samples.trackValues(2)
                wrong[2] = .string("not a number")
                layer.put(Samples.row(wrong, in: layer), entity: Samples.track, key: keys.lowerBound.advanced(by: 64))
                layer.stamp(1)
                try? transaction.apply(layer, changes: layer.changeSet())
            }
        }
        #expect(try store.snapshot().count(StoreQuery(entity: Samples.track)) == 0)
        #expect(try store.snapshot().generation == 0)
    }
}
