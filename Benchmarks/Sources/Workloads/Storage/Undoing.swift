import Datasets
import Figures
import ObjectGraph
import StoreInterface

/// Changes many objects in one undo group, undoes and redoes the group, beside the same changes in a context without an undo history.
public struct Undoing: Sendable {
    private let objects: Int
    private let seed: UInt64

    /// - Parameter objects: The number of changes in the group.
    public init(objects: Int, seed: UInt64) {
        self.objects = objects
        self.seed = seed
    }

    private enum Change: String, CaseIterable { case insert, update, delete }

    /// The nanoseconds per change of each operation.
    private typealias Costs = [(operation: String, nanoseconds: Double)]

    /// Returns one row per operation, in nanoseconds per change.
    public func rows(_ stores: [StoreKind], repeats: Int, progress: ProgressBar) async throws -> [Report.Row] {
        var rows: [Report.Row] = []
        for store in stores {
            var costs: [Costs] = []
            for repetition in 1...repeats {
                progress.step("undo: \(store.rawValue), \(repetition) of \(repeats)")
                costs.append(try await run(store))
            }
            for (number, cost) in costs[0].enumerated() {
                var row = Report.Row(benchmark: "undo", durability: "none", objects: objects, verified: true)
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
        let model = try DatasetModel(RecordData.make(1, seed: seed))
        let container = try await PersistentContainer(model: model.model, store: folder.store(store, .snapshot), stack: .siblings)
        let values = RecordData.make(1, seed: seed).tables[0].attributes.map { $0.values[0] }
        let context = await container.newBackgroundContext(name: "editor")
        let objects = objects
        await context.perform { context in
            for _ in 0..<objects { context.insert(model.entities[0], values: values) }
        }
        try await context.save()
        var costs: Costs = []
        for change in Change.allCases {
            let found = try await context.perform { context in
                try Run(context: context, entity: model.entities[0], values: values, count: objects).costs(of: change)
            }
            costs += found
        }
        try await container.close()
        return costs
    }

    /// The measured changes in one context, whose store has `count` objects.
    private struct Run {
        let context: ManagedObjectContext
        let entity: Entity
        let values: [Value]
        let count: Int

        func costs(of change: Change) throws -> Costs {
            // Objects and their values are read before.
            let objects = try context.fetch(EntityFetchRequest(entity.name))
            _ = try state()
            let plain = measure { make(change, objects) }
            context.rollback()
            let before = try state()
            // Without a limit, so that the group is kept.
            let history = UndoHistory(levels: 0, byteLimit: .max)
            context.undoHistory = history
            defer {
                context.undoHistory = nil
                context.rollback()
            }
            let recorded = measure {
                make(change, objects)
                context.processPendingChanges()
            }
            let after = try state()
            let undone = try measure { try history.undo() }
            try check(try state() == before, "undo of \(change)")
            let redone = try measure { try history.redo() }
            try check(try state() == after, "redo of \(change)")
            return [
                ("\(change), no history", plain), ("\(change), recorded", recorded), ("undo of \(change)", undone),
                ("redo of \(change)", redone),
            ]
        }

        private func make(_ change: Change, _ objects: [ManagedObject]) {
            switch change {
            case .insert: for _ in 0..<count { context.insert(entity, values: values) }
            case .update: for object in objects { object[attribute: entity.attributes[RecordData.amount]] = .double(-1) }
            case .delete: for object in objects { context.delete(object) }
            }
        }

        private func measure<R>(_ work: () throws -> R) rethrows -> Double {
            let start = Clock.now()
            _ = try work()
            return Double(Clock.now() - start) / Double(count)
        }

        /// The number of objects, and of those with the updated value.
        private func state() throws -> [Int] {
            let updated = EntityFetchRequest(
                entity.name, matching: .equal(entity.attributes[RecordData.amount].name, .double(-1)))
            return [try context.count(EntityFetchRequest(entity.name)), try context.count(updated)]
        }

        private func check(_ isRight: Bool, _ operation: String) throws {
            if !isRight { throw VerificationError("undo: the \(operation) left other objects or values than there were") }
        }
    }
}
