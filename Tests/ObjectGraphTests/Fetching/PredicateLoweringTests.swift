import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Each predicate is written twice, for the store and as a Swift closure over plain objects. Both must select the same objects.
struct PredicateLoweringTests {
    let data: RandomSongs

    init() throws { data = try RandomSongs(seed: SeededGenerator(test: "PredicateLoweringTests").seed) }

    private func songs(
        _ predicate: Predicate<Song>, _ closure: (PlainSong) -> Bool, location: SourceLocation = #_sourceLocation
    ) throws {
        let query = try FetchRequest(where: predicate).storeQuery(in: data.scope)
        let expected = data.songs.filter(closure).map(\.key)
        #expect(try data.view.keys(query) == expected, "\(query.predicate)", sourceLocation: location)
    }

    private func singers(
        _ predicate: Predicate<Singer>, _ closure: (PlainSinger) -> Bool, location: SourceLocation = #_sourceLocation
    ) throws {
        let query = try FetchRequest(where: predicate).storeQuery(in: data.scope)
        let expected = data.singers.filter(closure).map(\.key)
        #expect(try data.view.keys(query) == expected, "\(query.predicate)", sourceLocation: location)
    }

    @Test func S134_comparisonsAndLogic() throws {
        let few = 2
        try songs(#Predicate { $0.plays > few }) { $0.plays > few }
        try songs(#Predicate { $0.plays >= -1 && $0.plays < few * 3 }) { $0.plays >= -1 && $0.plays < few * 3 }
        try songs(#Predicate { few <= $0.plays }) { few <= $0.plays }
        try songs(#Predicate { $0.title == "a" || !($0.plays != 3) }) { $0.title == "a" || !($0.plays != 3) }
        try songs(#Predicate { $0.isFavorite && !($0.plays > 3 && $0.isFavorite) }) { $0.isFavorite && !($0.plays > 3) }
        try songs(#Predicate { $0.isFavorite == false }) { !$0.isFavorite }
        try songs(#Predicate { $0.isFavorite == ($0.plays > 2) }) { $0.isFavorite == ($0.plays > 2) }
        try songs(#Predicate { $0.plays < $0.rank }) { $0.plays < $0.rank }
        try songs(#Predicate { $0.plays != $0.rank }) { $0.plays != $0.rank }
        try songs(#Predicate { $0.isFavorite ? $0.plays > 2 : $0.title == "a" }) {
            $0.isFavorite ? $0.plays > 2 : $0.title == "a"
        }
        try songs(#Predicate { _ in true }) { _ in true }
    }

    @Test func S134_rangesAndMembership() throws {
        let range = 1..<4
        let wanted: Set = ["a", "blue"]
        let subtitles: [String?] = [nil, "a"]
        try songs(#Predicate { (1...5).contains($0.plays) }) { (1...5).contains($0.plays) }
        try songs(#Predicate { range.contains($0.plays) }) { range.contains($0.plays) }
        try songs(#Predicate { [1, 2, 7].contains($0.plays) }) { [1, 2, 7].contains($0.plays) }
        try songs(#Predicate { wanted.contains($0.title) }) { wanted.contains($0.title) }
        try songs(#Predicate { !subtitles.contains($0.subtitle) }) { !subtitles.contains($0.subtitle) }
    }

    @Test func S134_nilTestsAndFallbacks() throws {
        let nothing: String? = nil
        try songs(#Predicate { $0.subtitle == nil }) { $0.subtitle == nil }
        try songs(#Predicate { $0.subtitle != nothing }) { $0.subtitle != nil }
        try songs(#Predicate { $0.subtitle != "a" }) { $0.subtitle != "a" }
        try songs(#Predicate { ($0.rating ?? 0) < 3 }) { ($0.rating ?? 0) < 3 }
        try songs(#Predicate { ($0.rating ?? 9) < 3 }) { ($0.rating ?? 9) < 3 }
        try songs(#Predicate { ($0.subtitle ?? "a") == "a" }) { ($0.subtitle ?? "a") == "a" }
        try songs(#Predicate { ($0.subtitle ?? "abc").starts(with: "ab") }) { ($0.subtitle ?? "abc").starts(with: "ab") }
        try songs(#Predicate { $0.subtitle?.contains("b") == true }) { $0.subtitle?.contains("b") == true }
        try songs(#Predicate { $0.subtitle?.contains("b") == false }) { $0.subtitle?.contains("b") == false }
        try songs(#Predicate { $0.subtitle?.contains("b") == nil }) { $0.subtitle?.contains("b") == nil }
        try songs(#Predicate { $0.subtitle?.contains("b") ?? true }) { $0.subtitle?.contains("b") ?? true }
        try songs(#Predicate { if let text = $0.subtitle { text == "b" } else { true } }) {
            $0.subtitle == nil || $0.subtitle == "b"
        }
        try songs(#Predicate { $0.rating != nil && $0.rating! > 2 }) { $0.rating != nil && $0.rating! > 2 }
    }

    @Test func S134_strings() throws {
        try songs(#Predicate { $0.title.contains("b") }) { $0.title.contains("b") }
        try songs(#Predicate { $0.title.starts(with: "ab") }) { $0.title.starts(with: "ab") }
        try songs(#Predicate { $0.title.isEmpty }) { $0.title.isEmpty }
        try songs(#Predicate { $0.title > "a" }) { $0.title > "a" }
    }

    @Test func S134_keyPathsThroughToOne() throws {
        try songs(#Predicate { $0.singer?.name == "a" }) { $0.singer?.name == "a" }
        try songs(#Predicate { $0.singer?.name != "a" }) { $0.singer?.name != "a" }
        try songs(#Predicate { $0.singer!.name == "a" }) { $0.singer?.name == "a" }
        try songs(#Predicate { $0.singer == nil }) { $0.singer == nil }
        try songs(#Predicate { $0.singer != nil }) { $0.singer != nil }
        try songs(#Predicate { $0.singer?.nickname == nil }) { $0.singer?.nickname == nil }
        try songs(#Predicate { $0.singer?.nickname != nil }) { $0.singer?.nickname != nil }
        try songs(#Predicate { ($0.singer?.nickname ?? "b") == "b" }) { ($0.singer?.nickname ?? "b") == "b" }
        try songs(#Predicate { $0.singer?.name.isEmpty == false }) { $0.singer?.name.isEmpty == false }
        try songs(#Predicate { !($0.singer?.name.contains("b") ?? false) }) { !($0.singer?.name.contains("b") ?? false) }
        try songs(#Predicate { ($0.singer?.songs.count ?? 0) > 9 }) { ($0.singer?.songs.count ?? 0) > 9 }
    }

    @Test func S134_anyAllNoneAndCountOverToMany() throws {
        let few = 3
        try singers(#Predicate { $0.songs.contains { $0.plays > few } }) { $0.songs.contains { $0.plays > few } }
        try singers(#Predicate { !$0.songs.contains { $0.plays > few } }) { !$0.songs.contains { $0.plays > few } }
        try singers(#Predicate { $0.songs.allSatisfy { $0.plays < 8 } }) { $0.songs.allSatisfy { $0.plays < 8 } }
        try singers(#Predicate { $0.songs.filter { $0.isFavorite }.count >= 5 }) { $0.songs.filter(\.isFavorite).count >= 5 }
        try singers(#Predicate { $0.songs.filter { $0.isFavorite }.contains { $0.plays > 5 } }) {
            $0.songs.contains { $0.isFavorite && $0.plays > 5 }
        }
        try singers(#Predicate { $0.songs.filter { $0.isFavorite }.allSatisfy { $0.plays > 0 } }) {
            $0.songs.allSatisfy { !$0.isFavorite || $0.plays > 0 }
        }
        try singers(#Predicate { $0.songs.count != 9 && 2 < $0.songs.count }) { $0.songs.count != 9 && 2 < $0.songs.count }
        try singers(#Predicate { $0.songs.isEmpty }) { $0.songs.isEmpty }
        try songs(#Predicate { $0.singer?.songs.contains { $0.plays == 8 } == true }) {
            $0.singer?.songs.contains { $0.plays == 8 } == true
        }
    }

    @Test func S134_identity() throws {
        let first = ObjectID(store: data.store, entity: 0, key: 1)
        let singer = ObjectID(store: data.store, entity: 1, key: 3)
        let elsewhere = StoreIdentity(UUID())
        let foreign = ObjectID(store: elsewhere, entity: 0, key: 2)
        let foreignSinger = ObjectID(store: elsewhere, entity: 1, key: 3)
        let ids = [first, ObjectID(store: data.store, entity: 0, key: 70), singer, foreign]
        try songs(#Predicate { $0.id == first }) { $0.key == 1 }
        try songs(#Predicate { ids.contains($0.id) }) { $0.key == 1 || $0.key == 70 }
        try songs(#Predicate { $0.singer?.id == singer }) { $0.singer?.key == 3 }
        try songs(#Predicate { $0.singer?.id != singer }) { $0.singer?.key != 3 }
        try songs(#Predicate { $0.id == foreign }) { _ in false }
        try songs(#Predicate { $0.singer?.id == foreignSinger }) { _ in false }
    }

    /// Catches: a part that is silently dropped, or a part that fails only when the first row is read.
    @Test func S134_unsupportedPartsAreNamed() throws {
        let name = "of type String (it is computed, transient, or behind a relationship)"
        #expect(throws: FetchError.unknownProperty(entity: "Song", property: name)) {
            try FetchRequest<Song>(where: #Predicate { $0.shoutedTitle == "a!" }).storeQuery(in: data.scope)
        }
    }

    @Test func `S138: parts that stores cannot answer are computed for each object`() throws {
        try songs(#Predicate { song in song.singer?.songs.contains { $0.plays > song.plays } == true }) { song in
            song.singer?.songs.contains { $0.plays > song.plays } == true
        }
        try songs(#Predicate { $0.plays + 1 > 3 }) { $0.plays + 1 > 3 }
        try songs(#Predicate { $0.plays % 2 == 0 && $0.plays > 0 }) { $0.plays % 2 == 0 && $0.plays > 0 }
        try songs(#Predicate { "abba".contains($0.title) }) { "abba".contains($0.title) || $0.title.isEmpty }
        try songs(#Predicate { $0.title.count > 3 }) { $0.title.count > 3 }
        try songs(#Predicate { !($0.singer?.name.count == 1) }) { $0.singer?.name.count != 1 }
        try songs(#Predicate { ($0.singer?.songs.count ?? 0) + 1 > 9 }) { ($0.singer?.songs.count ?? 0) + 1 > 9 }
        try singers(#Predicate { $0.songs.contains { $0.plays * 2 > 9 } }) { $0.songs.contains { $0.plays * 2 > 9 } }
        try singers(#Predicate { $0.songs.filter { $0.plays * 2 > 9 }.count > 2 }) {
            $0.songs.filter { $0.plays * 2 > 9 }.count > 2
        }
    }

    @Test func `S138: where Swift would stop the program, a computed comparison is false`() throws {
        let (most, none) = (Int.max, 0)
        try songs(#Predicate { $0.plays + most > 0 }) { $0.plays <= 0 && $0.plays + most > 0 }
        try songs(#Predicate { $0.plays * most == 0 }) { $0.plays == 0 }
        try songs(#Predicate { $0.plays / none == 1 }) { _ in false }
        try songs(#Predicate { $0.plays > most * 2 }) { _ in false }
        try songs(#Predicate { $0.rating! / 2 > 1 }) { ($0.rating ?? 0) / 2 > 1 }
    }

    @Test func `S138: parts that are the same for each object leave conditions that use indexes`() throws {
        let (query, none, numbers) = ("", "b", [1, 2, 3])
        func lowered(_ predicate: Predicate<Song>) throws -> StorePredicate {
            try FetchRequest(where: predicate).storeQuery(in: data.scope).predicate
        }
        #expect(try lowered(#Predicate { query.isEmpty || $0.title.contains(query) }) == .constant(true))
        #expect(
            try lowered(#Predicate { none.isEmpty || $0.title.contains(none) })
                == .string(0, .contains, pattern: "b", sensitivity: .sensitive))
        #expect(try lowered(#Predicate { $0.plays > numbers.count * 2 }) == .compare(2, .greater, to: .int(6)))
        #expect(try lowered(#Predicate { numbers.count > 2 && $0.plays == numbers[0] }) == .compare(2, .equal, to: .int(1)))
        #expect(try lowered(#Predicate { numbers.isEmpty ? $0.rank == 1 : $0.plays == 2 }) == .compare(2, .equal, to: .int(2)))
        #expect(try lowered(#Predicate { !(numbers.count % 2 == 1) && $0.plays > 1 }) == .constant(false))
    }

    /// Creates a predicate as a program may compose it. Predicates of the macro are never as deep.
    private func negated(_ levels: Int) -> Predicate<Song> {
        Predicate<Song> { _ in
            var expression: any StandardPredicateExpression<Bool> = PredicateExpressions.build_Arg(true)
            for _ in 1..<levels { expression = negation(expression) }
            return expression
        }
    }

    private func negation(_ part: some StandardPredicateExpression<Bool>) -> any StandardPredicateExpression<Bool> {
        PredicateExpressions.build_Negation(part)
    }

    private func either(
        _ part: some StandardPredicateExpression<Bool>, _ number: Int, _ song: PredicateExpressions.Variable<Song>
    ) -> any StandardPredicateExpression<Bool> {
        let plays = PredicateExpressions.build_KeyPath(root: song, keyPath: \.plays)
        return PredicateExpressions.build_Disjunction(
            lhs: part, rhs: PredicateExpressions.build_Equal(lhs: plays, rhs: PredicateExpressions.build_Arg(number)))
    }

    @Test func `S134: a predicate is lowered up to the limit of nesting and refused beyond it`() throws {
        let limit = Condition.maximumDepth
        try songs(negated(limit)) { _ in limit % 2 == 1 }
        for levels in [limit + 1, 4 * limit] {
            let request = FetchRequest(where: negated(levels))
            #expect(throws: FetchError.conditionTooDeep(entity: "Song", depth: limit + 1, limit: limit)) {
                try request.storeQuery(in: data.scope)
            }
        }
    }

    @Test func `S134: a chain of alternatives may be longer than the limit of nesting`() throws {
        var number = 0
        let chain = Predicate<Song> { song in
            var expression: any StandardPredicateExpression<Bool> = PredicateExpressions.build_Arg(false)
            for _ in 0..<200 {
                expression = either(expression, number, song)
                number += 2
            }
            return expression
        }
        try songs(chain) { (0..<400).contains($0.plays) && $0.plays % 2 == 0 }
    }

    /// Catches: a condition on the outer object that is tested on each object of the closure.
    @Test func `S134: an optional condition that is bound outside of a closure is that of the outer object`() throws {
        try songs(
            #Predicate { song in
                if let hit = song.subtitle?.contains("b") {
                    song.singer?.songs.contains { $0.isFavorite == hit } == true
                } else {
                    false
                }
            }
        ) { song in
            guard let hit = song.subtitle?.contains("b") else { return false }
            return song.singer?.songs.contains { $0.isFavorite == hit } == true
        }
    }

    /// Catches: one element at which Swift would stop the program, and which makes the whole condition false.
    @Test func `S138: where Swift would stop for one element, the closure is false for that element only`() throws {
        let divisors = [0, 1]
        try songs(#Predicate { song in divisors.contains { song.plays / $0 == 2 } }) { $0.plays == 2 }
        try songs(#Predicate { song in (song.rank / song.plays == 1 ? song.rank : song.plays) > -1 }) { song in
            (song.plays != 0 && song.rank / song.plays == 1 ? song.rank : song.plays) > -1
        }
    }
}
