import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The rows of the table in Docs/Predicates.md about classes: on each store, saved and unsaved, in a root and in a child.
@Suite struct ClassPredicateTests {
    @Test(arguments: StoreKind.allCases)
    func `S182: each predicate of the table about classes selects what Swift selects`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Model([Outing.self, PaidOuting.self]))
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            for number in 0..<12 { Self.insert(number, context) }
            try Self.expectAll(context, "unsaved")
        }
        try await root.save()
        try await root.perform { context throws in try Self.expectAll(context, "saved") }
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            for number in 12..<16 { Self.insert(number, context) }
            let old = try context.fetch(EntityFetchRequest("PaidOuting"))
            for outing in old.prefix(2) { outing["price"] = 9 }
            for outing in old.suffix(1) { context.delete(outing) }
            try Self.expectAll(context, "child")
        }
        try await container.close()
    }

    private static func insert(_ number: Int, _ context: ManagedObjectContext) {
        let outing = context.insert(number % 3 == 0 ? "Outing" : "PaidOuting")
        outing["days"] = .int(Int64(number))
        if number % 3 != 0 { outing["price"] = .int(Int64(number % 7)) }
    }

    private static func expectAll(_ context: ManagedObjectContext, _ state: String) throws {
        let outings = try context.fetch(FetchRequest<Outing>())
        for one in OutingCases.all {
            one.expectWords(context)
            let request = FetchRequest(where: one.predicate)
            guard one.answer != .no else {
                #expect(throws: FetchError.self, "\(one.code)") { try context.fetch(request) }
                continue
            }
            let expected = try outings.filter { try one.predicate.evaluate($0) }.map(\.id)
            let message = Comment(rawValue: "\(state): \(one.code)")
            #expect(!expected.isEmpty && expected.count < outings.count, message)
            #expect(try context.fetchIDs(request) == expected, message)
            #expect(try context.count(where: one.predicate) == expected.count, message)
            #expect(try context.explain(request).contains("computed in memory") == (one.answer == .memory), message)
        }
    }

    /// Swift would stop the program, so the table cannot compare these with its own evaluation.
    @Test(arguments: StoreKind.allCases)
    func `S182: a forced cast to another class gives nil`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Model([Outing.self, PaidOuting.self]))
        let root = await container.newBackgroundContext()
        let limit = 3
        try await root.perform { context throws in
            context.insert("Outing")["days"] = 1
            for (days, price) in [(2, 3), (3, 4)] {
                let outing = context.insert("PaidOuting")
                (outing["days"], outing["price"]) = (.int(Int64(days)), .int(Int64(price)))
            }
            func found(_ predicate: Predicate<Outing>) throws -> [Int] {
                try context.fetch(FetchRequest(where: predicate)).map(\.days)
            }
            #expect(try found(#Predicate { ($0 as! PaidOuting).price > limit }) == [3])
            #expect(try found(#Predicate { ($0 as! PaidOuting).price != limit }) == [1, 3])
        }
        try await container.close()
    }
}
