import StoreInterface
import StoreModel

/// One step of a migration, from one version of a model to the next.
///
/// ```swift
/// let titles = MigrationStage.custom(
///     from: models.v1, to: models.v2,
///     didMigrate: { context in
///         for track in try context.fetch(EntityFetchRequest("Track")) { track["sortTitle"] = track["title"] }
///     })
/// ```
public struct MigrationStage: Sendable {
    /// A closure that works with objects synchronously, in a context of its own. Its changes are saved when it returns.
    public typealias Work = @Sendable (ManagedObjectContext) throws -> Void

    let source: Model
    let target: Model
    let isCustom: Bool
    let willMigrate: Work?
    let didMigrate: Work?

    /// Returns a stage without custom work: entities and properties are added, renamed, made optional, or get a wider type.
    ///
    /// A lightweight stage drops stored values only if the container's `allowsDataLoss` names their entity or property (S165).
    public static func lightweight(from source: Model, to target: Model) -> MigrationStage {
        MigrationStage(source: source, target: target, isCustom: false, willMigrate: nil, didMigrate: nil)
    }

    /// Returns a stage with custom work before and after a lightweight migration.
    ///
    /// `willMigrate` reads the old values, and `didMigrate` writes the new values. To carry values from one to the other, keep them by
    /// the ids of their objects in a `Mutex`. Ids stay the same if both models list their classes in the same order.
    /// If the type of an attribute changes in a way that is not lightweight, the attribute begins with its default value.
    /// If the kind or destination of a relationship changes, the relationship begins empty. Values that the target does not have are
    /// dropped, also if the container's `allowsDataLoss` does not name them.
    ///
    /// - Parameters:
    ///   - source: The model of the file before the stage.
    ///   - target: The model of the file after the stage.
    ///   - willMigrate: Work with objects of the source model, before the migration.
    ///   - didMigrate: Work with objects of the target model, after the migration.
    public static func custom(
        from source: Model, to target: Model, willMigrate: Work? = nil, didMigrate: Work? = nil
    ) -> MigrationStage {
        MigrationStage(source: source, target: target, isCustom: true, willMigrate: willMigrate, didMigrate: didMigrate)
    }
}

/// The stages that migrate files of older models to the present model (S164).
///
/// If a file has the source model of a stage, that stage and all later stages run in order, lightweight stages too. If one of them
/// is custom, they run on a copy, which replaces the file after the last stage. Otherwise they run in the transaction that opens
/// the file. A failure, a cancelled task or a crash leaves the file unchanged.
///
/// ```swift
/// let plan = MigrationPlan([
///     .lightweight(from: models.v1, to: models.v2),
///     .custom(
///         from: models.v2, to: models.v3,
///         didMigrate: { context in
///             for track in try context.fetch(EntityFetchRequest("Track")) { track["sortTitle"] = track["title"] }
///         }),
/// ])
/// let container = try await PersistentContainer(model: models.v3, store: .lmdb(file), migrationPlan: plan)
/// ```
public struct MigrationPlan: Sendable {
    /// The stages. Each begins with the model that the previous stage ends with.
    public let stages: [MigrationStage]

    /// Creates a plan.
    ///
    /// - Parameter stages: The stages. Each begins with the model that the previous stage ends with.
    public init(_ stages: [MigrationStage]) { self.stages = stages }

    /// Returns the stages that a file needs; empty if it needs none.
    ///
    /// A file that stores the same as the source of a stage, but has a lower version or another order of entities, gets a lightweight
    /// stage before it. A program that opens its file with a list of models writes such a file: its model has no version.
    ///
    /// - Throws: `StoreError` `.schemaMismatch` if the file's model is not in the plan.
    func stages(from found: StoreSchema, to model: Model) throws -> ArraySlice<MigrationStage> {
        let wanted = model.storeSchema.withoutHints
        if found == wanted { return [] }
        if let first = stages.firstIndex(where: { $0.source.storeSchema.withoutHints == found }) {
            return try way(from: first, to: wanted)
        }
        guard let first = stages.firstIndex(where: { Self.stands(found, for: $0.source.storeSchema) }) else {
            // Opening the file reports which of the two is newer.
            if found.version > wanted.version || Self.stands(found, for: wanted) { return [] }
            throw StoreError(
                .schemaMismatch,
                "cannot migrate the file: no stage of the migration plan begins with its model, version \(found.version). "
                    + "Add a stage from that model.")
        }
        var way = try way(from: first, to: wanted)
        way.insert(.lightweight(from: try Model(stored: found), to: stages[first].source), at: way.startIndex)
        return way
    }

    private static func stands(_ found: StoreSchema, for schema: StoreSchema) -> Bool {
        found.version <= schema.version && schema.storesTheSame(as: found)
    }

    /// Returns the stages from one on, of which each ends with the model that the next begins with.
    private func way(from first: Int, to wanted: StoreSchema) throws -> ArraySlice<MigrationStage> {
        let way = stages[first...]
        let ends = way.dropFirst().map { $0.source.storeSchema.withoutHints } + [wanted]
        for (stage, end) in zip(way, ends) {
            guard stage.target.storeSchema.withoutHints == end else {
                throw StoreError(
                    .schemaMismatch,
                    "cannot use the migration plan: a stage ends with version \(stage.target.version), but the next stage does not begin "
                        + "with that model. Begin each stage with the model that the previous stage ends with.")
            }
            try stage.checkExchanges()
        }
        return way
    }
}
