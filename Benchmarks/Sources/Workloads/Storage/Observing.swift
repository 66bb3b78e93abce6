import Figures
import ObjectGraph
import Observation
import StoreInterface
import Synchronization

/// Inserts, reads and changes objects in a context that is not observable, in one that is, and with an observer of each object.
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

    private struct Run {
        let measured: MeasuredContext

        init(measured: MeasuredContext) { self.measured = measured }

        func costs() throws -> [OperationCost] {
            let context = measured.context
            let objects = try context.fetch(EntityFetchRequest(measured.entity.name))
            let expected = sum(objects)
            var costs: [OperationCost] = []
            func add(_ operation: String, _ work: () throws -> Void) rethrows {
                costs.append(OperationCost(operation: operation, nanoseconds: try measured.measure(work)))
            }
            for mode in ["not observable", "observable"] {
                context.isObservable = mode == "observable"
                try add("read, \(mode)") { try check(sum(objects) == expected, "reading") }
                add("change, \(mode)") { measured.change(objects, to: -1) }
                context.rollback()
                add("insert, \(mode)") { measured.insertObjects() }
                context.rollback()
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

        private func sum(_ objects: [ManagedObject]) -> Double {
            objects.reduce(0) { $0 + number($1) }
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
