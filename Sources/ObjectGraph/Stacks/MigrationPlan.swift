import StoreInterface

/// One step from a version of a model to the next.
public struct MigrationStage: Sendable {
    /// Works with objects, synchronously, in a context of its own; what it changes is saved when it returns.
    public typealias Work = @Sendable (ManagedObjectContext) throws -> Void

    let source: Model
    let target: Model
    let isCustom: Bool
    let willMigrate: Work?
    let didMigrate: Work?

    /// A change that needs no work: entities and properties that are added, renamed, made optional or given a wider type. It drops
    /// what holds values only where the container's `allowsDataLoss` names it (S165).
    public static func lightweight(from source: Model, to target: Model) -> MigrationStage {
        MigrationStage(source: source, target: target, isCustom: false, willMigrate: nil, didMigrate: nil)
    }

    /// As a lightweight stage, with work before and after it. An attribute whose type changes in a way that is not lightweight begins
    /// with its default, and a relationship whose kind or destination changes begins empty: `willMigrate` reads the old values,
    /// `didMigrate` writes the new ones. What the target does not have is dropped.
    ///
    /// - Parameters:
    ///   - source: what a file's model is before the stage.
    ///   - target: what it is after.
    ///   - willMigrate: with objects of the old model.
    ///   - didMigrate: with objects of the new one.
    public static func custom(
        from source: Model, to target: Model, willMigrate: Work? = nil, didMigrate: Work? = nil
    ) -> MigrationStage {
        MigrationStage(source: source, target: target, isCustom: true, willMigrate: willMigrate, didMigrate: didMigrate)
    }
}

/// The way from old models to the present one (S164).
///
/// When a file has the source model of a stage, the stages from there on are run in order, lightweight stages too. With a custom stage
/// among them they run on a copy of the file, which replaces the file when the last stage has succeeded; lightweight stages alone run
/// in the one transaction of opening. A failure, a cancelled task or a crash leaves the file as it was.
public struct MigrationPlan: Sendable {
    public let stages: [MigrationStage]

    /// - Parameter stages: each begins where the one before ends.
    public init(_ stages: [MigrationStage]) { self.stages = stages }

    /// The stages that a file needs; empty when it needs none.
    /// - Throws: `StoreError` `.schemaMismatch` when the file's model is not among the plan's.
    func stages(from found: StoreSchema, to model: Model) throws -> ArraySlice<MigrationStage> {
        let wanted = model.storeSchema.withoutHints
        if found == wanted { return [] }
        guard let first = stages.firstIndex(where: { $0.source.storeSchema.withoutHints == found }) else {
            // The open says which of the two is newer.
            if found.version > wanted.version { return [] }
            throw StoreError(
                .schemaMismatch,
                "the file has version \(found.version) of the model, with which no stage of the migration plan begins. "
                    + "Add a stage from that model")
        }
        let way = stages[first...]
        let ends = way.dropFirst().map { $0.source.storeSchema.withoutHints } + [wanted]
        for (stage, end) in zip(way, ends) {
            guard stage.target.storeSchema.withoutHints == end else {
                throw StoreError(
                    .schemaMismatch,
                    "a stage of the migration plan leads to version \(stage.target.version), where the next one does not begin. "
                        + "Let each stage begin with the model that the one before leads to")
            }
        }
        return way
    }
}
