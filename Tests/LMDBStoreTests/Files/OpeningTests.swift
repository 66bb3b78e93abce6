import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Catches: files that LMDB would map and crash on, and stores that are opened twice.
@Suite struct OpeningTests {
    private func code(_ body: () throws -> Void) -> StoreError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? StoreError)?.code
        }
    }

    @Test(arguments: [1, 100, 151, 4096, 100_000]) func garbageIsNotAStore(count: Int) throws {
        let scratch = try Scratch()
        var random = SeededGenerator()
        try Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }).write(to: scratch.url)
        #expect(code { _ = try scratch.store() } == .notAStore)
    }

    @Test func anEmptyFileBecomesAStore() throws {
        let scratch = try Scratch()
        try Data().write(to: scratch.url)
        #expect(try scratch.store().insertTracks(3).count == 3)
    }

    @Test func aFileCutShortIsDamaged() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        try store?.insertTracks(2000)
        store = nil
        let whole = try Data(contentsOf: scratch.url)
        for kept in [whole.count - 1, whole.count / 2, 3 * 4096, 4096 + 200, 5000, 300] {
            try whole.prefix(kept).write(to: scratch.url)
            let found = code { _ = try scratch.store() }
            #expect(found == .damaged, "\(kept) of \(whole.count) bytes")
            #expect(try Data(contentsOf: scratch.url).count == kept)
        }
    }

    @Test func damagedMetaPagesNeverCrash() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        try store?.insertTracks(100)
        store = nil
        let whole = try Data(contentsOf: scratch.url)
        // The roots, the last page, the page size and the format version of both meta pages.
        for offset in [16, 20, 40, 80, 128, 136] {
            var bytes = whole
            for page in [0, 4096] { bytes.replaceSubrange(page + offset..<page + offset + 4, with: [0xFF, 0xFF, 0xFF, 0x7F]) }
            try bytes.write(to: scratch.url)
            let found = code { _ = try scratch.store() }
            #expect(
                found == .damaged || found == .notAStore || found == .formatTooNew,
                "offset \(offset): \(String(describing: found))")
        }
    }

    @Test func twoPathsToOneFileGiveOneStore() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let symbolic = scratch.folder.appendingPathComponent("symbolic")
        let hard = scratch.folder.appendingPathComponent("hard")
        try FileManager.default.createSymbolicLink(at: symbolic, withDestinationURL: scratch.url)
        try FileManager.default.linkItem(at: scratch.url, to: hard)
        for url in [symbolic, hard, scratch.folder.appendingPathComponent("./store.lmdb")] {
            #expect(try LMDBStore.open(url, schema: Samples.schema) === store)
        }
    }

    @Test func anotherSchemaIsRefusedByNameOpenOrNot() throws {
        let scratch = try Scratch()
        var other = Samples.schema
        other.entities[1].columns[1].type = .data
        var store: LMDBStore? = try scratch.store()
        for _ in 0..<2 {
            do {
                _ = try LMDBStore.open(scratch.url, schema: other)
                Issue.record("opened")
            } catch let error as StoreError {
                #expect(error.code == .schemaMismatch)
                let words = store == nil ? "would change its type from string to data" : "was string and is data"
                #expect(error.message.contains("Track.title \(words)"))
            }
            store = nil
        }
        _ = store
    }

    @Test func aReopenedStoreKeepsIdentityLeasesAndGeneration() throws {
        let scratch = try Scratch()
        var store: LMDBStore? = try scratch.store()
        let identity = store?.identity
        let keys = try store?.insertTracks(70)
        store = nil
        let again = try scratch.store()
        #expect(again.identity == identity)
        #expect(try again.snapshot().generation == 1)
        #expect(try again.insertTracks(1)[0] > keys!.last!)
    }

    @Test func openingAndDroppingOnManyThreadsNeverOpensTwice() throws {
        let scratch = try Scratch()
        try scratch.store().insertTracks(10)
        DispatchQueue.concurrentPerform(iterations: 200) { _ in
            let count = try? scratch.store().snapshot().count(StoreQuery(entity: Samples.track))
            #expect(count == 10)
        }
    }
}
