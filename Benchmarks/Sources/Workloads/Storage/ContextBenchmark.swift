import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// The cost of one operation of a ``ContextBenchmark``.
struct OperationCost: Sendable {
    var operation: String
    /// Nanoseconds per object.
    var nanoseconds: Double
}

/// A benchmark of operations in one context, whose store has equal objects. The operations save nothing.
struct ContextBenchmark: Sendable {
    let name: String
    /// The number of objects.
    let objects: Int
    let seed: UInt64

    /// Runs the operations on each store, and returns one row per operation, in nanoseconds per object.
    func rows(
        _ stores: [StoreKind], repeats: Int, progress: ProgressBar,
        _ work: @escaping @Sendable (MeasuredContext) throws -> [OperationCost]
    ) async throws -> [Report.Row] {
        var rows: [Report.Row] = []
        var measured: [StoreKind: [[OperationCost]]] = [:]
        for repetition in 1...repeats {
            for store in stores {
                progress.step("\(name): \(store.rawValue), \(repetition) of \(repeats)")
                measured[store, default: []].append(try await run(store, work))
            }
        }
        for store in stores {
            guard let costs = measured[store] else { continue }
            for (number, cost) in costs[0].enumerated() {
                var row = Report.Row(benchmark: name, durability: "none", objects: objects, verified: true)
                row.operation = cost.operation
                row.engine = Engine.allCases.first { $0.store == store }?.rawValue
                row.store = store.rawValue
                row.nanosecondsPerObject = Spread(costs.map { $0[number].nanoseconds })
                rows.append(row)
            }
        }
        return rows
    }

    private func run(
        _ store: StoreKind, _ work: @escaping @Sendable (MeasuredContext) throws -> [OperationCost]
    ) async throws -> [OperationCost] {
        let folder = try RunFolder()
        let data = RecordData.make(1, seed: seed)
        let model = try DatasetModel(data)
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let values = data.tables[0].attributes.map { $0.values[0] }
        let context = await container.newBackgroundContext(name: name)
        let (name, objects) = (name, objects)
        await context.perform { context in
            for _ in 0..<objects { context.insert(model.entities[0], values: values) }
        }
        try await context.save()
        let costs = try await context.perform { context in
            try work(
                MeasuredContext(benchmark: name, context: context, entity: model.entities[0], values: values, count: objects))
        }
        try await container.close()
        return costs
    }
}

/// The context of a ``ContextBenchmark``, whose store has `count` objects.
struct MeasuredContext {
    let benchmark: String
    let context: ManagedObjectContext
    let entity: Entity
    let values: [Value]
    let count: Int
    /// The attribute that operations read and change.
    var amount: Attribute { entity.attributes[RecordData.amount] }

    func insertObjects() {
        for _ in 0..<count { context.insert(entity, values: values) }
    }

    func change(_ objects: [ManagedObject], to number: Double) {
        for object in objects { object[attribute: amount] = .double(number) }
    }

    /// Returns the nanoseconds per object of some work.
    func measure<R>(_ work: () throws -> R) rethrows -> Double {
        let start = Clock.now()
        _ = try work()
        return Double(Clock.now() - start) / Double(count)
    }

    /// - Parameter failure: The wrong result of an operation, as the end of a sentence.
    func check(_ isRight: Bool, _ failure: String) throws {
        if !isRight { throw VerificationError("\(benchmark): \(failure)") }
    }
}
