import StoreInterface
import TestSupport
import Testing

@testable import ObjectGraph

/// The rows of the table in Docs/Predicates.md about the objects of one model, and their checks.
struct PredicateTable<M: PersistentModel>: Sendable {
    /// A property to sort by.
    let order: KeyPath<M, Int> & Sendable
    /// Returns the rows, with ids of some objects of a context.
    let rows: @Sendable (ManagedObjectContext) throws -> [PredicateCase<M>]

    private func ids(_ objects: [M]) -> [ObjectID] { objects.map(\.managedObject.objectID) }

    /// Returns objects in the order of the property. Equal ones keep their order.
    private func sorted(_ objects: [M]) -> [M] {
        objects.enumerated()
            .sorted { ($0.element[keyPath: order], $0.offset) < ($1.element[keyPath: order], $1.offset) }.map(\.element)
    }

    /// Checks that each row selects what Swift selects, and is answered as the table says.
    func expectAll(_ context: ManagedObjectContext, _ state: String) throws {
        let objects = try context.fetch(FetchRequest<M>())
        var before = PredicateCase<M>("true", .store, .true)
        for one in try rows(context) {
            one.expectWords(context)
            let request = FetchRequest(where: one.predicate)
            guard one.answer != .no else {
                #expect(throws: FetchError.self, "\(one.code)") { try context.fetch(request) }
                continue
            }
            let selected = try objects.filter { try one.predicate.evaluate($0) }
            let expected = ids(selected)
            let message = Comment(rawValue: "\(state): \(one.code)")
            #expect(try context.fetchIDs(request) == expected, message)
            #expect(try context.count(where: one.predicate) == expected.count, message)
            #expect(try context.first(where: one.predicate)?.managedObject.objectID == expected.first, message)
            var part = FetchRequest(where: one.predicate, sortBy: [.init(order)], limit: 4, offset: 2)
            #expect(try ids(context.fetch(part)) == ids(Array(sorted(selected).dropFirst(2).prefix(4))), message)
            part.sortBy = []
            #expect(try ids(context.fetch(part)) == Array(expected.dropFirst(2).prefix(4)), message)
            let both = try selected.filter { try before.predicate.evaluate($0) }
            #expect(try context.fetchIDs(FetchRequest(where: before.predicate).filter(one.predicate)) == ids(both), message)
            try expectAnswer(of: one, context, message)
            before = one
        }
    }

    /// Checks that a row is computed in memory only if the table says so, and that the store gets the rest of one that is answered once.
    private func expectAnswer(of one: PredicateCase<M>, _ context: ManagedObjectContext, _ message: Comment) throws {
        let request = FetchRequest(where: one.predicate)
        let plan = try context.explain(request)
        #expect(plan.contains("computed in memory") == (one.answer == .memory), message)
        #expect((one.rest != nil) == (one.answer == .once), message)
        guard let rest = one.rest.map({ FetchRequest(where: $0) }) else { return }
        let (whole, remaining) = try (
            request.storeQuery(in: context.requestScope), rest.storeQuery(in: context.requestScope)
        )
        #expect(whole.predicate == remaining.predicate, message)
        #expect(try context.explain(rest) == plan, message)
        // Otherwise nothing would be evaluated before the request.
        #expect("\(request)" != "\(rest)", message)
    }

    /// Checks that deletions by a predicate delete what Swift selects, and inserts the objects again.
    func expectDeletions(_ context: ManagedObjectContext) throws {
        for one in try rows(context) where one.answer != .no {
            let objects = try context.fetch(FetchRequest<M>())
            let selected = try objects.filter { try one.predicate.evaluate($0) }
            let kept = selected.map { KeptValues($0.managedObject) }
            let rest = Set(ids(objects)).subtracting(ids(selected))
            #expect(try context.delete(where: one.predicate) == selected.count, "\(one.code)")
            #expect(try Set(context.fetchIDs(FetchRequest<M>())) == rest, "\(one.code)")
            for values in kept { values.insert(into: context) }
        }
    }

    /// Checks that a live result of each row has what Swift selects, after each of some changes.
    ///
    /// - Parameter change: Changes the objects of the context. Called with the number of the round.
    @MainActor
    func expectLive(_ context: ManagedObjectContext, rounds: Int, change: @MainActor (Int) async throws -> Void) async throws {
        let live = try rows(context).filter { $0.answer != .no }.map { one in
            let request = FetchRequest(where: one.predicate, sortBy: [.init(order)])
            let controller = try FetchedResultsController(request, context: context)
            controller.minimumInterval = .zero
            try controller.performFetch()
            return (one, controller)
        }
        for round in 0..<rounds {
            try await change(round)
            let objects = try context.fetch(FetchRequest<M>())
            for (one, controller) in live {
                await controller.untilIdle()
                let selected = try sorted(objects.filter { try one.predicate.evaluate($0) })
                #expect(controller.snapshot.ids.map(\.key) == ids(selected).map(\.key), "round \(round): \(one.code)")
            }
        }
    }
}

extension PredicateTable<Errand> {
    static var errands: Self {
        Self(order: \.weight) { context in
            let errands = try context.fetch(FetchRequest<Errand>())
            return PredicateCases.all(errands.prefix(20).map(\.id), owner: errands.lazy.compactMap { $0.owner?.id }.first)
        }
    }
}

extension PredicateTable<Outing> {
    static var outings: Self { Self(order: \.days) { _ in OutingCases.all } }
}

/// The values of a deleted object, to insert it again.
private struct KeptValues {
    private static let attributes = [
        "Errand": ["title", "note", "days", "weight", "price", "isDone", "kind", "priority", "place", "due", "link"],
        "Outing": ["days"], "PaidOuting": ["days", "price"],
    ]
    private let entity: String
    private let values: [(name: String, value: StoreInterface.Value)]
    private let owner: ManagedObject?

    init(_ object: ManagedObject) {
        entity = object.entityName
        values = Self.attributes[entity, default: []].map { ($0, object[$0]) }
        owner = entity == "Errand" ? object.relatedObject("owner") : nil
    }

    func insert(into context: ManagedObjectContext) {
        let object = context.insert(entity)
        for (name, value) in values { object[name] = value }
        if let owner { object.setRelatedObject("owner", to: owner) }
    }
}
