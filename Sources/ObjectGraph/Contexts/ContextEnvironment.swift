internal import Platform
import StoreInterface
import StoreModel

/// The surroundings of a context, fixed when it is created.
struct ContextEnvironment {
    /// The configuration, without the state that the context read first: keeping it would prevent reuse of that state's pages for the
    /// lifetime of the context.
    let configuration: ContextConfiguration
    // Copies of values that every access to an object needs, so that it does not go through the coordinator.
    let model: Model
    let capabilities: ModelCapabilities
    let storeIdentity: StoreIdentity
    let address: ContextAddress
    /// The number of the context, unique in the process.
    let number: UInt64
    /// The context's entry in the list of owners that keep store snapshots alive.
    let lease: SnapshotLease
    /// The objects that have observers. Contexts on the main actor record reads for observers.
    let observed: ObservedObjects

    private static let counter = Atomic<UInt64>(1)

    init(_ configuration: ContextConfiguration, place: ContextAddress, state: StoreState) {
        var configuration = configuration
        configuration.baseState = nil
        self.configuration = configuration
        model = configuration.model
        capabilities = configuration.capabilities
        storeIdentity = configuration.writer.store.identity
        address = place
        observed = ObservedObjects(isOn: place.executor == nil)
        number = Self.counter.add(1, ordering: .relaxed).oldValue
        lease = configuration.writer.snapshotRegistry.add(configuration.name, state: state, place: place)
    }
}
