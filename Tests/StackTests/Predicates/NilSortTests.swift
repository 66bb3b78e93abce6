import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Sorts that say where nil comes.
@Suite struct NilSortTests {
    private struct Case {
        var sort: SortBy<Errand>
        var named: AttributeSort
        var value: (Errand) -> StoreInterface.Value
    }

    /// A unique attribute, strings, numbers, and a path, each in both directions with nil in each place.
    private static var cases: [Case] {
        var cases: [Case] = []
        for direction in [StoreSort.Direction.ascending, .descending] {
            for nils in [NilPosition.byDirection, .first, .last] {
                cases += [
                    Case(sort: .init(\.code, direction, nils: nils), named: .init("code", direction, nils: nils)) {
                        $0.code.storeValue
                    },
                    Case(
                        sort: .init(\.note, direction, comparing: .caseInsensitive, nils: nils),
                        named: .init("note", direction, comparing: .caseInsensitive, nils: nils)
                    ) { ($0.note?.lowercased()).storeValue },
                    Case(
                        sort: .init(\.note, direction, comparing: .numeric, nils: nils),
                        named: .init("note", direction, comparing: .numeric, nils: nils)
                    ) { $0.note.map { TextOrder.numeric.key($0) }.storeValue },
                    Case(sort: .init(\.priority, direction, nils: nils), named: .init("priority", direction, nils: nils)) {
                        $0.priority.storeValue
                    },
                    Case(
                        sort: .init(\.owner, by: \.age, direction, nils: nils),
                        named: .init("owner.age", direction, nils: nils)
                    ) { ($0.owner?.age).storeValue },
                    Case(sort: .init(\.days, direction, nils: nils), named: .init("days", direction, nils: nils)) {
                        $0.days.storeValue
                    },
                ]
            }
        }
        return cases
    }

    private static func precedes(_ a: Errand, _ b: Errand, by test: Case) -> Bool {
        let (x, y) = (test.value(a), test.value(b))
        let isAscending = test.sort.direction == .ascending
        guard x.isNull == y.isNull else {
            let isNilFirst =
                switch test.sort.nils {
                case .first: true
                case .last: false
                case .byDirection: isAscending
                }
            return x.isNull == isNilFirst
        }
        let order = x.order(y)
        return order == 0 ? a.id.key < b.id.key : (order < 0) == isAscending
    }

    private static func expectAll(_ context: ManagedObjectContext) throws {
        let objects = try context.fetch(FetchRequest<Errand>())
        for test in cases {
            let expected = objects.sorted { precedes($0, $1, by: test) }.map(\.id)
            let comment = Comment(rawValue: "\(test.sort)")
            var request = FetchRequest<Errand>(sortBy: [test.sort])
            #expect(try context.fetch(request).map(\.id) == expected, comment)
            #expect(try context.fetchInBatches(request).map(\.id) == expected, comment)
            #expect(try context.fetchIDs(EntityFetchRequest("Errand", sortBy: [test.named])) == expected, comment)
            if test.sort.comparison == .codePoints {
                let rows = EntityValueRequest("Errand", fetching: [.objectID], sortBy: [test.named])
                #expect(try context.fetch(rows).map { $0.objectID("objectID") } == expected, comment)
            }
            (request.limit, request.offset) = (5, 3)
            let part = Array(expected.dropFirst(3).prefix(5))
            #expect(try context.fetch(request).map(\.id) == part, comment)
            var streamed: [ObjectID] = []
            try context.forEachBatch(of: request) { streamed += $0.map(\.id) }
            #expect(streamed == part, comment)
            let groups = EntityValueRequest(
                "Errand", fetching: [.property("priority"), .count], groupBy: ["priority"],
                sortBy: [.init("priority", test.sort.direction, nils: test.sort.nils)])
            let values = try context.fetch(groups).map { $0.values[0] }
            if values.contains(.null), test.sort.nils != .byDirection {
                #expect(values.firstIndex(of: .null) == (test.sort.nils == .first ? 0 : values.count - 1), comment)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S132: nil is where a sort says, saved, unsaved and in a snapshot`(kind: StoreKind) async throws {
        let seed = SeededGenerator(test: "NilSortTests").seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let root = await container.newBackgroundContext()
        try await root.perform { context throws in
            var random = SeededGenerator(seed: seed)
            try Errands.change(context, steps: 80, &random)
            try Self.expectAll(context)
        }
        try await root.save()
        let kept = try container.coordinator.newBackgroundContext(reading: container.coordinator.snapshot())
        let child = await root.newBackgroundChild()
        try await child.perform { context throws in
            try Self.expectAll(context)
            var random = SeededGenerator(seed: seed &+ 1)
            try Errands.change(context, steps: 40, &random)
            try Self.expectAll(context)
        }
        try await Errands.deleteAll(root)
        try await kept.perform { context throws in try Self.expectAll(context) }
    }

    @Test(arguments: StoreKind.allCases) @MainActor
    func `S132: live results keep nil where their sort says`(kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let main = container.mainContext
        var random = SeededGenerator(test: "NilSortTests.live")
        try Errands.change(main, steps: 60, &random)
        try await container.saveMain()
        let requests = Self.cases.map { FetchRequest<Errand>(sortBy: [$0.sort], limit: 30, offset: 1) }
        let controllers = try requests.map { try FetchedResultsController($0, context: main) }
        for controller in controllers {
            controller.minimumInterval = .zero
            try controller.performFetch()
        }
        for round in 0..<8 {
            try Errands.change(main, steps: 5, &random)
            main.processPendingChanges()
            if round % 4 == 3 { try await container.saveMain() }
            for (controller, request) in zip(controllers, requests) {
                await controller.untilIdle()
                #expect(try controller.snapshot.ids.map(\.key) == main.fetchIDs(request).map(\.key), "round \(round)")
            }
        }
    }

    @Test func `S135: explain says that no index is walked for nil in another place`() async throws {
        let container = try await TestBed(.lmdb).container(model: Errands.model)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            func plan(_ sort: SortBy<Errand>) throws -> String {
                try context.explain(FetchRequest<Errand>(sortBy: [sort], limit: 5))
            }
            let usual = try plan(.init(\.code))
            #expect(try plan(.init(\.code, nils: .first)) == usual)
            #expect(try plan(.init(\.code, .descending, nils: .last)) == plan(.init(\.code, .descending)))
            #expect(try plan(.init(\.code, nils: .last)) != usual)
            #expect(try plan(.init(\.days, nils: .last)) == plan(.init(\.days)))
            #expect("\(SortBy<Errand>(\.code, .descending, nils: .first))" == "code descending with nil first")
        }
    }
}
