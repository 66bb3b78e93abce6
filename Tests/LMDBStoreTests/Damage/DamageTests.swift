import Foundation
import PageCodec
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Catches: damage that would be read as data, or that `verify` does not report.
@Suite struct DamageTests {
    /// Creates a store whose page of tracks was changed at one byte, through its own table. Its file is removed with the
    /// folder.
    private func damaged(_ scratch: Scratch, at offset: (Int) -> Int) throws -> LMDBStore {
        let store = try scratch.store()
        try store.insertTracks(64)
        try store.tamper { transaction in
            let table = store.tables.pages[Samples.track]
            var bytes = Array(try #require(try transaction.get(table, 1)))
            bytes[offset(bytes.count)] ^= 0x40
            try bytes.withUnsafeBytes { try transaction.put(table, key: 1, value: $0) }
        }
        return store
    }

    @Test(arguments: [0, 8, 17, 25, 48, 100, 700]) func `S212: a flipped bit of a page is found`(offset: Int) throws {
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

    /// Creates a store with a page of tracks, of which one has a large value.
    private func storeWithLargeValue(_ scratch: Scratch) throws -> LMDBStore {
        let store = try scratch.store()
        let keys = try store.insertTracks(64)
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[1] = .string(String(repeating: "title ", count: 2000))
            layer.put(row, entity: Samples.track, key: keys[5])
        }
        return store
    }

    /// Changes a bit of the first page of tracks, or of their first large value.
    private func damage(_ store: LMDBStore, isLarge: Bool) throws {
        try store.tamper { transaction in
            let table = isLarge ? store.tables.large[Samples.track] : store.tables.pages[Samples.track]
            let entry = try #require(try transaction.withCursor(table) { try $0.move(.first) })
            var bytes = Array(entry.value)
            bytes[bytes.count - 1] ^= 0x40
            try bytes.withUnsafeBytes { try transaction.put(table, key: entry.number, value: $0) }
        }
    }

    @Test(arguments: [false, true])
    func `S212: a backup of a damaged page or large value is refused, and leaves no file`(_ isLarge: Bool) throws {
        let scratch = try Scratch()
        let store = try storeWithLargeValue(scratch)
        let target = scratch.folder.appendingPathComponent("copy")
        #expect(try store.backup(to: target, existing: .refuse) == 2)
        try damage(store, isLarge: isLarge)
        let before = try Data(contentsOf: target)
        let error = #expect(throws: StoreError.self) { try store.backup(to: target, existing: .replace) }
        #expect(error?.code == .damaged)
        for text in [target.path, store.url.path, "Track", "strata repair"] {
            #expect(error?.message.contains(text) == true, "\(text): \(error?.message ?? "")")
        }
        #expect(try Data(contentsOf: target) == before)
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        #expect(!names.contains { $0.contains("partial") }, "\(names)")
    }

    /// Catches: a damaged backup that replaces a sound store.
    @Test(arguments: [false, true])
    func `a backup with a damaged page or large value is not restored`(_ isLarge: Bool) throws {
        let scratch = try Scratch()
        let target = scratch.folder.appendingPathComponent("target.lmdb")
        let file = MigratableLMDBFile(target, LMDBStore.Options())
        let store = try storeWithLargeValue(scratch)
        let backup = scratch.folder.appendingPathComponent("backup")
        #expect(try store.backup(to: backup, existing: .refuse) == 2)
        try file.restore(from: backup, cancellation: Cancellation())
        try damage(store, isLarge: isLarge)
        try store.shutDown()
        let before = try Data(contentsOf: target)
        let error = #expect(throws: StoreError.self) {
            try file.restore(from: scratch.url, cancellation: Cancellation())
        }
        #expect(error?.code == .damaged)
        for text in [target.path, scratch.url.path, "Track"] {
            #expect(error?.message.contains(text) == true, "\(text): \(error?.message ?? "")")
        }
        #expect(error?.message.contains("partial") == false)
        #expect(try Data(contentsOf: target) == before)
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.folder.path)
        #expect(!names.contains { $0.contains("partial") }, "\(names)")
    }

    /// Catches: an error that calls the sound store damaged, or of a newer format, instead of its backup.
    @Test(arguments: [MetaTable.Key.schemaNumber, MetaTable.Key.format])
    func `a backup whose schema or format cannot be read is refused with its own path`(_ key: String) throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.tamper { try MetaTable.put(99, key: key, meta: store.tables.meta, in: $0) }
        try store.shutDown()
        let target = scratch.folder.appendingPathComponent("target.lmdb")
        let error = #expect(throws: StoreError.self) {
            try MigratableLMDBFile(target, LMDBStore.Options()).restore(from: scratch.url, cancellation: Cancellation())
        }
        #expect(error?.code == (key == MetaTable.Key.format ? .formatTooNew : .damaged))
        #expect(error?.message.hasPrefix("cannot restore from \(scratch.url.path): ") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains(target.path) == false, "\(error?.message ?? "")")
    }

    @Test(arguments: [([2], "plays"), ([0, 2], "isrc+plays")] as [([ColumnIndex], String)])
    func missingAndStrayIndexEntriesAreFound(_ columns: [ColumnIndex], _ name: String) throws {
        let scratch = try Scratch()
        var schema = Samples.schema
        schema.entities[1].indexes = [IndexSchema(columns: [0, 2])]
        let store = try LMDBStore.open(scratch.url, schema: schema)
        let keys = try store.insertTracks(10)
        #expect(try store.verify() == [])
        let index = try #require(store.tables.index(Samples.track, columns))
        try store.tamper {
            try $0.withCursor(index.database) { cursor in
                _ = try cursor.move(.first)
                try cursor.delete()
            }
        }
        #expect(try store.verify().map(\.description).contains("Track, object \(keys[0]): is missing in the index on \(name)"))
        try store.tamper {
            try $0.withCursor(index.database) { cursor in
                let bytes: [UInt8] = [1, 0x80, 0, 0, 0, 0, 0, 0, 99]
                _ = try bytes.withUnsafeBytes { try cursor.add($0, value: keys[0]) }
                _ = try bytes.withUnsafeBytes { try cursor.add($0, value: keys[1]) }
            }
        }
        #expect(try store.verify().map(\.description).contains("index on Track.\(name): has 11 entries for 10 objects"))
    }

    @Test func aHistoryWithARowOfSave0IsAFinding() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1)
        try store.tamper { transaction in
            let row = Array(try #require(try transaction.get(store.tables.history, 1)))
            try row.withUnsafeBytes { try transaction.put(store.tables.history, key: 0, value: $0) }
        }
        #expect(try store.verify().contains { $0.description.contains("save 0, which is none") })
    }

    @Test func gapsAndForeignRowsOfTheHistoryAreFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<4 { try store.insertTracks(1) }
        try store.tamper { _ = try $0.delete(store.tables.history, 2) }
        #expect(try store.verify().map(\.description) == ["history: save 3 follows save 1"])
        try store.tamper { transaction in
            let row = Array(try #require(try transaction.get(store.tables.history, 1)))
            try row.withUnsafeBytes { try transaction.put(store.tables.history, key: 2, value: $0) }
        }
        #expect(try store.verify().map(\.description) == ["history: the row of save 2 is of save 1"])
    }

    /// Catches: a position that readers of the history use, and that the schema does not have.
    @Test func `a history with numbers that the schema does not have is damaged`() throws {
        func changes(
            _ entity: EntityIndex = Samples.track, page: PageNumber = 1, columns: ColumnSet = ColumnSet(first: 6),
            groups: [ChangeSet.ColumnGroup] = []
        ) -> ChangeSet {
            let page = ChangeSet.PageChange(
                number: page, inserted: 0, updated: 1, deleted: 0, columns: columns, groups: groups)
            return ChangeSet(generation: 1, entities: [.init(entity: entity, pages: [page])])
        }
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1)
        func write(_ changes: ChangeSet) throws {
            try store.tamper { transaction in
                try ChangeSetCodec.encode(changes).withUnsafeBytes {
                    try transaction.put(store.tables.history, key: 1, value: $0)
                }
            }
        }
        try write(changes())
        #expect(try store.verify() == [])
        for set in [
            changes(2), changes(page: PageAddress.end), changes(columns: ColumnSet(first: 7)),
            changes(groups: [.init(slots: 1, columns: ColumnSet(first: 7))]),
            ChangeSet(generation: 1, links: [.init(link: 1, sources: [64], destinations: [64])]),
            ChangeSet(generation: 1, tombstones: [Tombstone(entity: 2, key: 64, values: [])]),
        ] {
            try write(set)
            let error = #expect(throws: StoreError.self, "\(set)") { try store.history(after: nil, limit: 1) }
            #expect(error?.code == .damaged)
            #expect(error?.message.contains("the history of save 1") == true, "\(String(describing: error))")
            #expect(try store.verify().contains { $0.description.contains("no entity, column, link, page or save") }, "\(set)")
        }
    }

    @Test func aPageBeyondTheLeasedOnesIsFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(200)
        #expect(try store.verify() == [])
        let name = MetaTable.Key.nextPage(store.tables.entityNumbers[Samples.track])
        try store.tamper { try MetaTable.put(2, key: name, meta: store.tables.meta, in: $0) }
        #expect(try store.verify().contains { $0.description.contains("the first that was never leased") })
    }

    /// Cutting by number needs no row to be read. One unreadable row must not keep the rows after it for ever.
    @Test(arguments: [HistoryCut.through(3), .before(time: .max)]) func aDamagedRowOfTheHistoryCanBeDeleted(_ cut: HistoryCut)
        throws
    {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<4 { try store.insertTracks(1) }
        try store.tamper { transaction in
            try [UInt8](repeating: 0xFF, count: 9).withUnsafeBytes {
                try transaction.put(store.tables.history, key: 2, value: $0)
            }
        }
        let count = try store.write(.durable) { try $0.deleteHistory(cut, limit: 3) }
        #expect(count == 3)
        #expect(try store.history(after: 3, limit: 9)?.count == 1)
    }

    @Test func numbersThatAreTooLargeAreErrors() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1)
        let name = MetaTable.Key.nextPage(store.tables.entityNumbers[Samples.track])
        for next in [UInt64.max, UInt64.max - 1, 1 << 58] as [UInt64] {
            try store.tamper { try MetaTable.put(next, key: name, meta: store.tables.meta, in: $0) }
            let error = #expect(throws: StoreError.self) {
                try store.write(.durable) { try $0.allocateKeys(Samples.track, pages: 8) }
            }
            #expect(error?.code == .damaged)
        }
        try store.tamper {
            try MetaTable.put(1, key: name, meta: store.tables.meta, in: $0)
            try MetaTable.put(UInt64.max, key: MetaTable.Key.generation, meta: store.tables.meta, in: $0)
        }
        #expect { try store.snapshot() } throws: { ($0 as? StoreError)?.code == .damaged }
        #expect { try store.insertTracks(1) } throws: { ($0 as? StoreError)?.code == .damaged }
    }

    /// The file has an entry of a missing track in each index, and a pair with missing ends. The last row of the history is
    /// missing or has a later number.
    @Test func entriesAndPairsOfMissingObjectsAndAWrongEndOfTheHistoryAreFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(3)
        try store.save { layer, _ in
            layer.put(Samples.row([.string("Ann"), .null], in: layer), entity: Samples.artist, key: 64)
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[4] = .reference(64)
            layer.put(row, entity: Samples.track, key: 64)
        }
        #expect(try store.verify() == [])
        let artist = try #require(store.tables.index(Samples.track, 4))
        let link = store.tables.links[0]
        try store.tamper { transaction in
            _ = try transaction.withCursor(artist.database) { try $0.add(64 as ObjectKey, value: 99) }
            _ = try transaction.withCursor(link.forward) { try $0.add(64 as ObjectKey, value: 99) }
            _ = try transaction.withCursor(link.backward) { try $0.add(99 as ObjectKey, value: 64) }
        }
        var found = try store.verify().map(\.description)
        #expect(found.contains("index on Track.artist: has 2 entries for 1 objects"))
        #expect(found.contains("Track.similar: links Track 64 and Track 99, but Track 99 does not exist."))
        let newest = try store.snapshot().generation
        let row = try store.tamper { transaction in
            let row = Array(try #require(try transaction.get(store.tables.history, newest.rawValue)))
            _ = try transaction.delete(store.tables.history, newest.rawValue)
            return row
        }
        found = try store.verify().map(\.description)
        #expect(found.contains("history: ends with save \(newest.previous), but the newest is \(newest)"))
        try store.tamper { transaction in
            try row.withUnsafeBytes { try transaction.put(store.tables.history, key: newest.rawValue, value: $0) }
            try row.withUnsafeBytes { try transaction.put(store.tables.history, key: newest.next.rawValue, value: $0) }
        }
        found = try store.verify().map(\.description)
        #expect(found.contains("history: ends with save \(newest.next), but the newest is \(newest)"))
        #expect(found.contains("history: the row of save \(newest.next) is of save \(newest)"))
    }

    @Test func danglingReferencesAndOneWayLinksAreFound() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let keys = try store.insertTracks(2, artist: 999)
        try store.save { layer, _ in layer.setLink(0, from: keys[0], to: keys[1], linked: true) }
        #expect(try store.verify().contains { $0.description.contains("leads to Artist 999, which does not exist.") })
        _ = try store.tamper { try $0.delete(store.tables.links[0].backward, keys[1].rawValue) }
        #expect(try store.verify().contains { $0.description.contains("stored one way only") })
    }
}
