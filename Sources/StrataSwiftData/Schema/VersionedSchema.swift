import ObjectGraph

/// One version of a program's models.
///
/// ```swift
/// enum TripsV1: VersionedSchema {
///     static let versionIdentifier = Schema.Version(1, 0, 0)
///     static var models: [any PersistentModel.Type] { [Trip.self] }
///
///     @Model final class Trip {
///         var name: String
///         init(name: String) { self.name = name }
///     }
/// }
/// ```
public protocol VersionedSchema: SendableMetatype {
    /// The model classes.
    static var models: [any PersistentModel.Type] { get }
    /// The version, which is larger than that of earlier schemas.
    static var versionIdentifier: Schema.Version { get }
}

/// The versions of a program's models, and the way from each to the next.
///
/// ```swift
/// enum TripsPlan: SchemaMigrationPlan {
///     static var schemas: [any VersionedSchema.Type] { [TripsV1.self, TripsV2.self] }
///     static var stages: [MigrationStage] { [.lightweight(fromVersion: TripsV1.self, toVersion: TripsV2.self)] }
/// }
/// ```
public protocol SchemaMigrationPlan: SendableMetatype {
    /// The versions, oldest first.
    static var schemas: [any VersionedSchema.Type] { get }
    /// The stages, each from one version to the next. A version without a stage is migrated by lightweight changes.
    static var stages: [MigrationStage] { get }
}

/// One step of a migration.
///
/// The closures of a custom stage get a context of the old or the new models. Their changes are saved when they return, whether
/// they call `save()` or not. If one throws, the store is as before the migration. A stage can be a constant of its plan.
///
/// ```swift
/// let names = MigrationStage.custom(
///     fromVersion: TripsV1.self, toVersion: TripsV2.self, willMigrate: nil,
///     didMigrate: { context in
///         for trip in try context.fetch(FetchDescriptor<TripsV2.Trip>()) { trip.name = trip.name.uppercased() }
///     })
/// ```
public enum MigrationStage: Sendable {
    /// Adds, renames and removes entities and properties.
    case lightweight(fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type)
    /// Runs code before and after a lightweight migration.
    @preconcurrency case custom(
        fromVersion: any VersionedSchema.Type, toVersion: any VersionedSchema.Type,
        willMigrate: (@Sendable (ModelContext) throws -> Void)?, didMigrate: (@Sendable (ModelContext) throws -> Void)?)
}

extension MigrationStage {
    var versions: (from: any VersionedSchema.Type, to: any VersionedSchema.Type) {
        switch self {
        case .lightweight(let from, let to), .custom(let from, let to, _, _): (from, to)
        }
    }
}
