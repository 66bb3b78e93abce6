import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// Damage to the records that the main tree has of each table. LMDB believes their roots, depths and counts.
@Suite struct TreeRecordDamageTests {
    /// The fields of a record, in bits.
    private enum Field {
        static let flags = 32..<48
        static let depth = 48..<64
        static let counts = [64..<128, 128..<192, 192..<256, 256..<320]
        static let root = 320..<384

        /// Few bits of the counts and of the root are enough: the low ones, which lead to pages of the file, and some high ones.
        static var tried: [Int] {
            if Rounds.of(0, long: 1) == 1 { return Array(0..<384) }
            let numbers = (counts + [root]).flatMap { field in (Array(0..<6) + [9, 20, 40, 63]).map { field.lowerBound + $0 } }
            return [0, 31] + Array(flags) + Array(depth) + numbers
        }
    }

    /// The results of reads through every table.
    private struct Content: Hashable {
        var rows: [[Value?]] = []
        var keys: [[ObjectKey]] = []
    }

    /// Creates a file with tables of no page, of one page and of several levels, and a free list.
    private func filled(_ scratch: Scratch) throws {
        let store = try scratch.store()
        var artists: [ObjectKey] = []
        try store.save { layer, transaction in
            artists = Array(try transaction.allocateKeys(Samples.artist, pages: 1).prefix(9))
            for (number, key) in artists.enumerated() {
                layer.put(Samples.row([.string("\(number)"), .null], in: layer), entity: Samples.artist, key: key)
            }
        }
        let tracks = try artists.flatMap { try store.insertTracks(300, artist: $0) }
        try store.save { layer, _ in
            for number in 0..<40 { layer.setLink(0, from: tracks[number], to: tracks[number * 3 + 1], linked: true) }
        }
        try store.save { layer, _ in
            for key in tracks.suffix(700) {
                layer.put(Row.make(kind: .delete, layer: layer.id, columnCount: 6), entity: Samples.track, key: key)
            }
        }
        for _ in 0..<3 { try store.insertTracks(1) }
    }

    private func content(_ store: LMDBStore) throws -> Content {
        let snapshot = try store.snapshot()
        var content = Content()
        for (entity, schema) in Samples.schema.entities.enumerated(as: EntityIndex.self) {
            let keys = try snapshot.keys(StoreQuery(entity: entity))
            content.keys.append(keys)
            for key in keys {
                content.rows.append(try schema.columnIndices.map { try snapshot.value(entity, key: key, column: $0) })
            }
            for column in schema.columnIndices where schema.columns[column].index != .none {
                content.keys.append(try snapshot.keys(StoreQuery(entity: entity, sort: [StoreSort(column: column)])))
                for key in keys.prefix(9) {
                    guard let value = try snapshot.value(entity, key: key, column: column) else { continue }
                    content.keys.append(try snapshot.lookup(entity, column: column, value: value))
                }
            }
            for key in keys.prefix(99) {
                let relations: [Relation] =
                    entity == Samples.artist
                    ? [.referrers(entity: Samples.track, column: 4)]
                    : [.link(0, .forward, destination: entity), .link(0, .backward, destination: entity)]
                for relation in relations { content.keys.append(try snapshot.related(relation, to: key)) }
            }
        }
        return content
    }

    /// Returns the names of the tables, with the offsets of their records in a file whose main tree is one leaf.
    private func records(_ file: Data) throws -> [(name: String, offset: Int)] {
        func number<T: FixedWidthInteger>(_ offset: Int, _ type: T.Type) -> Int {
            Int(file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) })
        }
        let meta = number(4096 + 144, UInt64.self) > number(144, UInt64.self) ? 4096 : 0
        let main = number(meta + 128, UInt64.self) * 4096
        try #require(number(main + 10, UInt16.self) == 2, "the main tree is one leaf")
        return stride(from: main + 16, to: main + number(main + 12, UInt16.self), by: 2).map { place in
            let entry = main + number(place, UInt16.self)
            let value = entry + 8 + number(entry + 6, UInt16.self)
            return (String(decoding: file[(entry + 8)..<value], as: UTF8.self), value)
        }
    }

    /// Catches: objects that a repair leaves out because the record of their table names another kind. Its name tells the kind.
    @Test func `salvage needs no kinds in the records of tables`() throws {
        let scratch = try Scratch()
        try filled(scratch)
        let sound = try Data(contentsOf: scratch.url)
        let (file, copy) = (scratch.folder.appendingPathComponent("file"), scratch.folder.appendingPathComponent("copy"))
        var damaged = sound
        for (name, start) in try records(sound) where !name.hasPrefix("index.") {
            for bit in Rounds.of(0, long: 1) == 1 ? Array(Field.flags) : [33, 34, 35, 36, 37, 47] {
                for url in [file, copy] {
                    for suffix in ["", "-lock", "-signal"] { try? FileManager.default.removeItem(atPath: url.path + suffix) }
                }
                let offset = start + bit / 8
                damaged[offset] ^= 1 << UInt8(bit % 8)
                try damaged.write(to: file)
                #expect(try LMDBStore.salvage(file, to: copy) == LMDBStore.Salvage(), "bit \(bit) of \(name)")
                damaged[offset] = sound[offset]
            }
        }
    }

    /// Catches: an empty table that opening makes in place of one whose name it does not find.
    @Test(arguments: [false, true])
    func `a flipped bit of a table's name is refused, and the file is not changed`(isReadOnly: Bool) throws {
        let scratch = try Scratch()
        try filled(scratch)
        let sound = try Data(contentsOf: scratch.url)
        var options = LMDBStore.Options()
        options.isReadOnly = isReadOnly
        for (name, start) in try records(sound) where name != MetaTable.name {
            var damaged = sound
            damaged[start - 1] ^= 1
            try damaged.write(to: scratch.url)
            let opening = #expect(throws: StoreError.self, "\(name)") { try scratch.store(options) }
            #expect(opening?.code == .damaged, "\(name): \(opening?.message ?? "")")
            // A repair asks for the schema first, to find out whether the file can be opened.
            let reading = #expect(throws: StoreError.self, "\(name)") {
                try MigratableLMDBFile(scratch.url, options).storedSchema()
            }
            #expect(reading?.code == .damaged, "\(name): \(reading?.message ?? "")")
            #expect(try Data(contentsOf: scratch.url) == damaged, "\(name)")
        }
        try sound.write(to: scratch.url)
        #expect(try scratch.store(options).verify() == [])
    }

    @Test func `salvage copies all objects of a file whose list lacks an index or the history, and says so`() throws {
        let scratch = try Scratch()
        try filled(scratch)
        let sound = try Data(contentsOf: scratch.url)
        for (number, (name, start)) in try records(sound).enumerated() where name.hasPrefix("index.") || name == "history" {
            let (file, copy) = ("file \(number)", "copy \(number)")
            var damaged = sound
            damaged[start - 1] ^= 1
            try damaged.write(to: scratch.folder.appendingPathComponent(file))
            let salvage = try LMDBStore.salvage(
                scratch.folder.appendingPathComponent(file), to: scratch.folder.appendingPathComponent(copy))
            #expect(salvage.losses == [], "\(name)")
            #expect(salvage.harmlessDamage.contains { $0.contains("the list of the tables") }, "\(name)")
        }
    }

    @Test func `a flipped bit of a table's record is refused, or all reads are right`() throws {
        let scratch = try Scratch()
        try filled(scratch)
        let content = try content(scratch.store())
        let sound = try Data(contentsOf: scratch.url)
        let file = try FileHandle(forUpdating: scratch.url)
        defer { try? file.close() }
        func write(_ byte: UInt8, at offset: Int) throws {
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: Data([byte]))
        }
        let records = try records(sound)
        try #require(records.count > 9)
        for (name, start) in records {
            for bit in Field.tried {
                let offset = start + bit / 8
                try write(sound[offset] ^ 1 << UInt8(bit % 8), at: offset)
                var isRefused = false
                do {
                    #expect(try self.content(scratch.store()) == content, "bit \(bit) of \(name)")
                } catch let error as StoreError {
                    isRefused = true
                    #expect(error.code == .damaged || error.code == .notAStore, "bit \(bit) of \(name): \(error)")
                }
                try write(sound[offset], at: offset)
                guard [Field.flags, Field.depth, Field.root].contains(where: { $0.contains(bit) }) else { continue }
                #expect(isRefused, "bit \(bit) of \(name)")
            }
        }
        #expect(try Data(contentsOf: scratch.url) == sound)
        #expect(try scratch.store().verify() == [])
    }

    /// Catches: objects that are left out, or a program that stops, because of an impossible number of values. Two such numbers can have
    /// a right sum, and of a large table opening does not read all of them.
    @Test(arguments: [62, 63]) func `an impossible number of values of a key is damage`(_ bit: Int) throws {
        let scratch = try Scratch()
        let first = try scratch.store()
        for artist in [64, 65] as [ObjectKey] { try first.insertTracks(600, artist: artist) }
        try first.shutDown()
        var file = try Data(contentsOf: scratch.url)
        func number<T: FixedWidthInteger>(_ offset: Int, _ type: T.Type) -> Int {
            Int(truncatingIfNeeded: file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) })
        }
        for page in stride(from: 8192, to: file.count, by: 4096)
        where number(page, UInt64.self) == page / 4096 && number(page + 10, UInt16.self) == 2 {
            for place in stride(from: page + 16, to: page + number(page + 12, UInt16.self), by: 2) {
                // An entry with a number as key, whose values are a tree. Its record has the number of values at offset 32.
                let entry = page + number(place, UInt16.self)
                guard number(entry + 4, UInt16.self) == 6, number(entry + 6, UInt16.self) == 8 else { continue }
                let isSecond = number(entry + 8, UInt64.self) == 65
                let entries = number(entry + 48, UInt64.self)
                let changed = isSecond ? entries &- 1 << bit : entries &+ 1 << bit
                withUnsafeBytes(of: changed.littleEndian) { file.replaceSubrange(entry + 48..<entry + 56, with: $0) }
            }
        }
        try file.write(to: scratch.url)
        let store = try scratch.store()
        let snapshot = try store.snapshot()
        for artist in [64, 65] as [ObjectKey] {
            let equal: StorePredicate = .compare(4, .equal, to: .reference(artist))
            for read in [
                { _ = try snapshot.related(.referrers(entity: Samples.track, column: 4), to: artist) },
                { _ = try snapshot.keys(StoreQuery(entity: Samples.track, predicate: equal)) },
            ] {
                #expect(throws: StoreError.self) { try read() }
            }
        }
        #expect(try !store.verify().isEmpty)
    }
}
