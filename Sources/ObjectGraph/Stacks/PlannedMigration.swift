import Dispatch
import StoreInterface

/// Runs the stages of a plan on a copy of a file, then replaces the file with the copy.
struct PlannedMigration {
    let plan: MigrationPlan
    let model: Model
    let store: StoreDescription
    /// The stored values that lightweight stages may drop.
    let allowedLoss: SchemaMigration.AllowedLoss
    let progress: @Sendable (MigrationProgress) -> Void

    /// Runs the plan's stages if one of them is custom.
    ///
    /// - Returns: The schemas through which opening must migrate the file, if all stages are lightweight: from the file's to the
    ///   model's. Empty if there are no stages, or if they have run.
    /// - Throws: `StoreError`, errors of a stage's closures, `CancellationError`. Then the file is unchanged.
    func run() async throws -> [StoreSchema] {
        guard let file = store.migration, let found = try await Self.blocking({ try file.storedSchema() }) else { return [] }
        let stages = try plan.stages(from: found, to: model)
        guard stages.contains(where: \.isCustom) else {
            return stages.prefix(1).map(\.source.storeSchema) + stages.map(\.target.storeSchema)
        }
        // Report one step before, one during and one after each stage. The duration of a stage's work is unknown.
        let total = 2 + 3 * stages.count
        func report(_ activity: String, _ step: Int) throws {
            try Task.checkCancellation()
            progress(MigrationProgress(activity: activity, completed: step, total: total))
        }
        try report("copying the file", 0)
        let copy = try await Self.blocking { try file.makeCopy() }
        do {
            for (number, stage) in stages.enumerated() {
                let name = "from \(stage.source.version) to \(stage.target.version)"
                try report("before the change \(name)", 1 + 3 * number)
                if let work = stage.willMigrate { try await Self.work(work, stage.source, copy.store) }
                try report("the change \(name)", 2 + 3 * number)
                try await evolve(stage, copy.store)
                try report("after the change \(name)", 3 + 3 * number)
                if let work = stage.didMigrate { try await Self.work(work, stage.target, copy.store) }
            }
            try report("replacing the file with the copy", total - 1)
            try await Self.blocking { try copy.replaceOriginal() }
        } catch {
            try? await Self.blocking { copy.discard() }
            throw error
        }
        progress(MigrationProgress(activity: "done", completed: total, total: total))
        return []
    }

    /// Opens the copy with the new model. For a custom stage, it is first opened without the properties that the stage converts.
    private func evolve(_ stage: MigrationStage, _ store: StoreDescription) async throws {
        var target = stage.target.storeSchema
        target.migration.allowedLoss = stage.isCustom ? .everything : allowedLoss
        let plain = stage.isCustom ? target.withoutConversions(from: stage.source.storeSchema) : target
        for schema in plain.withoutHints == target.withoutHints ? [target] : [plain, target] {
            try await Self.closing { try store.open(schema) }
        }
    }

    private static func work(_ work: @escaping MigrationStage.Work, _ model: Model, _ description: StoreDescription) async throws
    {
        let end = Released()
        do {
            let store = try await blocking { try description.open(model.storeSchema) }
            end.watch(store)
            let coordinator = try await blocking {
                try PersistentStoreCoordinator(
                    model: model, store: store, routing: description.routing, name: "migration")
            }
            let context = coordinator.newBackgroundContext(name: "migration")
            try await context.perform { context in try work(context) }
            try await context.save(.durable)
            try await coordinator.finishMigration()
        }
        try await end.wait()
    }

    private static func closing(_ open: @escaping @Sendable () throws -> any ObjectStore) async throws {
        let end = Released()
        try await blocking {
            let store = try open()
            end.watch(store)
            while try store.continueMigration() != nil {}
        }
        try await end.wait()
    }

    private static func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }
}

/// Waits until a store is closed. Its writer releases it on a queue of its own.
///
/// `@unchecked Sendable` is safe because the reference is written once, before the wait.
private final class Released: @unchecked Sendable {
    private weak var store: (any ObjectStore)?

    func watch(_ store: any ObjectStore) { self.store = store }

    func wait() async throws {
        for _ in 0..<2000 where store != nil { try await Task.sleep(for: .milliseconds(5)) }
        guard store == nil else {
            throw StoreError(
                .inUseElsewhere, "a migration stage failed: its closure kept the context. Release the context and its objects.")
        }
    }
}
