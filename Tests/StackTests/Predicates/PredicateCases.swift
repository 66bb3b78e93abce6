import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// The column of the table in Docs/Predicates.md that says how a predicate is answered.
enum PredicateAnswer: String, Sendable { case store, once, memory, no }

/// A row of the table in Docs/Predicates.md.
struct PredicateCase<M: PersistentModel>: Sendable {
    /// The code of the row.
    var code: String
    var answer: PredicateAnswer
    var predicate: Predicate<M>
    /// For a row that is answered once: the predicate that remains, without the parts that are evaluated before the request.
    var rest: Predicate<M>?
    /// The beginning of the plan on LMDB, for a row whose notes speak of indexes.
    var plan: String?

    init(
        _ code: String, _ answer: PredicateAnswer, _ predicate: Predicate<M>, rest: Predicate<M>? = nil, plan: String? = nil
    ) {
        (self.code, self.answer, self.predicate, self.rest, self.plan) = (code, answer, predicate, rest, plan)
    }

    /// Checks that the request, its plan and its error are in words: without a placeholder or an address.
    func expectWords(_ context: ManagedObjectContext) {
        let request = FetchRequest(where: predicate)
        let plan: String
        do { plan = try context.explain(request) } catch { plan = "\(error)" }
        for text in ["\(request)", plan] {
            for wrong in ["a computed condition", "0x", "<computed", "(unknown"] {
                #expect(!text.contains(wrong), "\(code): \(text)")
            }
        }
    }
}

/// The predicates of the table. Each is written as in the table, over values that a program captures.
enum PredicateCases {
    private static let limit = 3
    private static let word = "a"
    private static let date = Date(timeIntervalSinceReferenceDate: 4)

    /// - Parameters:
    ///   - ids: Ids that a program may have kept.
    ///   - owner: The id of an owner.
    static func all(_ ids: [ObjectID] = [], owner: ObjectID? = nil) -> [PredicateCase<Errand>] {
        comparisons + choices + identities(ids, owner: owner) + texts + related + once + numbers + computedTexts + fields
            + casts + outer + constants + unanswered
    }

    private static func identities(_ ids: [ObjectID], owner: ObjectID?) -> [PredicateCase<Errand>] {
        let unknown = ObjectID(store: StoreIdentity(UUID()), entity: 0, key: 64)
        let (id, owner) = (ids.first ?? unknown, owner ?? unknown)
        return [
            .init("$0.id == id", .store, #Predicate { $0.id == id }, plan: "1 keys"),
            .init("$0.id != id", .store, #Predicate { $0.id != id }),
            .init("ids.contains($0.id)", .store, #Predicate { ids.contains($0.id) }),
            .init("$0.owner?.id == owner", .store, #Predicate { $0.owner?.id == owner }, plan: "index on owner"),
        ]
    }

    private static var comparisons: [PredicateCase<Errand>] {
        let (limit, word, date, kind, raw) = (limit, word, date, ErrandKind.shop, "shop")
        let (least, most) = (ErrandPriority.low, ErrandPriority.high)
        let (call, write) = (ErrandKind.call, ErrandKind.write)
        let days = [1, 2, 8]
        let (from, through, below) = (3..., ...3, ..<3)
        return [
            .init("$0.days == limit", .store, #Predicate { $0.days == limit }, plan: "index on days, equality"),
            .init("$0.days != limit", .store, #Predicate { $0.days != limit }),
            .init("$0.days <= limit", .store, #Predicate { $0.days <= limit }, plan: "index on days, range"),
            .init("$0.days >= limit", .store, #Predicate { $0.days >= limit }, plan: "index on days, range"),
            .init("$0.due < date", .store, #Predicate { $0.due < date }),
            .init("$0.days < $0.weight", .store, #Predicate { $0.days < $0.weight }),
            .init("$0.isDone && $0.days > limit", .store, #Predicate { $0.isDone && $0.days > limit }),
            .init(
                "!$0.isDone || $0.days > limit", .store, #Predicate { !$0.isDone || $0.days > limit }, plan: "scan of"),
            .init("days.contains($0.days)", .store, #Predicate { days.contains($0.days) }),
            .init("(1...4).contains($0.days)", .store, #Predicate { (1...4).contains($0.days) }),
            .init("(1..<4).contains($0.days)", .store, #Predicate { (1..<4).contains($0.days) }),
            .init("from.contains($0.days)", .store, #Predicate { from.contains($0.days) }),
            .init("through.contains($0.days)", .store, #Predicate { through.contains($0.days) }),
            .init("below.contains($0.days)", .store, #Predicate { below.contains($0.days) }),
            .init("$0.note == nil", .store, #Predicate { $0.note == nil }),
            .init("$0.note != nil && $0.note! == word", .store, #Predicate { $0.note != nil && $0.note! == word }),
            .init("($0.note ?? word) == word", .store, #Predicate { ($0.note ?? word) == word }),
            .init("$0.kind == kind", .store, #Predicate { $0.kind == kind }),
            .init("$0.kind.rawValue == raw", .store, #Predicate { $0.kind.rawValue == raw }),
            .init("$0.kind < kind", .memory, #Predicate { $0.kind < kind }),
            .init("(call...write).contains($0.kind)", .memory, #Predicate { (call...write).contains($0.kind) }),
            .init("($0.priority ?? least) >= most", .memory, #Predicate { ($0.priority ?? least) >= most }),
        ]
    }

    private static var choices: [PredicateCase<Errand>] {
        let (limit, word) = (limit, word)
        return [
            .init(
                "$0.isDone ? $0.days > limit : $0.title == word", .store,
                #Predicate {
                    $0.isDone ? $0.days > limit : $0.title == word
                }, plan: "index on days, range; or index on title, equality"),
            .init(
                "($0.isDone ? $0.note?.contains(word) : nil) == nil", .store,
                #Predicate {
                    ($0.isDone ? $0.note?.contains(word) : nil) == nil
                }),
            .init(
                "($0.isDone ? $0.note?.contains(word) : nil) ?? true", .store,
                #Predicate {
                    ($0.isDone ? $0.note?.contains(word) : nil) ?? true
                }),
            .init(
                "if $0.isDone { $0.days > limit } else { $0.title == word }", .store,
                #Predicate {
                    if $0.isDone { $0.days > limit } else { $0.title == word }
                }),
            .init(
                "if $0.isDone, $0.days > limit { $0.title == word } else { false }", .store,
                #Predicate {
                    if $0.isDone, $0.days > limit { $0.title == word } else { false }
                }),
            .init(
                "if $0.isDone { $0.days > limit } else if $0.days == limit { true } else { $0.title == word }", .store,
                #Predicate {
                    if $0.isDone { $0.days > limit } else if $0.days == limit { true } else { $0.title == word }
                }),
            .init(
                "if let note = errand.note, let owner = errand.owner { note > word && owner.name != note } else { true }",
                .memory,
                #Predicate { errand in
                    if let note = errand.note, let owner = errand.owner { note > word && owner.name != note } else { true }
                }),
            .init(
                "if let note = errand.note, let owner = errand.owner { note > word && owner.name > word } else { true }",
                .store,
                #Predicate { errand in
                    if let note = errand.note, let owner = errand.owner { note > word && owner.name > word } else { true }
                }),
        ]
    }

    private static var texts: [PredicateCase<Errand>] {
        let word = word
        let query: String? = nil
        return [
            .init(
                "if let query { errand.title.contains(query) } else { true }", .once,
                #Predicate { errand in
                    if let query { errand.title.contains(query) } else { true }
                }, rest: #Predicate { _ in true }),
            .init("$0.title.contains(word)", .store, #Predicate { $0.title.contains(word) }),
            .init(
                "$0.title.starts(with: word)", .store, #Predicate { $0.title.starts(with: word) }, plan: "index on title, prefix"),
            .init("$0.title.isEmpty", .store, #Predicate { $0.title.isEmpty }),
            .init("$0.note?.contains(word) == true", .store, #Predicate { $0.note?.contains(word) == true }),
            .init(
                "if let note = $0.note { note == word } else { true }", .store,
                #Predicate {
                    if let note = $0.note { note == word } else { true }
                }),
        ]
    }

    private static var related: [PredicateCase<Errand>] {
        let (limit, word) = (limit, word)
        return [
            .init("$0.owner == nil", .store, #Predicate { $0.owner == nil }),
            .init("$0.owner?.errands == nil", .store, #Predicate { $0.owner?.errands == nil }),
            .init("$0.owner?.name == word", .store, #Predicate { $0.owner?.name == word }),
            .init("$0.owner?.boss?.name == word", .store, #Predicate { $0.owner?.boss?.name == word }),
            .init(
                "errand.owner.flatMap { owner in errand.isDone } == true", .store,
                #Predicate { errand in
                    errand.owner.flatMap { owner in errand.isDone } == true
                }),
            .init(
                "(errand.owner.flatMap { owner in errand.days } ?? 0) > limit", .memory,
                #Predicate { errand in
                    (errand.owner.flatMap { owner in errand.days } ?? 0) > limit
                }),
            .init("$0.owner?.errands.count == limit", .store, #Predicate { $0.owner?.errands.count == limit }),
            .init("$0.owner?.errands.isEmpty == false", .store, #Predicate { $0.owner?.errands.isEmpty == false }),
            .init(
                "$0.owner?.errands.contains { $0.isDone } == true", .store,
                #Predicate {
                    $0.owner?.errands.contains { $0.isDone } == true
                }),
            .init(
                "$0.owner?.errands.allSatisfy { $0.isDone } == true", .store,
                #Predicate {
                    $0.owner?.errands.allSatisfy { $0.isDone } == true
                }),
            .init(
                "($0.owner?.errands.filter { $0.isDone }.count ?? 0) > limit", .store,
                #Predicate {
                    ($0.owner?.errands.filter { $0.isDone }.count ?? 0) > limit
                }),
            .init(
                "$0.owner?.errands.contains(where: \\.isDone) == true", .store,
                #Predicate {
                    $0.owner?.errands.contains(where: \.isDone) == true
                }),
            .init(
                "$0.owner?.errands.allSatisfy(\\.isDone) == true", .store,
                #Predicate {
                    $0.owner?.errands.allSatisfy(\.isDone) == true
                }),
            .init(
                "($0.owner?.errands.filter(\\.isDone).count ?? 0) > limit", .store,
                #Predicate {
                    ($0.owner?.errands.filter(\.isDone).count ?? 0) > limit
                }),
            .init(
                "$0.owner?.errands.contains { $0.days % 2 == 0 } == true", .memory,
                #Predicate {
                    $0.owner?.errands.contains { $0.days % 2 == 0 } == true
                }),
        ]
    }

    private static var once: [PredicateCase<Errand>] {
        let (limit, query, filter, isOpen) = (limit, "", ErrandFilter(), true)
        let most: Int? = 5
        // Constants of the rest that the store answers.
        let (five, kind, names) = (5, filter.kind, filter.names)
        return [
            .init(
                "query.isEmpty || $0.title.contains(query)", .once,
                #Predicate {
                    query.isEmpty || $0.title.contains(query)
                }, rest: #Predicate { _ in true }),
            .init(
                "$0.days > limit * 2 - 1", .once, #Predicate { $0.days > limit * 2 - 1 }, rest: #Predicate { $0.days > five },
                plan: "index on days, range"),
            .init(
                "$0.kind.rawValue == filter.kind.rawValue", .once,
                #Predicate {
                    $0.kind.rawValue == filter.kind.rawValue
                }, rest: #Predicate { $0.kind == kind }),
            .init(
                "$0.kind == filter.kind", .once, #Predicate { $0.kind == filter.kind }, rest: #Predicate { $0.kind == kind }),
            .init(
                "filter.names.contains($0.title)", .once, #Predicate { filter.names.contains($0.title) },
                rest: #Predicate { names.contains($0.title) }),
            .init(
                "filter.names.count > 1 && $0.days > limit", .once,
                #Predicate {
                    filter.names.count > 1 && $0.days > limit
                }, rest: #Predicate { $0.days > limit }),
            .init(
                "(most.flatMap { most in errand.days } ?? 0) > limit", .once,
                #Predicate { errand in
                    (most.flatMap { most in errand.days } ?? 0) > limit
                }, rest: #Predicate { $0.days > limit }),
            .init(
                "isOpen ? $0.days > limit : $0.isDone", .once, #Predicate { isOpen ? $0.days > limit : $0.isDone },
                rest: #Predicate { $0.days > limit }),
        ]
    }

    private static var numbers: [PredicateCase<Errand>] {
        let (limit, most) = (limit, 5)
        return [
            .init("$0.days + 1 > limit", .memory, #Predicate { $0.days + 1 > limit }),
            .init("$0.days * 2 - $0.weight == limit", .memory, #Predicate { $0.days * 2 - $0.weight == limit }),
            .init("-$0.days < -limit", .memory, #Predicate { -$0.days < -limit }),
            .init("$0.days / 2 == 1", .memory, #Predicate { $0.days / 2 == 1 }),
            .init("$0.days % 2 == 0", .memory, #Predicate { $0.days % 2 == 0 }),
            .init("$0.price / 2.0 > 1.0", .memory, #Predicate { $0.price / 2.0 > 1.0 }),
            .init(
                "($0.isDone ? $0.days : $0.weight) > limit", .memory,
                #Predicate {
                    ($0.isDone ? $0.days : $0.weight) > limit
                }),
            .init("($0.owner?.age ?? 0) + 1 > limit", .memory, #Predicate { ($0.owner?.age ?? 0) + 1 > limit }),
            .init("(0...$0.days).contains(limit)", .memory, #Predicate { (0...$0.days).contains(limit) }),
            .init("(0..<$0.days).contains(limit)", .memory, #Predicate { (0..<$0.days).contains(limit) }),
            .init(
                "$0.isDone && $0.days > limit && $0.weight % 2 == 0", .memory,
                #Predicate {
                    $0.isDone && $0.days > limit && $0.weight % 2 == 0
                }, plan: "index on days, range"),
            .init("$0.priority?.rawValue == most", .memory, #Predicate { $0.priority?.rawValue == most }),
        ]
    }

    private static var computedTexts: [PredicateCase<Errand>] {
        let (limit, word, same) = (limit, word, ComparisonResult.orderedSame)
        let after = ComparisonResult.orderedDescending
        let (text, address) = ("abba x 10", "https://example.org/1")
        return [
            .init("$0.title.count > limit", .memory, #Predicate { $0.title.count > limit }),
            .init("text.contains($0.title)", .memory, #Predicate { text.contains($0.title) }),
            .init("$0.title.contains($0.place.city)", .memory, #Predicate { $0.title.contains($0.place.city) }),
            .init("$0.title.contains(/^[ab]+$/)", .memory, #Predicate { $0.title.contains(/^[ab]+$/) }),
            .init(
                "$0.title.localizedStandardContains(word)", .memory,
                #Predicate {
                    $0.title.localizedStandardContains(word)
                }),
            .init(
                "$0.title.caseInsensitiveCompare(word) == same", .memory,
                #Predicate {
                    $0.title.caseInsensitiveCompare(word) == same
                }),
            .init(
                "$0.title.localizedCompare(word) == after", .memory,
                #Predicate {
                    $0.title.localizedCompare(word) == after
                }),
            .init("($0.note?.count ?? 0) > 1", .memory, #Predicate { ($0.note?.count ?? 0) > 1 }),
            .init("$0.link?.absoluteString == address", .memory, #Predicate { $0.link?.absoluteString == address }),
        ]
    }

    private static var fields: [PredicateCase<Errand>] {
        let (word, words, note) = (word, [word], Optional(word))
        return [
            .init("$0.place.city == word", .memory, #Predicate { $0.place.city == word }),
            .init("$0.place.names.isEmpty", .memory, #Predicate { $0.place.names.isEmpty }),
            .init("$0.place.names.contains(word)", .memory, #Predicate { $0.place.names.contains(word) }),
            .init("$0.place.names.contains(words)", .memory, #Predicate { $0.place.names.contains(words) }),
            .init("$0.place.names.starts(with: words)", .memory, #Predicate { $0.place.names.starts(with: words) }),
            .init(
                "$0.place.names.contains { $0 == word && !$0.isEmpty }", .memory,
                #Predicate {
                    $0.place.names.contains { $0 == word && !$0.isEmpty }
                }),
            .init("$0.place.names.allSatisfy { $0 > word }", .memory, #Predicate { $0.place.names.allSatisfy { $0 > word } }),
            .init(
                "$0.place.names.contains(where: \\.isEmpty)", .memory, #Predicate { $0.place.names.contains(where: \.isEmpty) }),
            .init(
                "$0.place.names.filter { $0.isEmpty }.count == 1", .memory,
                #Predicate {
                    $0.place.names.filter { $0.isEmpty }.count == 1
                }),
            .init("$0.place.names.max() == word", .memory, #Predicate { $0.place.names.max() == word }),
            .init(
                "$0.place.names.count > 1 && $0.place.names[0] == word", .memory,
                #Predicate {
                    $0.place.names.count > 1 && $0.place.names[0] == word
                }),
            .init("$0.place.names.min() == word", .memory, #Predicate { $0.place.names.min() == word }),
            .init("$0.place.names.first == note", .memory, #Predicate { $0.place.names.first == note }),
            .init("$0.place.names.last == note", .memory, #Predicate { $0.place.names.last == note }),
            .init(
                "$0.place.names.count > 1 && $0.place.names[0..<2].contains(word)", .memory,
                #Predicate {
                    $0.place.names.count > 1 && $0.place.names[0..<2].contains(word)
                }),
            .init("$0.place.scores[word] == 1", .memory, #Predicate { $0.place.scores[word] == 1 }),
            .init("$0.place.scores[word, default: 1] > 0", .memory, #Predicate { $0.place.scores[word, default: 1] > 0 }),
        ]
    }

    /// The compiler warns of casts whose result it knows, so these begin with a cast to `Any`.
    private static var casts: [PredicateCase<Errand>] {
        let word = word
        return [
            .init("($0.note as Any) is String", .memory, #Predicate { ($0.note as Any) is String }),
            .init("(($0.note as Any) as? String) == word", .memory, #Predicate { (($0.note as Any) as? String) == word }),
            .init(
                "$0.note != nil && (($0.note as Any) as! String) == word", .memory,
                #Predicate {
                    $0.note != nil && (($0.note as Any) as! String) == word
                }),
        ]
    }

    private static var constants: [PredicateCase<Errand>] {
        [.init("true", .store, #Predicate { _ in true }), .init("false", .store, #Predicate { _ in false })]
    }

    private static var unanswered: [PredicateCase<Errand>] {
        let word = word
        return [
            .init("$0.shoutedTitle == word", .no, #Predicate { $0.shoutedTitle == word })
        ]
    }

    /// Closures that use the object outside of them.
    private static var outer: [PredicateCase<Errand>] {
        let limit = limit
        return [
            .init(
                "errand.owner?.errands.contains { $0.days > errand.days } == true", .memory,
                #Predicate { errand in
                    errand.owner?.errands.contains { $0.days > errand.days } == true
                }),
            .init(
                "errand.owner?.errands.allSatisfy { $0.weight >= errand.days || $0.isDone } == true", .memory,
                #Predicate { errand in
                    errand.owner?.errands.allSatisfy { $0.weight >= errand.days || $0.isDone } == true
                }),
            .init(
                "(errand.owner?.errands.filter { $0.title == errand.title }.count ?? 0) > limit", .memory,
                #Predicate { errand in
                    (errand.owner?.errands.filter { $0.title == errand.title }.count ?? 0) > limit
                }),
            .init(
                "errand.owner?.errands.contains { $0.note == errand.owner?.name } == true", .memory,
                #Predicate { errand in
                    errand.owner?.errands.contains { $0.note == errand.owner?.name } == true
                }),
            .init(
                "errand.owner?.errands.contains { $0.owner?.errands.contains { $0.days > errand.days } == true } == true",
                .memory,
                #Predicate { errand in
                    errand.owner?.errands.contains { $0.owner?.errands.contains { $0.days > errand.days } == true } == true
                }),
            .init(
                "errand.place.names.contains { $0 == errand.title }", .memory,
                #Predicate { errand in
                    errand.place.names.contains { $0 == errand.title }
                }),
        ]
    }
}
