import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Sorts that are made in memory: through to-one relationships, by numbers in strings, and as people sort titles.
@Suite struct SortingTests {
    private static let sorts: [[SortBy<Errand>]] = [
        [.init(\.owner, by: \.name)],
        [.init(\.owner, by: \.age, .descending), .init(\.days)],
        [.init(\.owner, .init(\.boss, by: \.name)), .init(\.title, comparing: .localizedStandard)],
        [.init(\.title, .descending, comparing: .numeric)],
        [.init(\.owner, by: \.name, .descending, comparing: .localizedStandard), .init(\.weight, .descending)],
    ]

    /// Catches: a sign at the end of the key that a text may continue with.
    @Test func `S132: a text sorts before its continuation by the smallest characters`() {
        for order in [TextOrder.numeric, .localizedStandard] {
            let texts = ["a", "a\0", "a\0\0", "a\0b", "a\u{1}", "a\u{2}", "ab"]
            let sorted = texts.reversed().sorted { Value.string(order.key($0)).order(.string(order.key($1))) < 0 }
            #expect(sorted == texts, "\(order)")
        }
    }

    /// A nil comes first.
    private static func order<T: Comparable>(_ a: T?, _ b: T?) -> Int {
        switch (a, b) {
        case (nil, nil): 0
        case (nil, _): -1
        case (_, nil): 1
        case (let a?, let b?): a < b ? -1 : a > b ? 1 : 0
        }
    }

    /// Orders strings by code point, which Swift's own comparison does not.
    private static func bytes(_ text: String?) -> [UInt32]? { text.map { $0.unicodeScalars.map(\.value) } }

    private static func order(_ a: [UInt32]?, _ b: [UInt32]?) -> Int {
        guard let a, let b else { return a == nil ? (b == nil ? 0 : -1) : 1 }
        return a.lexicographicallyPrecedes(b) ? -1 : b.lexicographicallyPrecedes(a) ? 1 : 0
    }

    /// The order of each element of ``sorts``, in plain Swift.
    private static func compare(_ a: Errand, _ b: Errand, by number: Int) -> Int {
        func text(_ a: String?, _ b: String?) -> Int { order(bytes(a), bytes(b)) }
        func standard(_ a: String?, _ b: String?) -> Int {
            text(a.map(TextOrder.localizedStandard.key), b.map(TextOrder.localizedStandard.key))
        }
        let orders: [Int] =
            switch number {
            case 0: [text(a.owner?.name, b.owner?.name)]
            case 1: [-order(a.owner?.age, b.owner?.age), order(a.days, b.days)]
            case 2: [text(a.owner?.boss?.name, b.owner?.boss?.name), standard(a.title, b.title)]
            case 3: [-text(TextOrder.numeric.key(a.title), TextOrder.numeric.key(b.title))]
            default: [-standard(a.owner?.name, b.owner?.name), -order(a.weight, b.weight)]
            }
        return orders.first { $0 != 0 } ?? order(a.id.key, b.id.key)
    }

    private static func expectAll(_ context: ManagedObjectContext) throws {
        let objects = try context.fetch(FetchRequest<Errand>())
        for (number, sort) in sorts.enumerated() {
            let expected = objects.sorted { compare($0, $1, by: number) < 0 }.map(\.id)
            let request = FetchRequest<Errand>(sortBy: sort)
            #expect(try context.fetch(request).map(\.id) == expected, "sort \(number)")
            #expect(try context.fetchInBatches(request).map(\.id) == expected)
            var part = request
            (part.limit, part.offset) = (5, 3)
            #expect(try context.fetch(part).map(\.id) == Array(expected.dropFirst(3).prefix(5)))
            #expect(try context.count(part) == min(5, max(0, expected.count - 3)))
            var streamed: [ObjectID] = []
            try context.forEachBatch(of: part) { streamed += $0.map(\.id) }
            #expect(streamed == Array(expected.dropFirst(3).prefix(5)))
            #expect(try context.explain(request).hasSuffix("; sorted in memory"))
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S132, S139: sorts made in memory agree with Swift, saved, unsaved and in a snapshot`(kind: StoreKind) async throws {
        let seed = SeededGenerator(test: "SortingTests").seed
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
    func `S139: a live result sorted through a to-one follows changes of the related objects`(kind: StoreKind) async throws {
        let seed = SeededGenerator(test: "SortingTests.live").seed
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Errands.model)
        let main = container.mainContext
        var random = SeededGenerator(seed: seed)
        try Errands.change(main, steps: 60, &random)
        try await container.saveMain()
        let predicate = #Predicate<Errand> { ($0.owner?.name.count ?? 0) + $0.weight % 3 > 0 }
        let requests =
            Self.sorts.map { FetchRequest<Errand>(sortBy: $0) }
            + [FetchRequest<Errand>(where: predicate, sortBy: [.init(\.owner, by: \.name)], limit: 20, offset: 2)]
        let controllers = try requests.map { try FetchedResultsController($0, context: main) }
        for controller in controllers {
            controller.minimumInterval = .zero
            try controller.performFetch()
        }
        for round in 0..<12 {
            try Errands.change(main, steps: 5, &random)
            main.processPendingChanges()
            if round % 4 == 3 { try await container.saveMain() }
            for (controller, request) in zip(controllers, requests) {
                await controller.untilIdle()
                #expect(try controller.snapshot.ids.map(\.key) == main.fetchIDs(request).map(\.key), "round \(round)")
            }
        }
    }

    @Test func `S132: titles sort without case and accents, and by their numbers`() {
        let standard = ["", "é9", "É10", "e10a", "File 2", "file 10", "zebra", "Ångström"]
        func sorted(_ texts: [String], _ order: TextOrder) -> [String] {
            texts.shuffled().sorted { StoreInterface.Value.string(order.key($0)).order(.string(order.key($1))) < 0 }
        }
        #expect(sorted(standard, .localizedStandard) == ["", "Ångström", "é9", "É10", "e10a", "File 2", "file 10", "zebra"])
        #expect(sorted(["e", "E", "é", "É"], .localizedStandard) == ["E", "e", "É", "é"])
        #expect(
            sorted(["B1", "a007", "a7", "a10", "a7b", "a", "a 1"], .numeric) == ["B1", "a", "a 1", "a007", "a7", "a7b", "a10"])
        #expect(sorted(["Ｂ2", "b10", "b٣"], .localizedStandard) == ["Ｂ2", "b٣", "b10"])
    }

    @Test func `S139: a path that does not end at an attribute is refused by name`() async throws {
        let container = try await TestBed(.memory).container(model: Errands.model)
        let context = await container.newBackgroundContext()
        await context.perform { context in
            #expect(throws: FetchError.unsupportedSort(entity: "Person", property: "boss")) {
                try context.fetch(EntityFetchRequest("Errand", sortBy: [.init("owner.boss")]))
            }
            #expect(throws: FetchError.unknownProperty(entity: "Person", property: "size")) {
                try context.fetch(EntityFetchRequest("Errand", sortBy: [.init("owner.size")]))
            }
            #expect(throws: FetchError.unknownProperty(entity: "Errand", property: "title")) {
                try context.fetch(EntityFetchRequest("Errand", sortBy: [.init("title.owner")]))
            }
        }
    }
}
