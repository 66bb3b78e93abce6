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

    /// What the file can do by itself: see `SchemaEvolution`.
    public static func lightweight(from source: Model, to target: Model) -> MigrationStage {
        MigrationStage(source: source, target: target, isCustom: false, willMigrate: nil, didMigrate: nil)
    }

    /// As a lightweight stage, with work before and after it. An attribute whose type changes in a way that is not lightweight begins
    /// with its default: `willMigrate` reads the old values, `didMigrate` writes the new ones.
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
/// When a file stands at the beginning of a stage, the stages from there on are run, in order, on a copy of the file, which takes the
/// file's place when the last has succeeded. A failure, a cancelled task or a crash leaves the file as it was. A way without custom
/// stages needs no copy.
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

extension StoreSchema {
    /// The schema without the columns whose values cannot be read as those of an older schema, in which they have other types.
    func withoutConversions(from old: StoreSchema) -> StoreSchema {
        var plain = self
        for (number, entity) in entities.enumerated() {
            guard
                let before = old.entities.first(where: { $0.name == entity.name })
                    ?? old.entities.first(where: { $0.name == entity.renamedFrom })
            else { continue }
            let kept = entity.columns.indices.filter { position in
                let column = entity.columns[position]
                guard let source = before.columns.first(where: { $0.name == column.name || $0.name == column.renamedFrom })
                else { return true }
                return source.type == column.type || source.type.widens(to: column.type)
            }
            guard kept.count < entity.columns.count else { continue }
            plain.entities[number].columns = kept.map { entity.columns[$0] }
            plain.entities[number].indexes = entity.indexes.compactMap { index in
                let columns = index.columns.compactMap { kept.firstIndex(of: $0) }
                return columns.count == index.columns.count ? IndexSchema(columns: columns, kind: index.kind) : nil
            }
        }
        return plain
    }
}
