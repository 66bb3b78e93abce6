import Foundation
import LMDB
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Damage to LMDB's own pages, on which LMDB itself would crash.
@Suite struct TreeDamageTests {
    private func filled() throws -> Scratch {
        let scratch = try Scratch()
        let store = try scratch.store()
        for _ in 0..<4 { try store.insertTracks(1000) }
        let keys = try store.snapshot().keys(StoreQuery(entity: Samples.track))
        try store.save { layer, _ in
            for key in keys where key.rawValue % 3 == 0 {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
            for key in keys where key.rawValue % 3 == 1 { layer.setLink(0, from: key, to: keys[1], linked: true) }
        }
        return scratch
    }

    @Test func aSoundFileHasNoFindings() throws {
        let scratch = try filled()
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .everything) == [])
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: .roots) == [])
    }

    /// Headers and entries of random pages are overwritten. Verification reports errors, or finds nothing because the page was
    /// free.
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

    /// Opening reads every row of the meta table, so sizes and places of its values are checked before.
    @Test func aDamagedEntryOfTheMetaTableIsAnErrorAndNoCrash() throws {
        let scratch = try filled()
        let sound = try Data(contentsOf: scratch.url)
        let main = root(sound, 128)
        let names = entries(sound, main).map { entry in
            (entry, String(decoding: sound[(entry + 8)..<(entry + 8 + number(sound, entry + 6, UInt16.self))], as: UTF8.self))
        }
        let record = try #require(names.first { $0.1 == MetaTable.name }?.0)
        let meta = number(sound, record + 8 + MetaTable.name.utf8.count + 40, UInt64.self) * 4096
        for entry in entries(sound, meta) {
            // The size of the value, which then ends behind the file, and the flag of a value on other pages.
            for damage in [0x7FFF_0000, 0x0100_0000] as [UInt32] {
                var bytes = sound
                put(damage, entry, &bytes)
                try bytes.write(to: scratch.url)
                #expect(throws: StoreError.self) { try scratch.store() }
            }
        }
    }

    private func number<T: FixedWidthInteger>(_ bytes: Data, _ offset: Int, _ type: T.Type) -> Int {
        Int(truncatingIfNeeded: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: T.self) })
    }

    private func put<T: FixedWidthInteger>(_ value: T, _ offset: Int, _ bytes: inout Data) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: value, toByteOffset: offset, as: T.self) }
    }

    /// Returns the root of a tree that a meta page names: the free list at offset 80, the main tree at 128.
    private func root(_ bytes: Data, _ place: Int) -> Int {
        let newest = number(bytes, 4096 + 144, UInt64.self) > number(bytes, 144, UInt64.self) ? 4096 : 0
        return number(bytes, newest + place, UInt64.self) * 4096
    }

    /// Returns the entries of a leaf.
    private func entries(_ bytes: Data, _ page: Int) -> [Int] {
        stride(from: 16, to: number(bytes, page + 12, UInt16.self), by: 2).map { page + number(bytes, page + $0, UInt16.self) }
    }

    private func name(_ bytes: Data, _ entry: Int) -> String {
        String(decoding: bytes[(entry + 8)..<(entry + 8 + number(bytes, entry + 6, UInt16.self))], as: UTF8.self)
    }

    /// Catches: objects that no look-up finds, while nothing tells that they are missing. Without an index, nothing looks for them.
    @Test func `a flipped bit of a branch's key is found`() throws {
        let scratch = try Scratch()
        let schema = StoreSchema(entities: [EntitySchema(name: "Thing", columns: [ColumnSchema(name: "number", type: .int64)])])
        let first = try LMDBStore.open(scratch.url, schema: schema)
        try first.save { layer, transaction in
            for key in try transaction.allocateKeys(0, pages: 200) {
                layer.put(Samples.row([.int(Int64(key.rawValue))], in: layer), entity: 0, key: key)
            }
        }
        #expect(try first.verify() == [])
        try first.shutDown()
        var bytes = try Data(contentsOf: scratch.url)
        let record =
            try #require(entries(bytes, root(bytes, 128)).first { name(bytes, $0) == "pages.0" }) + 8 + "pages.0".utf8.count
        let branch = number(bytes, record + 40, UInt64.self) * 4096
        try #require(number(bytes, branch + 10, UInt16.self) == 1, "the table has a branch")
        let key = entries(bytes, branch)[1] + 8
        bytes[key] ^= 1
        try bytes.write(to: scratch.url)
        let store = try LMDBStore.open(scratch.url, schema: schema)
        #expect(try store.verify().contains { $0.description.contains("out of order") })
        try store.shutDown()
        var options = LMDBStore.Options()
        options.openingCheck = .everything
        let error = #expect(throws: StoreError.self) { try LMDBStore.open(scratch.url, schema: schema, options: options) }
        #expect(error?.code == .damaged)
    }

    /// Catches: a sound file that is called damaged. LMDB leaves keys in branches whose entries are deleted, moves entries
    /// between pages, and compares the keys of each kind of table differently.
    @Test func `the keys of every kind of table are in order after random changes`() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        let kinds: [Database.Kind] = [.bytes, .integers, .bytesToIntegers, .integersToIntegers]
        var random = SeededGenerator()
        for round in 0..<Rounds.of(12, long: 300) {
            let deletions = random.below(100)
            try store.environment.write { transaction in
                for (position, kind) in kinds.enumerated() {
                    let table = try transaction.open("random \(position)", kind)
                    for _ in 0..<300 {
                        let isDeletion = random.chance(deletions)
                        try change(table, kind, isDeletion: isDeletion, in: transaction, &random)
                    }
                }
            }
            let findings = try TreeCheck.findings(path: scratch.url.path, scope: .everything, readAtOpening: MetaTable.name)
            #expect(findings == [], "round \(round)")
        }
    }

    /// Adds an entry to a table, or some values of a key, or deletes some.
    private func change(
        _ table: Database, _ kind: Database.Kind, isDeletion: Bool, in transaction: WriteTransaction,
        _ random: inout SeededGenerator
    ) throws {
        let hasNumberKeys = kind == .integers || kind == .integersToIntegers
        let hasValues = kind == .bytesToIntegers || kind == .integersToIntegers
        let number = UInt64(random.below(hasValues ? 20 : 900)) << (random.chance(20) ? 40 : 0)
        // Some keys are nearly as long as LMDB allows, and some are the beginning of others.
        let bytes = Array(String(number).utf8) + [UInt8](repeating: 120, count: number % 2 == 0 ? 480 : Int(number % 3))
        let content = [UInt8](repeating: 7, count: random.below(700))
        let values = (0..<40).map { _ in UInt64(random.below(5000)) << (random.chance(20) ? 33 : 0) }
        try bytes.withUnsafeBytes { key in
            if isDeletion, hasValues, number % 3 != 0 {
                for value in values {
                    _ =
                        try hasNumberKeys
                        ? transaction.delete(table, number, value: value) : transaction.delete(table, key, value: value)
                }
            } else if isDeletion {
                _ = try hasNumberKeys ? transaction.delete(table, number) : transaction.delete(table, key)
            } else if hasValues {
                try transaction.withCursor(table) { cursor in
                    for value in values {
                        _ = try hasNumberKeys ? cursor.add(number, value: value) : cursor.add(key, value: value)
                    }
                }
            } else {
                try content.withUnsafeBytes { content in
                    if hasNumberKeys {
                        try transaction.put(table, key: number, value: content)
                    } else {
                        try transaction.put(table, key: key, value: content)
                    }
                }
            }
        }
    }

    @Test func aListOfFreePagesWithoutACountIsAFinding() throws {
        let scratch = try filled()
        var bytes = try Data(contentsOf: scratch.url)
        let entry = try #require(entries(bytes, root(bytes, 80)).first)
        for size in [0, 7] as [UInt32] {
            put(size, entry, &bytes)
            put(UInt16(0), entry + 4, &bytes)
            try bytes.write(to: scratch.url)
            let findings = try TreeCheck.findings(path: scratch.url.path, scope: .everything)
            #expect(findings?.contains { $0.contains("free list") } == true)
        }
    }

    @Test(arguments: [TreeCheck.Scope.roots, .everything])
    func aRecordOfATreeAtTheEndOfItsPageIsAFinding(_ scope: TreeCheck.Scope) throws {
        let scratch = try filled()
        var bytes = try Data(contentsOf: scratch.url)
        let page = root(bytes, 128)
        let entry = try #require(entries(bytes, page).max())
        let key = number(bytes, entry + 6, UInt16.self)
        // The record's first four bytes are beyond the page.
        put(UInt32(page + 4096 - entry - 8 - key), entry, &bytes)
        for offset in stride(from: 16, to: number(bytes, page + 12, UInt16.self), by: 2)
        where page + number(bytes, page + offset, UInt16.self) == entry {
            let moved = 4096 - 8 - key
            bytes.replaceSubrange((page + moved)..<(page + 4096), with: bytes[entry..<(entry + 8 + key)])
            put(UInt32(0), page + moved, &bytes)
            put(UInt16(moved), page + offset, &bytes)
        }
        try bytes.write(to: scratch.url)
        #expect(try TreeCheck.findings(path: scratch.url.path, scope: scope)?.isEmpty == false)
    }

    /// Each branch has two entries for the same child. A walk that follows every entry would take years.
    @Test func branchesThatLeadToTheSamePagesAreRefusedAtOnce() throws {
        let scratch = try filled()
        var bytes = try Data(contentsOf: scratch.url)
        let main = root(bytes, 128)
        let first = bytes.count / 4096
        let depth = 31
        for level in 0..<depth {
            var page = Data(count: 4096)
            let child = level == depth - 1 ? main / 4096 : first + level + 1
            put(UInt64(first + level), 0, &page)
            put(UInt16(1), 10, &page)
            put(UInt16(20), 12, &page)
            put(UInt16(4096 - 32), 14, &page)
            for (position, place) in [4096 - 16, 4096 - 32].enumerated() {
                put(UInt16(place), 16 + 2 * position, &page)
                put(UInt32(child), place, &page)
                put(UInt16(1), place + 6, &page)
            }
            bytes.append(page)
        }
        for meta in [0, 4096] {
            put(UInt64(first), meta + 128, &bytes)
            put(UInt64(first + depth - 1), meta + 136, &bytes)
        }
        try bytes.write(to: scratch.url)
        #expect { try scratch.store() } throws: { ($0 as? StoreError)?.code == .damaged }
    }

    @Test func aWrongCountOfEntriesIsFound() throws {
        let scratch = try filled()
        let sound = try Data(contentsOf: scratch.url)
        for entry in entries(sound, root(sound, 128)) {
            var bytes = sound
            let count = entry + 8 + number(bytes, entry + 6, UInt16.self) + 32
            put(UInt64.max / 2, count, &bytes)
            try bytes.write(to: scratch.url)
            let findings = try TreeCheck.findings(path: scratch.url.path, scope: .everything)
            #expect(findings?.contains { $0.contains("its record says") } == true)
            // If the opening has not read the whole table, a call that uses that count returns a value or an error.
            guard let store = try? scratch.store() else { continue }
            _ = try? store.snapshot().keys(StoreQuery(entity: Samples.track, predicate: .keys(Set(1...2000))))
            _ = try? store.snapshot().count(StoreQuery(entity: Samples.track, predicate: .compare(2, .greater, to: .int(2))))
            _ = try? store.insertTracks(3)
        }
    }

    /// Catches: a sum of counts that overflows, which stops the process while it opens a damaged file.
    @Test(arguments: [TreeCheck.Scope.roots, .everything])
    func `an impossible count of a key's many values is a finding`(_ scope: TreeCheck.Scope) throws {
        let scratch = try filled()
        let store = try scratch.store()
        let keys = try store.snapshot().keys(StoreQuery(entity: Samples.track))
        try store.save { layer, _ in layer.setLink(0, from: keys[0], to: keys[keys.count - 1], linked: true) }
        let sound = try Data(contentsOf: scratch.url)
        // The entries whose values are a tree of their own, in leaves that are in use or free.
        let records = stride(from: 8192, to: sound.count, by: 4096).filter { number(sound, $0 + 10, UInt16.self) == 2 }
            .flatMap { entries(sound, $0) }.filter { number(sound, $0 + 4, UInt16.self) == 6 }
            .map { $0 + 8 + number(sound, $0 + 6, UInt16.self) }
        try #require(!records.isEmpty)
        var found = 0
        for record in records {
            var bytes = sound
            put(UInt64.max, record + 32, &bytes)
            try bytes.write(to: scratch.url)
            let findings = try TreeCheck.findings(path: scratch.url.path, scope: scope, readAtOpening: MetaTable.name)
            if findings?.isEmpty == false { found += 1 }
        }
        #expect(found > 0)
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

    /// LMDB leaves a page with these flags out of the next commit, which loses the data of the page.
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

    /// LMDB crashes on wrong headers of pages and entries, and on wrong records of trees. If the opening checks all of them,
    /// opening and every later operation is an error or succeeds.
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
                _ = try? store.snapshot().count(StoreQuery(entity: Samples.track, predicate: .compare(2, .equal, to: .int(3))))
            } catch is StoreError { refused += 1 }
        }
        #expect(refused > 0)
    }
}
