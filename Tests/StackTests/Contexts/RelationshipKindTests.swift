import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// A relationship may change its kind under its name. This is refused while the relationship has objects, or a custom stage
/// migrates them (S165).
@Suite struct RelationshipKindTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    /// Creates a model with `A.b` and `B.a` of these cardinalities. nil means that the relationship does not exist.
    private static func model(_ version: Int, b: Cardinality?, a: Cardinality?) throws -> Model {
        func relation(_ name: String, _ to: String, _ own: Cardinality?, _ inverse: Cardinality?) -> [PropertyDescription] {
            guard let own else { return [] }
            return [
                .relationship(
                    .init(name: name, destination: to, inverse: inverse.map { _ in to == "B" ? "a" : "b" }, cardinality: own))
            ]
        }
        let mark = PropertyDescription.attribute(.init(name: "mark", type: .int32))
        return try Model(
            [
                EntityDescription(name: "A", properties: [mark] + relation("b", "B", b, a)),
                EntityDescription(name: "B", properties: [mark] + relation("a", "A", a, b)),
            ], version: .init(version))
    }

    /// Saves the pairs (1, 11), (1, 12) and (2, 13), or as many of them as the cardinalities permit.
    private static func fill(_ bed: TestBed, _ model: Model, b: Cardinality?, a: Cardinality?) async throws {
        let container = try await bed.container(model: model)
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            func make(_ entity: String, _ marks: [Int64]) -> [Int64: ManagedObject] {
                var made: [Int64: ManagedObject] = [:]
                for mark in marks {
                    let object = context.insert(entity)
                    object["mark"] = .int(mark)
                    made[mark] = object
                }
                return made
            }
            let (first, second) = (make("A", [1, 2]), make("B", [11, 12, 13]))
            for (one, other) in [(1, 11), (1, 12), (2, 13)] as [(Int64, Int64)] {
                guard let one = first[one], let other = second[other] else { continue }
                switch (b, a) {
                case (_, .toOne?): other.setRelatedObject("a", to: one)
                case (.toOne?, _): one.setRelatedObject("b", to: other)
                default: one.setRelatedObjects("b", to: one.relatedObjects("b") + [other])
                }
            }
        }
        try await worker.save(.durable)
    }

    struct Change: Sendable, CustomStringConvertible {
        var b: Cardinality?
        var a: Cardinality?
        var newB: Cardinality?
        var newA: Cardinality?
        var words: String
        var description: String { words }
    }

    static let refused = [
        Change(b: .toMany, a: .toOne, newB: .toOne, newA: .toMany, words: "B.a (3 values; it led to one object"),
        Change(b: .toMany, a: .toOne, newB: .toOne, newA: .toOne, words: "B.a (3 values; A.b leads to one object now"),
        Change(b: .toMany, a: .toOne, newB: .toMany, newA: .toMany, words: "B.a led to one"),
        Change(b: .toMany, a: .toMany, newB: .toMany, newA: .toOne, words: "A.b (3 pairs; its inverse"),
        Change(b: .toMany, a: .toMany, newB: .toOne, newA: .toMany, words: "A.b led to many"),
        Change(b: nil, a: .toOne, newB: .toOne, newA: .toOne, words: "B.a (3 values; A.b leads to one object now"),
    ]

    @Test(arguments: kinds, refused) func `S165: a relationship that would lose its objects by a new kind is refused`(
        _ kind: StoreKind, _ change: Change
    ) async throws {
        let bed = try TestBed(kind)
        let old = try Self.model(1, b: change.b, a: change.a)
        let new = try Self.model(2, b: change.newB, a: change.newA)
        try await Self.fill(bed, old, b: change.b, a: change.a)
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) { _ = try await bed.container(model: new) }
        #expect(error?.code == .schemaMismatch)
        #expect(error?.message.contains(change.words) == true, "\(String(describing: error))")
        #expect(error?.message.contains("custom stage") == true)
        // A custom stage can read the objects, and begins with an empty relationship.
        let pairs = Pairs()
        let plan = MigrationPlan([
            .custom(
                from: old, to: new,
                willMigrate: { context in
                    for other in try context.fetch(EntityFetchRequest("B")) {
                        let ones =
                            change.a == .toOne
                            ? [other.relatedObject("a")].compactMap(\.self)
                            : try context.fetch(EntityFetchRequest("A")).filter {
                                $0.relatedObjects("b").contains { $0 === other }
                            }
                        for one in ones { pairs.add(one["mark"], other["mark"]) }
                    }
                },
                didMigrate: { context in
                    let all = try context.fetch(EntityFetchRequest("A")) + context.fetch(EntityFetchRequest("B"))
                    for (one, other) in pairs.all {
                        guard let one = all.first(where: { $0["mark"] == one }),
                            let other = all.first(where: { $0["mark"] == other })
                        else { continue }
                        if change.newB == .toMany {
                            one.setRelatedObjects("b", to: one.relatedObjects("b") + [other])
                        } else {
                            one.setRelatedObject("b", to: other)
                        }
                    }
                })
        ])
        try await bed.closed()
        let container = try await PersistentContainer(model: new, store: bed.description, migrationPlan: plan)
        #expect(pairs.all.count == 3)
        let related = try await container.newBatchOperationContext().perform { context in
            try context.fetch(EntityFetchRequest("A")).map {
                change.newB == .toMany ? $0.relatedObjects("b").count : $0.relatedObject("b") == nil ? 0 : 1
            }
        }
        #expect(related == (change.newB == .toMany ? [2, 1] : [1, 1]))
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    private final class Pairs: Sendable {
        private let pairs = Mutex<[(Value, Value)]>([])
        var all: [(Value, Value)] { pairs.withLock { $0 } }
        func add(_ one: Value, _ other: Value) { pairs.withLock { $0.append((one, other)) } }
    }

    @Test(arguments: kinds, refused.filter { !$0.words.contains(" led to") || $0.words.contains("(") })
    func `S165: a relationship without objects may change its kind`(_ kind: StoreKind, _ change: Change) async throws {
        let bed = try TestBed(kind)
        _ = try await bed.container(model: try Self.model(1, b: change.b, a: change.a))
        try await bed.closed()
        _ = try await bed.container(model: try Self.model(2, b: change.newB, a: change.newA))
    }

    @Test(arguments: kinds) func `S165: one-to-one becomes many-to-one, because its column holds all that the other held`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed, Self.model(1, b: .toOne, a: .toOne), b: .toOne, a: .toOne)
        try await bed.closed()
        let container = try await bed.container(model: try Self.model(2, b: .toMany, a: .toOne))
        let related = try await container.newBatchOperationContext().perform { context in
            try context.fetch(EntityFetchRequest("A")).map { $0.relatedObjects("b").count }
        }
        #expect(related == [1, 1])
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }
}
