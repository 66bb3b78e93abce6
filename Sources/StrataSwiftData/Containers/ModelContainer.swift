import Logging
import ObjectGraph
internal import Platform
import StoreInterface
import StoreModel

/// A store of models, with a context for the main actor.
///
/// ```swift
/// let container = try ModelContainer(for: Trip.self)
/// container.mainContext.insert(Trip(name: "Bergen"))
/// try container.mainContext.save()
/// ```
public final class ModelContainer: Sendable {
    /// The state that the container shares with its contexts. A context keeps the store open after its container was released.
    let storage: ContainerStorage
    private let main = MainContextBox()

    /// The schema of the container.
    public var schema: Schema { storage.schema }
    /// The configuration, as a set.
    public var configurations: Set<ModelConfiguration> { [storage.configuration] }
    /// The migration plan.
    public var migrationPlan: (any SchemaMigrationPlan.Type)? { storage.migrationPlan }

    /// The context of the main actor, which saves by itself.
    @MainActor public var mainContext: ModelContext {
        if let context = main.context { return context }
        let context = storage.mainContext(of: self)
        main.context = context
        return context
    }

    /// Opens the store of a schema. Blocks while files are opened or migrated.
    ///
    /// The store has all models of the schema, also if the schema of the configuration has only some of them.
    ///
    /// - Throws: ``SwiftDataError/duplicateConfiguration`` for several configurations;
    ///   ``SwiftDataError/configurationSchemaNotFoundInContainerSchema`` if the schema of the configuration has other models;
    ///   ``SwiftDataError/backwardMigration`` if a stage of the plan leads to an older version; `ModelError` of the module `ObjectGraph` if
    ///   the models are not valid; or the error of the migration or of the store.
    public init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil, configurations: [ModelConfiguration]
    ) throws {
        guard configurations.count <= 1 else { throw SwiftDataError.duplicateConfiguration }
        try configurations.first?.checkModels(in: schema)
        storage = try ContainerStorage(
            schema, plan: migrationPlan, configuration: configurations.first ?? ModelConfiguration(schema: schema))
    }

    /// Opens the store of a schema.
    public convenience init(
        for schema: Schema, migrationPlan: (any SchemaMigrationPlan.Type)? = nil, configurations: ModelConfiguration...
    ) throws {
        try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
    }

    /// Opens the store of some models, and of those that they have relationships to.
    public convenience init(
        for types: any PersistentModel.Type..., migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: ModelConfiguration...
    ) throws {
        let schema = types.isEmpty ? configurations.first?.schema ?? Schema([]) : Schema(types)
        try self.init(for: schema, migrationPlan: migrationPlan, configurations: configurations)
    }

    /// Opens the store of some models, and of those that they have relationships to.
    public convenience init(
        for types: [any PersistentModel.Type], migrationPlan: (any SchemaMigrationPlan.Type)? = nil,
        configurations: ModelConfiguration...
    ) throws {
        try self.init(for: Schema(types), migrationPlan: migrationPlan, configurations: configurations)
    }

    init(_ storage: ContainerStorage) { self.storage = storage }

    /// Deletes all objects of all models, in the store and without contexts. Does nothing if the store cannot be written.
    @available(*, deprecated, message: "use erase(), which reports errors")
    public func deleteAllData() { try? erase() }

    /// Deletes all objects of all models. Blocks until the deletion is saved.
    public func erase() throws {
        let context = ModelContext(self)
        // The model also has superclasses, which the schema does not list.
        for entity in context.context.model.entities {
            for object in try context.context.fetch(EntityFetchRequest(entity.name)) where !object.isDeleted {
                context.context.delete(object)
            }
        }
        try context.save()
    }

    /// Waits until each save made so far is on disk. Call this before the program ends, because a save returns earlier.
    ///
    /// If the main context saves by itself, its changes so far are saved first. The error of that save goes to its
    /// ``ModelContext/onAutosaveError``.
    ///
    /// - Throws: The error of a save that cannot be written now, such as a full disk. Strata's `SaveError.deferredSavesFailed`, once, for
    ///   saves that could never be written and were left out, also at an earlier time.
    public func flush() async throws {
        await storage.saveMainContext()
        try await storage.container.flush()
    }

    /// Writes the saves and closes the store, so that its file can be moved or opened again. Release the contexts that were made with
    /// ``ModelContext/init(_:)`` before: a context that is not used again keeps the file open, and this throws.
    ///
    /// If the main context saves by itself, its changes so far are saved first. The error of that save goes to its
    /// ``ModelContext/onAutosaveError``.
    ///
    /// - Throws: The errors of ``flush()``, or Strata's `StoreError` `.inUseElsewhere` if the file is still being read.
    public func close() async throws {
        await storage.saveMainContext()
        try await storage.container.close()
    }

    /// Writes the saves, ends all reads and releases every lock, so that the system may freeze the process. Until ``resume()``, saves
    /// throw `StoreError` `.suspended`, and their changes stay unsaved.
    ///
    /// If the main context saves by itself, its changes so far are saved first. The error of that save goes to its
    /// ``ModelContext/onAutosaveError``.
    ///
    /// - Throws: The errors of ``flush()``, or Strata's `StoreError`. Then the container is not suspended.
    public func suspend() async throws {
        await storage.saveMainContext()
        try await storage.container.suspend()
    }

    /// Goes on after ``suspend()``. Contexts show what other processes have saved meanwhile.
    public func resume() async { await storage.container.resume() }

    /// Logs each fetch and count of the container's contexts that takes at least as long as a threshold: its time, its context, the number
    /// of objects that the store compared with the condition, the number of objects found, and the plan of the store.
    ///
    /// ```swift
    /// container.logFetches(slowerThan: .milliseconds(50))
    /// ```
    /// While the log is off, a fetch costs one more atomic read. May be called on any thread.
    /// - Parameters:
    ///   - threshold: The shortest time to log; nil turns the log off, as it is at first.
    ///   - logger: Receives messages of level `warning`, on the thread that uses the context.
    public func logFetches(slowerThan threshold: Duration?, to logger: Logger = Logger(label: "strata.fetches")) {
        storage.container.logFetches(slowerThan: threshold, to: logger)
    }
}

extension ModelContainer: Equatable, CustomDebugStringConvertible {
    /// Returns whether two containers are of one store.
    public static func == (a: ModelContainer, b: ModelContainer) -> Bool { a.storage === b.storage }
    /// The schema and the configuration.
    public var debugDescription: String { "container of \(schema), \(storage.configuration)" }
}

/// The main context of a container; nil before its first use.
@MainActor private final class MainContextBox {
    var context: ModelContext?
    nonisolated init() {}
}

/// The state that a container shares with its contexts.
final class ContainerStorage: Sendable {
    let schema: Schema
    let configuration: ModelConfiguration
    let migrationPlan: (any SchemaMigrationPlan.Type)?
    let container: PersistentContainer
    /// Whether the main context may have changes that it would save by itself.
    let mainMayHaveChanges = Atomic(false)
    private let main = WeakMainContext()

    init(_ schema: Schema, plan: (any SchemaMigrationPlan.Type)?, configuration: ModelConfiguration) throws {
        self.configuration = configuration
        migrationPlan = plan
        let store = try configuration.storeDescription()
        let stored = try store.storedSchema?()
        self.schema = schema.matched(to: stored, plan)
        let model = try self.schema.ordered(as: stored, in: plan).model.get()
        container = try PersistentContainer(
            openingSynchronously: model, store: store, migrationPlan: try plan?.migrationPlan(from: stored),
            allowsDataLoss: try Self.names(in: store, plan, keptBy: model))
    }

    /// Returns the names of all that a file or a version of the plan stores: as in SwiftData, a migration drops what the schema does not
    /// have, and a stage may drop what an earlier one has renamed or added. Returns none for a file of other models, which thus is not
    /// opened.
    private static func names(
        in store: StoreDescription, _ plan: (any SchemaMigrationPlan.Type)?, keptBy model: Model
    ) throws -> Set<String> {
        guard let stored = try store.migration?.storedSchema() else { return [] }
        let versions = try (plan?.schemas ?? []).map { try Schema(versionedSchema: $0).model.get().storeSchema }
        let kept = Set((versions + [model.storeSchema]).flatMap { $0.entities.map(\.name) })
        guard stored.entities.contains(where: { kept.contains($0.name) }) else { return [] }
        var names: Set<String> = []
        for schema in versions + [stored] {
            names.formUnion(schema.entities.map(\.name) + schema.links.map(\.name))
            for entity in schema.entities {
                names.formUnion(entity.columns.map { "\(entity.name).\($0.name)" })
                for part in entity.subentities { names.formUnion(part.properties.map { "\(part.name).\($0)" }) }
            }
        }
        return names
    }

    /// Returns the context of the main actor, of this or of an earlier container of the store.
    @MainActor func mainContext(of container: ModelContainer) -> ModelContext {
        if let context = main.context { return context }
        let context = ModelContext(main: self, container)
        main.context = context
        return context
    }

    /// Saves the changes that the main context would soon save by itself. Without such changes, does not wait for the main actor, which may
    /// be blocked.
    func saveMainContext() async {
        guard mainMayHaveChanges.load(ordering: .acquiring) else { return }
        await MainActor.run { main.context?.autosaveUnlessSuspended() }
    }
}

@MainActor private final class WeakMainContext {
    weak var context: ModelContext?
    nonisolated init() {}
}
