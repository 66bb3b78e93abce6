import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The table in Docs/Predicates.md, row by row: on each store, saved and unsaved, in a root and in a child.
@Suite struct PredicateTableTests {
    @Test func `S138: the table of predicates in the documents has the rows that are tested`() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Docs/Predicates.md")
        let text = try String(contentsOf: page.standardized, encoding: .utf8)
        var rows: [String: String] = [:]
        for line in text.split(separator: "\n") {
            guard let match = line.firstMatch(of: /^\| `(.+)` \| (\w+) \|/) else { continue }
            rows[String(match.1).replacing("\\|", with: "|")] = String(match.2)
        }
        let answers = PredicateCases.all().map { ($0.code, $0.answer) } + OutingCases.all.map { ($0.code, $0.answer) }
        #expect(rows == Dictionary(uniqueKeysWithValues: answers).mapValues(\.rawValue))
    }

    @Test(arguments: StoreKind.allCases)
    func `S138: each predicate of the table selects what Swift selects, saved, unsaved and in a snapshot`(kind: StoreKind)
        async throws
    {
        let seed = SeededGenerator(test: "PredicateTableTests").seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            var random = SeededGenerator(seed: seed)
            try Errands.change(context, steps: 90, &random)
            try Self.expectAll(context, "unsaved")
        }
        try await root.save()
        try await root.perform { context throws in try Self.expectAll(context, "saved") }
        let kept = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            var random = SeededGenerator(seed: seed &+ 1)
            try Errands.change(context, steps: 40, &random)
            try Self.expectAll(context, "child")
            for one in try Self.cases(context) where one.answer != .no { try Self.expectDeletion(one, context) }
        }
        try await Errands.deleteAll(root)
        try await kept.perform { context throws in try Self.expectAll(context, "snapshot") }
    }

    private static func expectAll(_ context: ManagedObjectContext, _ state: String) throws {
        let objects = try context.fetch(FetchRequest<Errand>())
        var before = PredicateCase<Errand>("true", .store, .true)
        for one in try cases(context) {
            one.expectWords(context)
            let request = FetchRequest(where: one.predicate)
            guard one.answer != .no else {
                #expect(throws: FetchError.self, "\(one.code)") { try context.fetch(request) }
                continue
            }
            let expected = try objects.filter { try one.predicate.evaluate($0) }.map(\.id)
            let message = Comment(rawValue: "\(state): \(one.code)")
            #expect(try context.fetchIDs(request) == expected, message)
            #expect(try context.count(where: one.predicate) == expected.count, message)
            #expect(try context.first(where: one.predicate)?.id == expected.first, message)
            var part = FetchRequest(where: one.predicate, sortBy: [.init(\.weight)], limit: 4, offset: 2)
            let sorted = objects.filter { expected.contains($0.id) }.enumerated().sorted {
                ($0.element.weight, $0.offset) < ($1.element.weight, $1.offset)
            }
            #expect(try context.fetch(part).map(\.id) == sorted.dropFirst(2).prefix(4).map(\.element.id), message)
            part.sortBy = []
            #expect(try context.fetch(part).map(\.id) == Array(expected.dropFirst(2).prefix(4)), message)
            #expect(try context.explain(request).contains("computed in memory") == (one.answer == .memory), message)
            let both = try objects.filter { try before.predicate.evaluate($0) && one.predicate.evaluate($0) }.map(\.id)
            #expect(try context.fetchIDs(FetchRequest(where: before.predicate).filter(one.predicate)) == both, message)
            before = one
        }
    }

    /// Returns the rows of the table, with ids of some objects of the context.
    private static func cases(_ context: ManagedObjectContext) throws -> [PredicateCase<Errand>] {
        let errands = try context.fetch(FetchRequest<Errand>())
        return PredicateCases.all(errands.prefix(20).map(\.id), owner: errands.lazy.compactMap { $0.owner?.id }.first)
    }

    private static func expectDeletion(_ one: PredicateCase<Errand>, _ context: ManagedObjectContext) throws {
        let before = try context.count(FetchRequest<Errand>())
        let expected = try context.fetch(FetchRequest<Errand>()).count { try one.predicate.evaluate($0) }
        let changes = try context.fetch(FetchRequest(where: one.predicate)).map(\.managedObject).map(ErrandValues.init)
        #expect(try context.delete(where: one.predicate) == expected, "\(one.code)")
        #expect(try context.count(FetchRequest<Errand>()) == before - expected, "\(one.code)")
        for values in changes { values.insert(into: context) }
    }

    /// Catches: a closure that is false as a whole, because one of its comparisons would stop the program in Swift.
    @Test(arguments: StoreKind.allCases)
    func `S138: a comparison that cannot be made is false by itself, also in a closure`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        try await root.perform(andSave: .durable) { context in
            let owner = context.insert("Person")
            for (days, weight, isDone) in [(1, 1, false), (2, 0, true)] {
                let errand = context.insert("Errand")
                (errand["days"], errand["weight"], errand["isDone"]) = (.int(Int64(days)), .int(Int64(weight)), .bool(isDone))
                errand.setRelatedObject("owner", to: owner)
            }
        }
        try await root.perform { context throws in
            func count(_ predicate: Predicate<Errand>) throws -> Int { try context.count(where: predicate) }
            #expect(
                try count(#Predicate { e in e.owner?.errands.contains { $0.days / $0.weight == 9 || $0.isDone } == true }) == 2)
            #expect(
                try count(
                    #Predicate { e in
                        e.owner?.errands.contains { $0.days / $0.weight == e.days + 9 || $0.isDone } == true
                    }) == 2)
        }
    }

    /// Swift would stop the program, so the table cannot compare these with its own evaluation.
    @Test(arguments: StoreKind.allCases)
    func `S138: a forced unwrap of nil differs from every value`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        await root.perform { context in
            for note in [Value.null, .string("a"), .string("b")] { context.insert("Errand")["note"] = note }
        }
        try await root.save()
        let word = "a"
        try await root.perform { context throws in
            func notes(_ predicate: Predicate<Errand>) throws -> [String?] {
                try context.fetch(FetchRequest(where: predicate)).map(\.note)
            }
            #expect(try notes(#Predicate { $0.note! == word }) == ["a"])
            #expect(try notes(#Predicate { $0.note! != word }) == [nil, "b"])
            #expect(try notes(#Predicate { $0.note! > word }) == ["b"])
        }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S138: a batch deletion of a computed predicate deletes what a fetch selects`(kind: StoreKind) async throws {
        let seed = SeededGenerator(test: "PredicateTableTests.batch").seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            var random = SeededGenerator(seed: seed)
            try Errands.change(context, steps: 90, &random)
        }
        try await root.save()
        let predicate = #Predicate<Errand> { $0.days % 2 == 0 && ($0.isDone || $0.title.count > 1) }
        let expected = try await root.perform { context throws in try context.fetchIDs(FetchRequest(where: predicate)) }
        let result = try await container.coordinator.batchDelete(FetchRequest(where: predicate))
        #expect(result.deletedIDs == expected)
    }
}

/// The values of a deleted object, to insert it again.
private struct ErrandValues {
    private let values: [String: Value]
    private let owner: ManagedObject?

    init(_ errand: ManagedObject) {
        var values: [String: Value] = [:]
        for name in ["title", "note", "days", "weight", "price", "isDone", "kind", "priority", "place", "due", "link"] {
            values[name] = errand[name]
        }
        self.values = values
        owner = errand.relatedObject("owner")
    }

    func insert(into context: ManagedObjectContext) {
        let errand = context.insert("Errand")
        for (name, value) in values { errand[name] = value }
        errand.setRelatedObject("owner", to: owner)
    }
}
