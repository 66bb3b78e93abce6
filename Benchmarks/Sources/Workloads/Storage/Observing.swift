import Datasets
import Figures
import ObjectGraph
import Observation
import StoreInterface
import Synchronization

/// Inserts, reads and changes objects in a context whose objects cannot be observed, in one whose objects can, and with an observer of
/// each object.
public struct Observing: Sendable {
    private let objects: Int
    private let seed: UInt64

    /// - Parameter objects: The number of objects.
    public init(objects: Int, seed: UInt64) {
        self.objects = objects
        self.seed = seed
    }

    /// The nanoseconds per object of each operation.
    private typealias Costs = [(operation: String, nanoseconds: Double)]

    /// Returns one row per operation, in nanoseconds per object.
    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var rows: [Report.Row] = []
        for store in stores {
            var costs: [Costs] = []
            for repetition in 1...repeats {
                progress.step("observation: \(store.rawValue), \(repetition) of \(repeats)")
                costs.append(try await run(store))
            }
            for (number, cost) in costs[0].enumerated() {
                var row = Report.Row(benchmark: "observation", durability: "none", objects: objects, verified: true)
                row.operation = cost.operation
                row.engine = Engine.allCases.first { $0.store == store }?.rawValue
                row.store = store.rawValue
                row.nanosecondsPerObject = Spread(costs.map { $0[number].nanoseconds })
                rows.append(row)
            }
        }
        return rows
    }

    private func run(_ store: StoreKind) async throws -> Costs {
        let folder = try RunFolder()
        let record = RecordData.make(1, seed: seed)
        let model = try DatasetModel(record)
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let values = record.tables[0].attributes.map { $0.values[0] }
        let context = await container.newBackgroundContext(name: "reader")
        let objects = objects
        await context.perform { context in
            for _ in 0..<objects { context.insert(model.entities[0], values: values) }
        }
        try await context.save()
        let costs = try await context.perform { context in
            try Run(context: context, entity: model.entities[0], values: values, count: objects).costs()
        }
        try await container.close()
        return costs
    }

    /// Counts the notices of observers.
    private final class Notices: Sendable {
        let count = Atomic(0)
    }

    /// The measured operations in one context, whose store has `count` objects.
    private struct Run {
        let context: ManagedObjectContext
        let entity: Entity
        let values: [Value]
        let count: Int
        private var attribute: Attribute { entity.attributes[RecordData.amount] }

        init(context: ManagedObjectContext, entity: Entity, values: [Value], count: Int) {
            (self.context, self.entity, self.values, self.count) = (context, entity, values, count)
        }

        func costs() throws -> Costs {
            let objects = try context.fetch(EntityFetchRequest(entity.name))
            let expected = sum(objects)
            var costs: Costs = []
            // Alternates, so that a busy machine slows both.
            for mode in ["not observable", "observable"] {
                context.isObservable = mode == "observable"
                costs.append(("read, \(mode)", try measure { try check(sum(objects) == expected, "reading") }))
                costs.append(("change, \(mode)", measure { change(objects, to: -1) }))
                context.rollback()
                costs.append(("insert, \(mode)", measure { for _ in 0..<count { context.insert(entity, values: values) } }))
                context.rollback()
            }
            let notices = Notices()
            let first = try measure { try check(observed(objects, notices) == expected, "the first observed read") }
            let again = try measure { try check(observed(objects, notices) == expected, "another observed read") }
            costs.append(("first observed read", first))
            costs.append(("observed read", again))
            let changed = measure { change(objects, to: -2) }
            costs.append(("observed change", changed))
            try check(notices.count.load(ordering: .relaxed) == 2 * count, "changes of observed objects")
            context.rollback()
            return costs
        }

        private func sum(_ objects: [ManagedObject]) -> Double {
            objects.reduce(0) { $0 + number($1) }
        }

        /// Reads each object in a tracking function of its own, as a row of a list does.
        private func observed(_ objects: [ManagedObject], _ notices: Notices) -> Double {
            objects.reduce(0) { sum, object in
                sum
                    + withObservationTracking {
                        number(object)
                    } onChange: {
                        notices.count.add(1, ordering: .relaxed)
                    }
            }
        }

        private func number(_ object: ManagedObject) -> Double {
            if case .double(let number) = object[attribute: attribute] { number } else { 0 }
        }

        private func change(_ objects: [ManagedObject], to number: Double) {
            for object in objects { object[attribute: attribute] = .double(number) }
        }

        private func measure<R>(_ work: () throws -> R) rethrows -> Double {
            let start = Clock.now()
            _ = try work()
            return Double(Clock.now() - start) / Double(count)
        }

        private func check(_ isRight: Bool, _ operation: String) throws {
            if !isRight { throw VerificationError("observation: \(operation) gave other values or notices than expected") }
        }
    }
}
