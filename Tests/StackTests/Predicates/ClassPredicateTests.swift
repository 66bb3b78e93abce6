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
            try PredicateTable.outings.expectAll(context, "unsaved")
        }
        try await root.save()
        try await root.perform { context throws in
            try PredicateTable.outings.expectAll(context, "saved")
            for one in OutingCases.all where one.answer != .no {
                let count = try context.count(where: one.predicate)
                #expect(count > 0 && count < 12, "\(one.code)")
            }
        }
        let kept = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            for number in 12..<16 { Self.insert(number, context) }
            let old = try context.fetch(EntityFetchRequest("PaidOuting"))
            for outing in old.prefix(2) { outing["price"] = 9 }
            for outing in old.suffix(1) { context.delete(outing) }
            try PredicateTable.outings.expectAll(context, "child")
            try PredicateTable.outings.expectDeletions(context)
            try PredicateTable.outings.expectAll(context, "child after deletions")
        }
        try await Errands.deleteAll(root, of: ["Outing"])
        try await kept.perform { context throws in try PredicateTable.outings.expectAll(context, "snapshot") }
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S182: a live result of each predicate about classes has what Swift selects, after each change`(
        kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Model([Outing.self, PaidOuting.self]))
        let main = container.mainContext
        for number in 0..<12 { Self.insert(number, main) }
        try await container.saveMain()
        try await PredicateTable.outings.expectLive(main, rounds: 6) { round in
            for number in 0..<3 { Self.insert(20 + 3 * round + number, main) }
            let paid = try main.fetch(EntityFetchRequest("PaidOuting"))
            for (place, outing) in paid.prefix(3).enumerated() { outing["price"] = .int(Int64(round + place)) }
            for outing in paid.suffix(1) { main.delete(outing) }
            main.processPendingChanges()
            if round % 3 == 2 { try await container.saveMain() }
        }
    }

    private static func insert(_ number: Int, _ context: ManagedObjectContext) {
        let outing = context.insert(number % 3 == 0 ? "Outing" : "PaidOuting")
        outing["days"] = .int(Int64(number))
        if number % 3 != 0 { outing["price"] = .int(Int64(number % 7)) }
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
