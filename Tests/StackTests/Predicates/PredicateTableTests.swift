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
        let plans = Dictionary(uniqueKeysWithValues: PredicateCases.all().map { ($0.code, $0.plan ?? "none") })
        for line in text.split(separator: "\n") {
            guard let match = line.firstMatch(of: /^\| `(.+)` \| (\w+) \| (.*)\|$/) else { continue }
            let code = String(match.1).replacing("\\|", with: "|")
            rows[code] = String(match.2)
            for index in match.3.matches(of: /index of `(\w+)`/) {
                #expect(plans[code]?.contains("index on \(index.1)") == true, "\(code)")
            }
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
            try Errands.change(context, steps: 45, &random)
            try PredicateTable.errands.expectAll(context, "unsaved")
        }
        try await root.save()
        try await root.perform { context throws in try PredicateTable.errands.expectAll(context, "saved") }
        let kept = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            var random = SeededGenerator(seed: seed &+ 1)
            try Errands.change(context, steps: 20, &random)
            try PredicateTable.errands.expectAll(context, "child")
            try PredicateTable.errands.expectDeletions(context)
        }
        try await Errands.deleteAll(root)
        try await kept.perform { context throws in try PredicateTable.errands.expectAll(context, "snapshot") }
    }

    @Test func `S135, S138: the plan of a predicate names the index that the table names`() async throws {
        let seed = SeededGenerator(test: "PredicateTableTests.plans").seed
        let bed = try TestBed(.lmdb)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        try await root.perform(andSave: .durable) { context throws in
            var random = SeededGenerator(seed: seed)
            try Errands.change(context, steps: 90, &random)
        }
        let reader = await container.newBackgroundContext()
        try await reader.perform { context throws in
            for one in try PredicateTable.errands.rows(context) {
                guard let plan = one.plan else { continue }
                let found = try context.explain(FetchRequest(where: one.predicate))
                #expect(found.hasPrefix(plan), "\(one.code): \(found)")
            }
        }
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S138, S140: a live result of each predicate of the table has what Swift selects, after each change`(
        kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let main = container.mainContext
        var random = SeededGenerator(seed: SeededGenerator(test: "PredicateTableTests.live").seed)
        try Errands.change(main, steps: 60, &random)
        try await container.saveMain()
        try await PredicateTable.errands.expectLive(main, rounds: 8) { round in
            try Errands.change(main, steps: 6, &random)
            main.processPendingChanges()
            if round % 4 == 3 { try await container.saveMain() }
        }
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
    func `S138: a forced unwrap of nil differs from every value, and a forced cast that fails equals and differs from none`(
        kind: StoreKind
    ) async throws {
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
            #expect(try notes(#Predicate { (($0.note as Any) as! String) == word }) == ["a"])
            #expect(try notes(#Predicate { (($0.note as Any) as! String) != word }) == ["b"])
        }
        try await container.close()
    }

    @Test func `S138: an expression that is not of Foundation is refused by name`() async throws {
        let container = try await TestBed(.memory).container(model: Errands.model)
        let context = await container.newBackgroundContext()
        let predicate = Predicate<Errand> {
            Shouted(text: PredicateExpressions.build_KeyPath(root: $0, keyPath: \.title))
        }
        await context.perform { context in
            let error = #expect(throws: FetchError.self) { try context.fetch(FetchRequest(where: predicate)) }
            #expect(
                error?.description
                    == "cannot evaluate a predicate: it uses the expression Shouted, which is not supported. "
                    + "Fetch with the other conditions, and filter the objects in Swift.")
        }
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

/// An expression of a program's own, which only Swift can evaluate.
private struct Shouted<Text: StandardPredicateExpression>: StandardPredicateExpression where Text.Output == String {
    typealias Output = Bool
    let text: Text

    func evaluate(_ bindings: PredicateBindings) throws -> Bool { try text.evaluate(bindings).hasSuffix("!") }
}
