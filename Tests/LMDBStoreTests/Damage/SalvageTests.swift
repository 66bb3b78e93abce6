import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Reading a damaged file without LMDB, which would crash on it.
@Suite struct SalvageTests {
    private func filled() throws -> Scratch {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<3 { try store.insertTracks(900) }
        let keys = try store.snapshot().keys(StoreQuery(entity: Samples.track))
        try store.save { layer, _ in
            for key in keys where key.rawValue % 3 == 0 {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
            for key in keys where key.rawValue % 3 == 1 { layer.setLink(0, from: key, to: keys[1], linked: true) }
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 6)
            row[1] = .string(String(repeating: "long title ", count: 2000))
            layer.put(row, entity: Samples.track, key: keys[1])
        }
        return scratch
    }

    /// Returns the values of all objects that can be read in a file, and the pairs of the first link.
    private func content(_ url: URL) throws -> (rows: [ObjectKey: [Value?]], pairs: [ObjectKey: [ObjectKey]]) {
        let snapshot = try LMDBStore.open(url, schema: Samples.schema).newestSnapshot()
        var rows: [ObjectKey: [Value?]] = [:]
        var pairs: [ObjectKey: [ObjectKey]] = [:]
        for number in try snapshot.pageNumbers(Samples.track) {
            guard let page = try? snapshot.checkedPage(Samples.track, number) else { continue }
            for slot in SlotIterator(page.presence) {
                let key = PageAddress.key(page: number, slot: slot)
                rows[key] = (0..<6).map { column in try? page.value(slot, column) }
                pairs[key] = try? snapshot.related(.link(0, .forward, destination: Samples.track), to: key)
            }
        }
        return (rows, pairs)
    }

    @Test func aSoundFileIsCopiedWhole() throws {
        let scratch = try filled()
        let copy = scratch.folder.appendingPathComponent("copy")
        let salvage = try LMDBStore.salvage(scratch.url, to: copy)
        #expect(salvage == LMDBStore.Salvage())
        let (sound, copied) = (try content(scratch.url), try content(copy))
        #expect(sound.rows.count == 1800)
        #expect(sound.rows == copied.rows)
        #expect(sound.pairs == copied.pairs)
    }

    /// Catches: a crash on damaged bytes, a value that the file never had, an object that is missing although nothing is reported.
    @Test func randomDamageLosesOnlyWhatIsReported() throws {
        let scratch = try filled()
        let sound = try content(scratch.url)
        let bytes = try Data(contentsOf: scratch.url)
        let (file, copy) = (scratch.folder.appendingPathComponent("file"), scratch.folder.appendingPathComponent("copy"))
        var random = SeededGenerator()
        var copies = 0
        for _ in 0..<Rounds.of(25, long: 1500) {
            var damaged = bytes
            var isOfMetaPages = false
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let page = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
                if page < 2 * 4096 { isOfMetaPages = true }
                switch Int.random(in: 0..<4, using: &random) {
                case 0: damaged.replaceSubrange(page..<page + 4096, with: Data(count: 4096))
                case 1: damaged[page + .random(in: 0..<64, using: &random)] = .random(in: 0...255, using: &random)
                case 2: damaged[page + .random(in: 0..<4096, using: &random)] ^= 1 << Int.random(in: 0..<8, using: &random)
                default:
                    let other = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
                    damaged.replaceSubrange(page..<page + 4096, with: bytes[other..<other + 4096])
                }
            }
            for url in [file, copy] {
                for suffix in ["", "-lock", "-signal"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
            }
            try damaged.write(to: file)
            do {
                let salvage = try LMDBStore.salvage(file, to: copy)
                let found = try content(copy)
                // Without the newest meta page, the file has the state of an earlier save.
                if isOfMetaPages { continue }
                copies += 1
                for (key, row) in found.rows {
                    let wanted = try #require(sound.rows[key], "an object that the file never had")
                    for (value, wanted) in zip(row, wanted) where value != nil { #expect(value == wanted) }
                }
                if salvage.losses.isEmpty, try isReadable(copy) { #expect(found.rows.count == sound.rows.count) }
            } catch let error as StoreError {
                #expect([.damaged, .notAStore, .formatTooNew].contains(error.code), "\(error)")
            }
        }
        #expect(copies > 0)
    }

    /// Whether every page of objects of a copy has its checksum. A page that has not is reported when it is read.
    private func isReadable(_ url: URL) throws -> Bool {
        let snapshot = try LMDBStore.open(url, schema: Samples.schema).newestSnapshot()
        return try snapshot.pageNumbers(Samples.track).allSatisfy { (try? snapshot.checkedPage(Samples.track, $0)) != nil }
    }
}
