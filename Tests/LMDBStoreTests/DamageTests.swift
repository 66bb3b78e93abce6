import Foundation
import StoreInterface
import Testing

@testable import LMDBStore

/// Catches damage that would be read as data, or that `verify` walks past.
@Suite struct DamageTests {
    /// A store whose page of tracks was changed at one byte, by way of its own table. Its file goes with the folder.
    private func damaged(_ scratch: Scratch, at offset: (Int) -> Int) throws -> LMDBStore {
        let store = try scratch.store()
        try store.insertTracks(64)
        try store.environment.write { transaction in
            let table = store.tables.pages[Samples.track]
            var bytes = Array(try #require(try transaction.get(table, 1)))
            bytes[offset(bytes.count)] ^= 0x40
            try bytes.withUnsafeBytes { try transaction.put(table, 1, $0) }
        }
        return store
    }

    @Test(arguments: [0, 8, 17, 25, 48, 100, 700]) func aFlippedBitOfAPageIsFound(offset: Int) throws {
        let scratch = try Scratch()
        let store = try damaged(scratch, at: { min(offset, $0 - 1) })
        #expect(try !store.verify().isEmpty)
    }

    @Test func aMergeDoesNotGiveDamageAFreshChecksum() throws {
        let scratch = try Scratch()
        let store = try damaged(scratch, at: { $0 - 1 })
        let error = #expect(throws: StoreError.self) {
            try store.save { layer, _ in
                let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
                row[2] = .int(1)
                layer.put(row, entity: Samples.track, key: 64)
            }
        }
        #expect(error?.code == .damaged)
        #expect(try store.snapshot().generation == 1)
    }

    @Test func missingAndStrayIndexEntriesAreFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(10)
        let index = try #require(store.tables.index(Samples.track, 2))
        try store.environment.write {
            try $0.withCursor(index.database) { cursor in
                _ = try cursor.move(.first)
                try cursor.delete()
            }
        }
        #expect(try store.verify().contains { $0.description.contains("missing in the index on plays") })
        try store.environment.write {
            try $0.withCursor(index.database) { cursor in
                let bytes: [UInt8] = [1, 0x80, 0, 0, 0, 0, 0, 0, 99]
                _ = try bytes.withUnsafeBytes { try cursor.add($0, value: keys[0]) }
                _ = try bytes.withUnsafeBytes { try cursor.add($0, value: keys[1]) }
            }
        }
        #expect(try store.verify().contains { $0.description.contains("has 11 entries for 10 objects") })
    }

    @Test func danglingReferencesAndOneWayLinksAreFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(2, artist: 999)
        try store.save { layer, _ in layer.setLink(0, keys[0], keys[1], linked: true) }
        #expect(try store.verify().contains { $0.description.contains("refers to object 999 of Artist") })
        _ = try store.environment.write { try $0.delete(store.tables.links[0].backward, keys[1]) }
        #expect(try store.verify().contains { $0.description.contains("stored one way only") })
    }
}
