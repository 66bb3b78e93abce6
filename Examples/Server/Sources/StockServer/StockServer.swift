import Hummingbird
import Logging
import ServiceLifecycle
import Strata
import UnixSignals

/// The stock of a small shop, as a server with a JSON API.
package struct StockServer: Sendable {
    /// The choices of the server's operator.
    package struct Settings: Sendable {
        /// When a request that writes is answered: when its save is on disk, or at once.
        package var durability = Durability.durable
        /// The number of repetitions of a write after conflicts with other requests.
        package var retries = 100
        /// The time between two comments in a stream of events.
        package var keepAlive = Duration.seconds(15)
        /// The time after which the server ends although a client has not read its answer.
        package var gracePeriod = Duration.seconds(10)

        package init() {}
    }

    /// Opens the store. The types are its model.
    package static func open(_ store: StoreDescription) async throws -> PersistentContainer {
        try await PersistentContainer(for: Shelf.self, Item.self, store: store)
    }

    let container: PersistentContainer
    let settings: Settings

    /// Creates a server for a container, which the server closes when it ends.
    package init(container: PersistentContainer, settings: Settings = Settings()) {
        self.container = container
        self.settings = settings
    }

    /// Creates the service of the server. It ends after a signal, or after `triggerGracefulShutdown()`: it answers the requests that have
    /// begun, ends the streams of events, and closes the store.
    ///
    /// - Parameters:
    ///   - hostname: The name or address to listen on.
    ///   - port: The port to listen on; 0 for a free one.
    ///   - signals: The signals that end the service.
    ///   - onRunning: A closure that is called with the port when the server accepts connections.
    package func service(
        hostname: String, port: Int, signals: [UnixSignal] = [], onRunning: @escaping @Sendable (Int) -> Void
    ) -> ServiceGroup {
        let application = Application(
            router: router, configuration: ApplicationConfiguration(address: .hostname(hostname, port: port)),
            // Services end in the reverse order: the server first, after its last answer.
            services: [StoreService(container: container)],
            onServerRunning: { onRunning($0.localAddress?.port ?? 0) })
        var configuration = ServiceGroupConfiguration(
            services: [application], gracefulShutdownSignals: signals, logger: application.logger)
        configuration.maximumGracefulShutdownDuration = settings.gracePeriod
        return ServiceGroup(configuration: configuration)
    }

    private var router: Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: ErrorResponses())
        ItemRoutes(container: container, settings: settings).add(to: router.group("items"))
        ShelfRoutes(container: container, settings: settings).add(to: router.group("shelves"))
        router.get("events", use: EventRoute(container: container, settings: settings).open)
        router.get("status") { _, _ in
            // The age is zero if the state is only that of contexts that have read nothing. They hold no snapshot.
            let held = try container.coordinator.snapshots().filter { $0.age != .zero }
            return StatusMessage(snapshots: held.map(\.description))
        }
        return router
    }
}

/// Closes the store when the server has ended, or could not start. Deferred saves are then on disk.
private struct StoreService: Service {
    let container: PersistentContainer

    func run() async throws {
        // Throws if the task is cancelled, because another service has failed.
        try? await gracefulShutdown()
        try await container.close()
    }
}
