import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Runs the stages of a plan on a copy of a file, then replaces the file with the copy.
struct PlannedMigration: Sendable {
    let plan: MigrationPlan
    let model: Model
    let store: StoreDescription
    /// The stored values that lightweight stages may drop.
    let allowedLoss: SchemaMigration.AllowedLoss
    let progress: @Sendable (MigrationProgress) -> Void

    /// The work of a plan for one file.
    private enum Work: Sendable {
        /// Opening migrates the file through these schemas, from the file's to the model's.
        case opening([StoreSchema])
        /// These steps migrate a copy of the file.
        case steps([Step], CopiedFile)
    }

    /// A part of the work, which blocks. Between two steps, a migration can be stopped.
    private struct Step: Sendable {
        let activity: String
        let run: @Sendable () throws -> Void
    }

    /// The copy of the file, once a step has made it.
    private final class CopiedFile: Sendable {
        private let made = Mutex<(any MigrationCopy)?>(nil)

        func make(of file: any MigratableFile) throws {
            let copy = try file.makeCopy()
            made.withLock { $0 = copy }
        }

        func use<R>(_ body: (any MigrationCopy) throws -> R) throws -> R {
            guard let copy = made.withLock({ $0 }) else { preconditionFailure("the first step makes the copy") }
            return try body(copy)
        }

        func discard() { made.withLock { $0 }?.discard() }
    }

    /// Thrown instead of migrating a copy that has another schema than the one for which the stages were chosen.
    private struct MigratedMeanwhile: Error {}

    /// The number of times that the stages are chosen while other processes migrate or restore the file.
    private static let attempts = 5

    private var changedAgainAndAgain: StoreError {
        StoreError(
            .inUseElsewhere,
            "cannot migrate \(store.path ?? store.name): each of \(Self.attempts) attempts found another model in the file, because other "
                + "processes migrate or restore it. Open it again")
    }

    /// Runs the plan's stages if one of them is custom. Each step runs on a background thread, and `progress` in the calling task.
    ///
    /// - Returns: The schemas through which opening must migrate the file, if all stages are lightweight: from the file's to the
    ///   model's. Empty if there are no stages, or if they have run.
    /// - Throws: `StoreError`, errors of a stage's closures, `CancellationError`. Then the file is unchanged.
    func run() async throws -> [StoreSchema] {
        for _ in 0..<Self.attempts {
            do { return try await runOnce() } catch is MigratedMeanwhile {}
        }
        throw changedAgainAndAgain
    }

    private func runOnce() async throws -> [StoreSchema] {
        switch try await DispatchQueue.blocking({ try work() }) {
        case .opening(let way): return way
        case .steps(let steps, let copy):
            do {
                for (number, step) in steps.enumerated() {
                    try Task.checkCancellation()
                    willRun(step, number, of: steps.count)
                    try await DispatchQueue.blocking(step.run)
                }
            } catch {
                try? await DispatchQueue.blocking { copy.discard() }
                throw error
            }
            didRun(steps.count)
            return []
        }
    }

    /// Runs the plan's stages as ``run()`` does, on the calling thread. Like other blocking calls, this does not end early in a cancelled
    /// task.
    func runNow() throws -> [StoreSchema] {
        for _ in 0..<Self.attempts {
            do { return try runOnceNow() } catch is MigratedMeanwhile {}
        }
        throw changedAgainAndAgain
    }

    private func runOnceNow() throws -> [StoreSchema] {
        switch try work() {
        case .opening(let way): return way
        case .steps(let steps, let copy):
            do {
                for (number, step) in steps.enumerated() {
                    willRun(step, number, of: steps.count)
                    try step.run()
                }
            } catch {
                copy.discard()
                throw error
            }
            didRun(steps.count)
            return []
        }
    }

    private func willRun(_ step: Step, _ number: Int, of total: Int) {
        progress(MigrationProgress(activity: step.activity, completed: number, total: total))
    }

    private func didRun(_ total: Int) { progress(MigrationProgress(activity: "done", completed: total, total: total)) }

    private func work() throws -> Work {
        guard let file = store.migration, let found = try file.storedSchema() else { return .opening([]) }
        let stages = try plan.stages(from: found, to: model)
        guard stages.contains(where: \.isCustom) else {
            // From the schema of the file, which may lack derived values that its model has.
            return .opening(stages.isEmpty ? [] : [found] + stages.map(\.target.storeSchema))
        }
        var recorded = try store.recordedSchemas?() ?? RecordedSchemas(found)
        if recorded.isAfter(model.storeSchema) { throw StoreError.olderModel(store.path ?? store.name) }
        let copy = CopiedFile()
        // One step before, one during and one after each stage. The duration of a stage's work is unknown.
        var steps = [Step(activity: "copying the file") { try Self.make(copy, of: file, from: found) }]
        for stage in stages {
            let name = "from \(stage.source.version) to \(stage.target.version)"
            steps.append(
                Step(activity: "before the change \(name)") {
                    if let work = stage.willMigrate {
                        try copy.use { try Self.work(work, model: stage.source, description: $0.store) }
                    }
                })
            steps.append(
                Step(activity: "the change \(name)") { [recorded] in try copy.use { try evolve(stage, from: recorded, $0.store) }
                })
            let (target, schemaOfWork) = (stage.target.storeSchema, stage.schemaOfWork)
            recorded = RecordedSchemas(target.withoutHints, exchanged: ExchangedNames(of: target))
            steps.append(
                Step(activity: "after the change \(name)") {
                    guard let work = stage.didMigrate else { return }
                    try copy.use { copy in
                        try Self.work(work, model: stage.target, schema: schemaOfWork, description: copy.store)
                        if schemaOfWork != target { try Self.closing { try copy.store.open(stage.step) } }
                    }
                })
        }
        steps.append(
            Step(activity: "replacing the file with the copy") {
                try Self.unlessMigrated(file, from: found) { try copy.use { try $0.replaceOriginal() } }
            })
        return .steps(steps, copy)
    }

    /// Copies the file, whose schema was read before. Since then, another process may have run the stages.
    /// - Throws: ``MigratedMeanwhile`` if the file has another schema now. The file is read and not the copy: if it changes later, the copy
    ///   does not replace it.
    private static func make(_ copy: CopiedFile, of file: any MigratableFile, from found: StoreSchema) throws {
        try unlessMigrated(file, from: found) { try copy.make(of: file) }
        guard try file.storedSchema() == found else { throw MigratedMeanwhile() }
    }

    /// Runs `body`, which fails if another process has the file open or has changed it.
    /// - Throws: ``MigratedMeanwhile`` instead of the error if that process has run the stages.
    private static func unlessMigrated(_ file: any MigratableFile, from found: StoreSchema, _ body: () throws -> Void) throws {
        do { try body() } catch {
            // Every other error is reported as it is, such as that of a full disk.
            let isInUse = [.inUseElsewhere, .storeBusy].contains((error as? StoreError)?.code)
            if isInUse, let now = try? file.storedSchema(), now != found { throw MigratedMeanwhile() }
            throw error
        }
    }

    /// Opens the copy with each schema of the stage.
    private func evolve(_ stage: MigrationStage, from file: RecordedSchemas, _ store: StoreDescription) throws {
        var current = file
        for schema in stage.schemas(allowedLoss: allowedLoss) {
            try PendingDerivations(store: store, schema: schema, file: current).compute()
            try Self.closing { try store.open(schema) }
            current = RecordedSchemas(schema.withoutHints, exchanged: ExchangedNames(of: schema))
        }
    }

    private static func work(
        _ work: MigrationStage.Work, model: Model, schema: StoreSchema? = nil, description: StoreDescription
    ) throws {
        let end = StoreRelease()
        do {
            let store = try description.open(schema ?? model.storeSchema)
            end.watch(store)
            let coordinator = try PersistentStoreCoordinator(model: model, store: store, name: "migration")
            let context = ConfinedExecutor.makeContext(.root(of: coordinator, name: "migration"))
            try work(context)
            try context.saveNow(.durable)
            try coordinator.writer.finishMigrationAndWait()
        }
        try end.wait()
    }

    private static func closing(_ open: () throws -> any ObjectStore) throws {
        let end = StoreRelease()
        do {
            let store = try open()
            end.watch(store)
            while try store.continueMigration() != nil {}
        }
        try end.wait()
    }
}

extension DispatchQueue {
    /// Runs blocking work on a background thread.
    static func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCompletion { completion in global().async { completion(Result { try body() }) } }
    }
}
