import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

struct FetchRequestTests {
    let data: RandomSongs

    init() throws { data = try RandomSongs(seed: SeededGenerator(test: "FetchRequestTests").seed) }

    @Test func aTypedRequestBecomesColumns() throws {
        let request = FetchRequest<Song>(
            where: #Predicate { $0.plays > 1_000 },
            sortBy: [.init(\.title), .init(\.rating, .descending), .init(\.subtitle, comparing: .caseInsensitive)], limit: 20)
        let query = try request.storeQuery(in: data.scope)
        #expect(query.predicate == .compare(2, .greater, to: .int(1_000)))
        #expect(query.limit == 20)
        #expect(
            query.sort == [
                StoreSort(column: 0), StoreSort(column: 3, direction: .descending),
                StoreSort(column: 1, caseSensitivity: .insensitive),
            ])
    }

    @Test func aRequestByNamesIsTheTypedOne() throws {
        let typed = FetchRequest<Song>(
            where: #Predicate { $0.singer?.name == "a" && $0.plays > 3 }, sortBy: [.init(\.title)], limit: 5, offset: 1)
        let named = EntityFetchRequest(
            "Song", matching: .all([.equal("singer.name", .string("a")), .compare("plays", .greater, to: .int(3))]),
            sortBy: [AttributeSort("title")], limit: 5, offset: 1)
        #expect(try typed.storeQuery(in: data.scope) == named.storeQuery(in: data.scope))
    }

    @Test func S134_conditionsByNamesSelectWhatClosuresDo() throws {
        try expect(.string("title", .hasSuffix, pattern: "A", sensitivity: .insensitive)) { $0.title.lowercased().hasSuffix("a") }
        try expect(.string("singer.name", .contains, pattern: "B", sensitivity: .insensitive)) {
            $0.singer?.name.contains("b") ?? false
        }
        try expect(.between("plays", .int(1), and: .int(4))) { (1...4).contains($0.plays) }
        try expect(.isNil("singer")) { $0.singer == nil }
        try expect(.isNil("singer.nickname")) { $0.singer?.nickname == nil }
        try expect(.equal("singer", .reference(2))) { $0.singer?.key == 2 }
        try expect(.isIn("singer", [.reference(2), .reference(3)])) { $0.singer?.key == 2 || $0.singer?.key == 3 }
        try expect(.compare("subtitle", .notEqual, to: .string("a"))) { $0.subtitle != "a" }
        try expect(.any([.equal("isFavorite", .bool(true)), .not(.isIn("plays", [.int(1)]))])) { $0.isFavorite || $0.plays != 1 }
        try expect(.related("singer.songs", .all, where: .compare("plays", .less, to: .int(8)))) {
            $0.singer?.songs.allSatisfy { $0.plays < 8 } ?? false
        }
        try expect(.relatedCount("singer.songs", where: .equal("isFavorite", .bool(true)), .greater, to: 5)) {
            ($0.singer?.songs.filter(\.isFavorite).count ?? 0) > 5
        }
    }

    private func expect(
        _ condition: Condition, _ closure: (PlainSong) -> Bool, location: SourceLocation = #_sourceLocation
    ) throws {
        let query = try EntityFetchRequest("Song", matching: condition).storeQuery(in: data.scope)
        #expect(
            try data.view.keys(query) == data.songs.filter(closure).map(\.key), "\(query.predicate)",
            sourceLocation: location)
    }

    @Test func wrongNamesAreErrorsBeforeAnyRowIsRead() throws {
        #expect(throws: FetchError.unknownEntity("Album")) {
            try EntityFetchRequest("Album").storeQuery(in: data.scope)
        }
        #expect(throws: FetchError.unknownProperty(entity: "Singer", property: "age")) {
            try EntityFetchRequest("Song", matching: .isNil("singer.age")).storeQuery(in: data.scope)
        }
        #expect(throws: FetchError.unsupportedSort(entity: "Singer", property: "songs")) {
            try EntityFetchRequest("Singer", sortBy: [AttributeSort("songs")]).storeQuery(in: data.scope)
        }
        #expect(throws: FetchError.unknownProperty(entity: "Song", property: "singer.name")) {
            try EntityFetchRequest("Song", matching: .related("singer.name", .any, where: .always)).storeQuery(in: data.scope)
        }
    }
}
