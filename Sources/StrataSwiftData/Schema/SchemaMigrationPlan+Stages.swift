import ObjectGraph
import StoreModel

extension SchemaMigrationPlan {
    /// Returns the plan with Strata's stages, for a file with a schema.
    ///
    /// Two neighbouring versions without a stage get a lightweight one. If a stage skips the file's version, the plan begins there.
    static func migrationPlan(from stored: StoreSchema?) throws -> MigrationPlan {
        let versions = schemas.sorted { $0.versionIdentifier < $1.versionIdentifier }
        let models = try versions.map { try Schema(versionedSchema: $0).ordered(as: stored).model.get() }
        var (result, met) = try way(through: versions, models, from: 0)
        // If a stage skips the version of the file, the plan has no stage that begins with it. The stages then begin at that version.
        if let stored, let start = models.firstIndex(where: { $0.storeSchema.withoutHints == stored.withoutHints }),
            !met.contains(start)
        {
            (result, _) = try way(through: versions, models, from: start)
        }
        return MigrationPlan(result)
    }

    /// Returns the stages from a version to the newest, and the positions of the versions that they meet.
    private static func way(
        through versions: [any VersionedSchema.Type], _ models: [ObjectGraph.Model], from start: Int
    ) throws -> ([ObjectGraph.MigrationStage], met: Set<Int>) {
        var result: [ObjectGraph.MigrationStage] = []
        var position = start
        var met: Set = [start]
        while position + 1 < versions.count {
            let from = versions[position]
            let stage = stages.first { $0.versions.from == from }
            let target = stage.flatMap { stage in versions.firstIndex { $0 == stage.versions.to } } ?? position + 1
            guard target > position else {
                throw SwiftDataError.backwardMigration.saying(
                    "cannot use \(Self.self): a stage leads from version \(from.versionIdentifier) to an older one. "
                        + "Let each stage lead to a newer version.")
            }
            result.append(Self.stage(stage, from: models[position], to: models[target]))
            position = target
            met.insert(position)
        }
        return (result, met)
    }

    private static func stage(_ stage: MigrationStage?, from: ObjectGraph.Model, to: ObjectGraph.Model)
        -> ObjectGraph.MigrationStage
    {
        guard case .custom(_, _, let willMigrate, let didMigrate)? = stage else { return .lightweight(from: from, to: to) }
        return .custom(from: from, to: to, willMigrate: work(willMigrate), didMigrate: work(didMigrate))
    }

    private static func work(_ body: (@Sendable (ModelContext) throws -> Void)?) -> ObjectGraph.MigrationStage.Work? {
        guard let body else { return nil }
        return { context in try body(ModelContext(migrating: context)) }
    }
}
