import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

@Suite struct IndexQueryTests {
    private func names(_ names: [String]) throws -> (scratch: Scratch, store: LMDBStore) {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.save { layer, transaction in
            let keys = try transaction.allocateKeys(Samples.artist, pages: 1)
            for (key, name) in zip(keys, names) {
                layer.put(Samples.row([.string(name), .null], in: layer), entity: Samples.artist, key: key)
            }
        }
        return (scratch, store)
    }

    /// Values are equal by code points. Swift's own strings would consider these equal.
    @Test func equivalentSpellingsAreDifferentValues() throws {
        let (scratch, store) = try names(["K", "\u{212A}", "É", "E\u{301}"])
        defer { withExtendedLifetime(scratch) {} }
        let snapshot = try store.snapshot()
        for (number, name) in ["K", "\u{212A}", "É", "E\u{301}"].enumerated() {
            let query = StoreQuery(entity: Samples.artist, predicate: .isIn(0, [.string(name), .string("none")]))
            #expect(try snapshot.keys(query) == [ObjectKey(64 + number)])
        }
        try store.save { layer, _ in
            let row = Row.make(kind: .update, layer: layer.id, columnCount: 2)
            row[0] = .string("E\u{301}")
            layer.put(row, entity: Samples.artist, key: 66)
        }
        #expect(try store.snapshot().lookup(Samples.artist, column: 0, value: .string("E\u{301}")) == [66, 67])
        #expect(try store.verify() == [])
    }

    /// Keys are cut at 511 bytes, so long strings share a key and the objects decide.
    @Test func longStringsThatShareAnIndexKeyAreToldApart() throws {
        let long = String(repeating: "x", count: 600)
        let (scratch, store) = try names([long + "a", long + "b", long])
        defer { withExtendedLifetime(scratch) {} }
        let snapshot = try store.snapshot()
        for (number, name) in [long + "a", long + "b", long].enumerated() {
            let query = StoreQuery(entity: Samples.artist, predicate: .compare(0, .equal, to: .string(name)))
            #expect(try snapshot.keys(query) == [ObjectKey(64 + number)])
            #expect(try snapshot.count(query) == 1)
            #expect(try snapshot.lookup(Samples.artist, column: 0, value: .string(name)) == [ObjectKey(64 + number)])
        }
        let range = StoreQuery(entity: Samples.artist, predicate: .compare(0, .greater, to: .string(long)))
        #expect(try snapshot.keys(range) == [64, 65])
        #expect(
            try snapshot.keys(
                StoreQuery(
                    entity: Samples.artist, predicate: .string(0, .hasPrefix, pattern: long + "a", sensitivity: .sensitive))) == [
                    64
                ])
    }

    @Test func plansAreToldInWords() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1000)
        let snapshot = try store.snapshot()
        func words(_ predicate: StorePredicate) throws -> String {
            try snapshot.explain(StoreQuery(entity: Samples.track, predicate: predicate))
        }
        #expect(try words(.compare(0, .equal, to: .string("isrc-1"))) == "index on isrc, equality")
        #expect(
            try words(.and([.compare(2, .greater, to: .int(3)), .compare(4, .equal, to: .reference(64))]))
                == "index on artist, equality")
        #expect(try words(.compare(2, .less, to: .int(3))) == "index on plays, range")
        #expect(try words(.string(0, .hasPrefix, pattern: "isrc-1", sensitivity: .sensitive)) == "index on isrc, prefix")
        #expect(try words(.string(0, .hasPrefix, pattern: "isrc", sensitivity: .sensitive)) == "scan of 16 pages")
        #expect(try words(.compare(1, .equal, to: .string("title 1"))) == "scan of 16 pages")
        #expect(try words(.or([.compare(2, .less, to: .int(3)), .compare(5, .equal, to: .bool(true))])) == "scan of 16 pages")
        #expect(
            try words(.or([.compare(2, .less, to: .int(3)), .compare(0, .equal, to: .string("isrc-1"))]))
                == "index on plays, range; or index on isrc, equality")
    }

    @Test func countsFromAnIndexRespectOffsetAndLimit() throws {
        let scratch = try Scratch()
        let store = try scratch.store()
        try store.insertTracks(1000)
        let snapshot = try store.snapshot()
        var query = StoreQuery(entity: Samples.track, predicate: .compare(2, .equal, to: .int(3)))
        #expect(try snapshot.count(query) == 100)
        query.offset = 90
        #expect(try snapshot.count(query) == 10)
        query.limit = 4
        #expect(try snapshot.count(query) == 4)
        query.offset = 200
        #expect(try snapshot.count(query) == 0)
    }
}
