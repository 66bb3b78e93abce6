import Figures
import ObjectGraph
import StoreInterface

/// Changes many objects in one undo group, undoes and redoes the group, beside the same changes in a context without an undo history.
public struct Undoing: Sendable {
    private let benchmark: ContextBenchmark

    /// - Parameter objects: The number of changes in the group.
    public init(objects: Int, seed: UInt64) { benchmark = ContextBenchmark(name: "undo", objects: objects, seed: seed) }

    private enum Change: String, CaseIterable { case insert, update, delete }

    /// Returns one row per operation, in nanoseconds per change.
    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        try await benchmark.rows(stores, repeats: repeats, progress: progress) { measured in
            try Change.allCases.flatMap { try Run(measured: measured).costs(of: $0) }
        }
    }

    private struct Run {
        let measured: MeasuredContext
        private var context: ManagedObjectContext { measured.context }

        init(measured: MeasuredContext) { self.measured = measured }

        func costs(of change: Change) throws -> [OperationCost] {
            // Objects and their values are read before.
            let objects = try context.fetch(EntityFetchRequest(measured.entity.name))
            _ = try state()
            let plain = measured.measure { make(change, objects) }
            context.rollback()
            let before = try state()
            // Without a limit, so that the group is kept.
            let history = UndoHistory(levels: 0, byteLimit: .max)
            context.undoHistory = history
            defer {
                context.undoHistory = nil
                context.rollback()
            }
            let recorded = measured.measure {
                make(change, objects)
                context.processPendingChanges()
            }
            let after = try state()
            let undone = try measured.measure { try history.undo() }
            try check(try state() == before, "undo of \(change)")
            let redone = try measured.measure { try history.redo() }
            try check(try state() == after, "redo of \(change)")
            return [
                OperationCost(operation: "\(change), no history", nanoseconds: plain),
                OperationCost(operation: "\(change), recorded", nanoseconds: recorded),
                OperationCost(operation: "undo of \(change)", nanoseconds: undone),
                OperationCost(operation: "redo of \(change)", nanoseconds: redone),
            ]
        }

        private func make(_ change: Change, _ objects: [ManagedObject]) {
            switch change {
            case .insert: measured.insertObjects()
            case .update: measured.change(objects, to: -1)
            case .delete: for object in objects { context.delete(object) }
            }
        }

        /// The number of objects, and of those with the updated value.
        private func state() throws -> [Int] {
            let name = measured.entity.name
            let updated = EntityFetchRequest(name, matching: .equal(measured.amount.name, .double(-1)))
            return [try context.count(EntityFetchRequest(name)), try context.count(updated)]
        }

        private func check(_ isRight: Bool, _ operation: String) throws {
            try measured.check(isRight, "the \(operation) left other objects or values than there were")
        }
    }
}
