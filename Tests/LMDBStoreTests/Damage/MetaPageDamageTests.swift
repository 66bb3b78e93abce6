import Foundation
import LMDB
import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// Damage to the newest meta page, which LMDB believes.
@Suite struct MetaPageDamageTests {
    /// Creates a file with a free list, whose newest commit makes the file longer or not.
    private func filled(_ scratch: Scratch, grows: Bool) throws {
        let store = try scratch.store()
        for _ in 0..<4 { try store.insertTracks(300) }
        let keys = try store.snapshot().keys(StoreQuery(entity: Samples.track))
        try store.save { layer, _ in
            for key in keys.prefix(900) {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
        }
        for _ in 0..<3 { try store.insertTracks(1) }
        if grows { try store.insertTracks(3000) }
    }

    private func content(_ store: LMDBStore) throws -> [ObjectKey: [Value?]] {
        let snapshot = try store.snapshot()
        let keys = try snapshot.keys(StoreQuery(entity: Samples.track))
        return try Dictionary(
            uniqueKeysWithValues: keys.map { key in
                (key, try [0, 2].map { try snapshot.value(Samples.track, key: key, column: $0) })
            })
    }

    /// Opens a changed file, and checks that it is refused, or that it keeps its content when it is written to.
    /// - Returns: Whether it was refused.
    private func isRefused(_ scratch: Scratch, _ content: [ObjectKey: [Value?]], _ what: Comment) throws -> Bool {
        do {
            let store = try scratch.store()
            for _ in 0..<2 { try store.insertTracks(1) }
        } catch let error as StoreError {
            // A wrong root may lead to a tree without the table that every store has.
            #expect(error.code == .damaged || error.code == .notAStore, what)
            return true
        }
        let store = try scratch.store()
        #expect(try store.verify() == [], what)
        #expect(try self.content(store).filter { content.keys.contains($0.key) } == content, what)
        return false
    }

    private func newestMeta(_ bytes: Data) -> Int {
        let numbers = [0, 4096].map { page in
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: page + 144, as: UInt64.self) }
        }
        return numbers[1] > numbers[0] ? 4096 : 0
    }

    /// Catches: a wrong root of the free list, from which LMDB takes pages that are in use.
    @Test(arguments: [false, true])
    func `S212: a flipped bit of the newest meta page is refused or harmless`(grows: Bool) throws {
        let scratch = try Scratch()
        try filled(scratch, grows: grows)
        let sound = try Data(contentsOf: scratch.url)
        let content = try content(scratch.store())
        let meta = newestMeta(sound)
        var refused: Set<Int> = []
        // Of the record of the main tree: what LMDB ignores, and counts of pages, of which few bits are enough.
        let ignored = [64..<96, 128..<320]
        for bit in 0..<512 where bit % 16 == 0 || !ignored.contains(where: { $0.contains(bit) }) {
            var bytes = sound
            bytes[meta + 80 + bit / 8] ^= 1 << UInt8(bit % 8)
            try bytes.write(to: scratch.url)
            if try isRefused(scratch, content, "bit \(bit)") { refused.insert(bit) }
        }
        // The root of the free list, and the flags, depth, entries and root of the main tree.
        for bits in [0..<64, 96..<128, 320..<448] { #expect(refused.isSuperset(of: bits), "\(bits)") }
        try sound.write(to: scratch.url)
        #expect(try scratch.store().verify() == [])
    }

    @Test func `a file with a long free list is opened without reading all of it`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.environment.write { transaction in
            let table = try transaction.open("long", .integers)
            let bytes = [UInt8](repeating: 7, count: 2000)
            for key in 0..<4000 as Range<UInt64> { try bytes.withUnsafeBytes { try transaction.put(table, key: key, value: $0) } }
        }
        try store.environment.write { try $0.empty(try $0.open("long", .integers)) }
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .roots, readAtOpening: MetaTable.name) == [])
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .everything, readAtOpening: MetaTable.name) == [])
    }
}
