import Foundation
import LMDB
import StoreInterface
import Testing

@testable import LMDBStore

/// Damage to LMDB's own pages, on which the library itself would crash.
@Suite struct TreeDamageTests {
    private func filled() throws -> Scratch {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<4 { try store.insertTracks(3000) }
        let keys = try store.snapshot().keys(StoreQuery(entity: Samples.track))
        try store.save { layer, _ in
            for key in keys where key % 3 == 0 {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
            for key in keys where key % 3 == 1 { layer.setLink(0, key, keys[1], linked: true) }
        }
        return scratch
    }

    @Test func aSoundFileHasNoFindings() throws {
        let scratch = try filled()
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .everything) == [])
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .roots) == [])
    }

    /// Headers and entries of random pages are overwritten: verification tells of errors, or finds nothing because the page was free.
    @Test func overwrittenPagesAreFoundWithoutACrash() throws {
        let scratch = try filled()
        let sound = try Data(contentsOf: scratch.url)
        var random = SeededGenerator()
        var found = 0
        for _ in 0..<25 {
            var bytes = sound
            let page = Int.random(in: 2..<(bytes.count / 4096), using: &random)
            for _ in 0..<4 { bytes[page * 4096 + Int.random(in: 0..<40, using: &random)] = .random(in: 0...255, using: &random) }
            try bytes.write(to: scratch.url)
            do {
                let findings = try scratch.store().verify()
                if !findings.isEmpty { found += 1 }
            } catch let error as StoreError {
                #expect(error.code == .damaged || error.code == .notAStore, "\(error)")
                found += 1
            }
        }
        #expect(found > 0, "most pages of the file are in use")
    }

    @Test func aRootThatIsOverwrittenIsRefusedAtOpening() throws {
        let scratch = try filled()
        var bytes = try Data(contentsOf: scratch.url)
        let metas = [0, 4096].map { offset in
            bytes[(offset + 144)..<(offset + 152)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        let newest = metas[1] > metas[0] ? 4096 : 0
        let root = bytes[(newest + 128)..<(newest + 136)].reversed().reduce(0) { $0 << 8 | Int($1) }
        bytes.replaceSubrange((root * 4096 + 12)..<(root * 4096 + 20), with: Data(repeating: 0xFF, count: 8))
        try bytes.write(to: scratch.url)
        #expect { try scratch.store() } throws: { ($0 as? StoreError)?.code == .damaged }
    }

    /// LMDB leaves a page with them out of the next commit, which loses what the page has.
    @Test func flagsThatOnlyAWriterHasAreFound() throws {
        let scratch = try filled()
        let sound = try Data(contentsOf: scratch.url)
        let pages = (2..<(sound.count / 4096)).filter { page in
            // Branches, leaves, and the first pages of large values.
            [1, 2, 4, 0x22].contains(Int(sound[page * 4096 + 10])) && sound[page * 4096 + 11] == 0
        }
        var found = 0
        for page in pages {
            var bytes = sound
            bytes[page * 4096 + 11] = 0x80
            try bytes.write(to: scratch.url)
            if try TreeCheck.findings(path: scratch.url.path, scope: .everything)?.isEmpty != true { found += 1 }
        }
        #expect(found > pages.count / 4, "of \(pages.count) pages, some of which are free")
    }

    @Test func anImpossibleNumberOfCommitsIsRefusedAtOpening() throws {
        let scratch = try filled()
        var bytes = try Data(contentsOf: scratch.url)
        for offset in [144, 4096 + 144] { bytes.replaceSubrange(offset..<(offset + 8), with: Data(repeating: 0xFE, count: 8)) }
        try bytes.write(to: scratch.url)
        #expect { try scratch.store() } throws: { ($0 as? StoreError)?.code == .damaged }
    }

    /// What LMDB crashes on lies in the headers of pages and entries, and in the records of trees: with all of it looked at before, an
    /// open and what follows it is an error or a store.
    @Test func aFileThatIsLookedAtWhollyIsAnErrorOrAStore() throws {
        let scratch = try filled()
        let sound = try Data(contentsOf: scratch.url)
        var options = LMDBStore.Options()
        options.openingCheck = .everything
        var random = SeededGenerator()
        var refused = 0
        for _ in 0..<60 {
            var bytes = sound
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let page = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
                let place = Int.random(in: 0..<256, using: &random)
                bytes[page + (place < 200 ? place : 4095 - (place - 200) * 2)] = .random(in: 0...255, using: &random)
            }
            try bytes.write(to: scratch.url)
            do {
                let store = try scratch.store(options)
                _ = try store.verify()
                _ = try? store.snapshot().count(StoreQuery(entity: Samples.track, predicate: .compare(2, .equal, .int(3))))
            } catch is StoreError { refused += 1 }
        }
        #expect(refused > 0)
    }
}
