import Foundation
import LMDB
import PageCodec
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Checksums also cover the place of a page, the single values of the store, and the number of the newest commit.
@Suite struct CoverageTests {
    @Test func `S212: a page under another number or of another entity is found`() throws {
        for (from, to) in [(1, 9), (2, 3)] as [(UInt64, UInt64)] {
            let scratch = try Scratch()
            let store = try scratch.store()
            try store.insertTracks(128)
            // Artists have an index on one column only. The objects below have no entry in it, so their count still fits.
            try store.tamper { transaction in
                let pages = store.tables.pages[Samples.track]
                let bytes = Array(try #require(try transaction.get(pages, from)))
                try transaction.delete(pages, from)
                try bytes.withUnsafeBytes { try transaction.put(pages, key: to, value: $0) }
            }
            #expect(try store.verify().contains { $0.description.contains("checksum") })
        }
    }

    @Test(arguments: ["uuid", "format", "library", "generation", "schema number", "schema 1", "check", "next page 1"])
    func `S212: a flipped bit of a single value is found by opening and by verify`(name: String) throws {
        let scratch = try Scratch()
        do {
            let store = try scratch.store()
            try store.insertTracks(10)
            try store.environment.write { transaction in
                var bytes = Array(try #require(try transaction.metaBytes(name, store.tables.meta)))
                bytes[bytes.count / 2] ^= 1
                try bytes.withUnsafeBytes { try MetaTable.put($0, key: name, meta: store.tables.meta, in: transaction) }
            }
            // A store with another number of schemas, another identity or fewer saves cannot be read to be verified.
            let findings = Result { try store.verify() }
            if !["schema number", "generation", "uuid"].contains(name) { #expect(try !findings.get().isEmpty) }
        }
        let error = #expect(throws: StoreError.self) { try scratch.store() }
        #expect(error?.code == (["format", "library"].contains(name) ? error?.code : .damaged))
        #expect([.damaged, .formatTooNew].contains(error?.code))
    }

    @Test func `S212: opening refuses a file whose identity was changed`() throws {
        let scratch = try Scratch()
        do {
            let store = try scratch.store()
            try store.insertTracks(10)
            try store.environment.write { transaction in
                var bytes = Array(try #require(try transaction.metaBytes(MetaTable.Key.uuid, store.tables.meta)))
                bytes[3] ^= 0x10
                try bytes.withUnsafeBytes {
                    try MetaTable.put($0, key: MetaTable.Key.uuid, meta: store.tables.meta, in: transaction)
                }
            }
        }
        let error = #expect(throws: StoreError.self) { try scratch.store() }
        #expect(error?.code == .damaged)
    }

    /// The number of the newest commit is at offset 144 of its meta page. Flipping bit 1 may give the number of the commit two
    /// before, as if the newest meta page had never been written.
    @Test(arguments: 9...12) func `S212: a flipped bit of the newest commit's number is found`(saves: Int) throws {
        let scratch = try Scratch()
        do {
            let store = try scratch.store()
            for _ in 0..<saves { try store.insertTracks(10) }
        }
        let whole = try Data(contentsOf: scratch.url)
        let numbers = [0, 4096].map { page in
            whole.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page + 144, as: UInt64.self) }
        }
        let newest = numbers[0] > numbers[1] ? 0 : 4096
        for bit in 0..<62 {
            var bytes = whole
            bytes[newest + 144 + bit / 8] ^= 1 << UInt8(bit % 8)
            try bytes.write(to: scratch.url)
            let error = #expect(throws: StoreError.self, "bit \(bit)") { try scratch.store() }
            #expect(error?.code == .damaged, "bit \(bit)")
        }
        try whole.write(to: scratch.url)
        #expect(try scratch.store().verify() == [])
    }

    @Test func `copies fit their checksums and go on`() async throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<5 { try store.insertTracks(100) }
        let names = ["backup", "compact"].map { scratch.folder.appendingPathComponent($0) }
        _ = try store.backup(to: names[0], existing: .refuse)
        try await store.compactCopy(to: names[1])
        for url in names {
            let copy = try LMDBStore.open(url, schema: Samples.schema)
            #expect(try copy.verify() == [])
            try copy.insertTracks(5)
            #expect(try copy.verify() == [])
            #expect(try copy.snapshot().generation == 6)
        }
    }

    @Test func `a write that changes nothing commits nothing`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1)
        let before = try store.environment.information().lastTransaction
        try store.write(.durable) { _ in }
        #expect(try store.environment.information().lastTransaction == before)
        _ = try scratch.store()
        #expect(try store.environment.information().lastTransaction == before)
    }
}
