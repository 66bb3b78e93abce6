import Dispatch
internal import Platform
import StoreInterface
import StoreModel

extension PersistentContainer {
    /// The steps of opening a container's store: migration, then opening with one or two coordinators.
    struct Opening: Sendable {
        typealias Coordinators = (PersistentStoreCoordinator, PersistentStoreCoordinator)

        let model: Model
        let store: StoreDescription
        let stack: ContextStack
        let migration: PlannedMigration?
        /// Makes the routes of root contexts; nil if they have none.
        var rootRoute: RootRouteFactory?
        private let telemetry: Telemetry
        private let allowedLoss: SchemaMigration.AllowedLoss

        init(
            _ model: Model, store: StoreDescription, stack: ContextStack, plan: MigrationPlan?,
            allowsDataLoss: Set<String>, telemetry: Telemetry,
            _ progress: @escaping @Sendable (MigrationProgress) -> Void
        ) {
            self.model = model
            self.store = store
            self.stack = stack
            self.telemetry = telemetry
            allowedLoss = .named(allowsDataLoss)
            migration = plan.map { [allowedLoss] plan in
                PlannedMigration(plan: plan, model: model, store: store, allowedLoss: allowedLoss, progress: progress)
            }
        }

        /// Opens the store on background threads. Cancelling the task stops a migration between its steps.
        func run() async throws -> Coordinators {
            let instruments = Instruments(telemetry)
            var way: [StoreSchema]?
            if let migration { way = try await instruments.span("strata.migrate", attributes: [:]) { try await migration.run() } }
            return try await instruments.span("strata.open", attributes: [:]) { [way] in
                try await DispatchQueue.blocking { try open(way) }
            }
        }

        /// Opens the store. Blocks.
        func runNow() throws -> Coordinators { try open(migration?.runNow()) }

        /// - Parameter way: The schemas through which opening migrates the file; nil without a plan.
        private func open(_ way: [StoreSchema]?) throws -> Coordinators {
            var schema = model.storeSchema.withKeyedValues
            schema.migration.allowedLoss = allowedLoss
            if let way { schema.migration.way = way }
            // Longer than closing a store waits for its readers.
            for _ in 0..<600 {
                do {
                    return try openOnce(schema)
                } catch let error as StoreError where error.code == .closed {
                    // Another container of this process is about to close the same store.
                    CurrentThread.sleep(microseconds: 10_000)
                }
            }
            return try openOnce(schema)
        }

        private func openOnce(_ schema: StoreSchema) throws -> Coordinators {
            try PendingDerivations(store: store, schema: schema).opening { try openStore(schema) }
        }

        private func openStore(_ schema: StoreSchema) throws -> Coordinators {
            let opened = try store.open(schema)
            let first = try PersistentStoreCoordinator(
                model: model, store: opened, rootRoute: rootRoute, name: "coordinator", telemetry: telemetry)
            guard stack == .split || stack == .hybrid else { return (first, first) }
            let again = try store.open(schema)
            // A memory store is new each time it is opened. Then both coordinators use the first.
            let second = try PersistentStoreCoordinator(
                model: model, store: again.identity == opened.identity ? again : opened, rootRoute: rootRoute,
                name: "background coordinator", telemetry: telemetry)
            return (first, second)
        }
    }
}
