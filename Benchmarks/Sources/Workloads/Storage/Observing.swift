import Figures
import ObjectGraph
import Observation
import StoreInterface
import Synchronization

/// Scans, reads, changes and inserts objects in a context that is not observable, in one that is, and with an observer of each object.
/// Beside them, reads objects of a class with `@Observable`.
public struct Observing: Sendable {
    private let benchmark: ContextBenchmark

    /// - Parameter objects: The number of objects.
    public init(objects: Int, seed: UInt64) { benchmark = ContextBenchmark(name: "observation", objects: objects, seed: seed) }

    /// Returns one row per operation, in nanoseconds per object.
    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        try await benchmark.rows(stores, repeats: repeats, progress: progress) { try Run(measured: $0).costs() }
    }

    /// Counts the notices of observers.
    private final class Notices: Sendable {
        let count = Atomic(0)
    }

    /// The objects of ``RecordData`` as a model, without the macro, which takes minutes to compile.
    private final class TypedRecord: PersistentModel {
        private let anchor: ModelAnchor
        var managedObject: ManagedObject { anchor.object }
        var amount: Double { managedObject.get(RecordData.amount) }

        init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

        static let entityDescription = EntityDescription(
            name: RecordData.entity, properties: [.attribute(AttributeDescription("amount", of: \TypedRecord.amount))])
        // Immutable: it is created once, and key paths do not change.
        nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\TypedRecord.amount: "amount"]
    }

    /// The floor: what the Observation module itself takes for each read of a property.
    @Observable fileprivate final class ObservableNumber {
        var amount: Double

        init(_ amount: Double) { self.amount = amount }
    }

    private struct Run {
        let measured: MeasuredContext

        init(measured: MeasuredContext) { self.measured = measured }

        func costs() throws -> [OperationCost] {
            let context = measured.context
            let expected = try sum(fetched())
            var costs: [OperationCost] = []
            func add(_ operation: String, _ work: () throws -> Void) rethrows {
                costs.append(OperationCost(operation: operation, nanoseconds: try measured.measure(work)))
            }
            for mode in ["not observable", "observable"] {
                context.isObservable = mode == "observable"
                try measured.check(context.registeredObjects.isEmpty, "objects were left, which a scan would not create")
                try add("scan, \(mode)") { try check(sum(fetched()) == expected, "scanning") }
                // The first read of an object costs more than the next one.
                let objects = try fetched()
                try check(sum(objects) == expected, "the first read")
                try add("read, \(mode)") { try check(sum(objects) == expected, "reading") }
                do {
                    // Released before the objects are changed as ones without a model.
                    let records = objects.map { TypedRecord(managedObject: $0) }
                    try add("typed read, \(mode)") { try check(typedSum(records) == expected, "reading by property") }
                }
                add("change, \(mode)") { measured.change(objects, to: -1) }
                context.rollback()
                add("insert, \(mode)") { measured.insertObjects() }
                context.rollback()
            }
            let objects = try fetched()
            try check(sum(objects) == expected, "the first read")
            let numbers = objects.map { ObservableNumber(number($0)) }
            try add("read, class with @Observable") {
                try check(numbers.reduce(0) { $0 + $1.amount } == expected, "reading a class with @Observable")
            }
            let notices = Notices()
            try add("first observed read") { try check(observed(objects, notices) == expected, "the first observed read") }
            try add("observed read") { try check(observed(objects, notices) == expected, "another observed read") }
            // Each object has two observers now.
            add("observed change") { measured.change(objects, to: -2) }
            try check(notices.count.load(ordering: .relaxed) == 2 * measured.count, "changing observed objects")
            context.rollback()
            return costs
        }

        private func fetched() throws -> [ManagedObject] { try measured.context.fetch(EntityFetchRequest(measured.entity.name)) }

        private func sum(_ objects: [ManagedObject]) -> Double {
            objects.reduce(0) { $0 + number($1) }
        }

        private func typedSum(_ records: [TypedRecord]) -> Double {
            records.reduce(0) { $0 + $1.amount }
        }

        /// Reads each object inside its own `withObservationTracking`, as each row of a list does.
        private func observed(_ objects: [ManagedObject], _ notices: Notices) -> Double {
            func read(_ object: ManagedObject) -> Double {
                withObservationTracking {
                    number(object)
                } onChange: {
                    notices.count.add(1, ordering: .relaxed)
                }
            }
            return objects.reduce(0) { $0 + read($1) }
        }

        private func number(_ object: ManagedObject) -> Double {
            if case .double(let number) = object[attribute: measured.amount] { number } else { 0 }
        }

        private func check(_ isRight: Bool, _ operation: String) throws {
            try measured.check(isRight, "\(operation) gave other values or notices than expected")
        }
    }
}
