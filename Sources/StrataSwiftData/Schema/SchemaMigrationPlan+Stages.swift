import ObjectGraph
import StoreModel

extension SchemaMigrationPlan {
    /// Returns the plan with Strata's stages, for a file with a schema.
    ///
    /// Two neighbouring versions without a stage get a lightweight one. If a stage skips the file's version, the plan begins there.
    static func migrationPlan(from stored: StoreSchema?) throws -> MigrationPlan {
        let versions = sortedSchemas
        let models = try versions.map { try Schema(versionedSchema: $0).ordered(as: stored, in: self).model.get() }
        if let stored, stored.version == SchemaVersion(1, 0, 0), let newest = versions.last,
            newest.versionIdentifier < Schema.version,
            models.contains(where: { $0.storeSchema.storesTheSame(as: stored) })
        {
            throw SwiftDataError.backwardMigration.saying(
                "cannot use \(Self.self): its newest version is \(newest.versionIdentifier), and a list of models wrote the file, whose "
                    + "version is \(Schema.version). Give the versions of the plan numbers from \(Schema.version) on.")
        }
        var (result, met) = try way(through: versions, models, from: 0)
        // If a stage skips the version of the file, the plan has no stage that begins with it. The stages then begin at that version.
        if let stored, let start = position(of: stored, in: models), !met.contains(start) {
            (result, _) = try way(through: versions, models, from: start)
        }
        return MigrationPlan(result)
    }

    private static var sortedSchemas: [any VersionedSchema.Type] {
        schemas.sorted { $0.versionIdentifier < $1.versionIdentifier }
    }

    /// The stored schemas of the versions, oldest first, without those that are not valid.
    static var storeSchemas: [StoreSchema] {
        sortedSchemas.compactMap { try? Schema(versionedSchema: $0).model.get().storeSchema }
    }

    /// Returns the position of the version that wrote a file. A list of models has no version, so that its file counts as the first version
    /// that stores the same.
    private static func position(of stored: StoreSchema, in models: [ObjectGraph.Model]) -> Int? {
        models.firstIndex { $0.storeSchema.withoutHints == stored.withoutHints }
            ?? models.firstIndex { stored.version <= $0.storeSchema.version && $0.storeSchema.storesTheSame(as: stored) }
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
