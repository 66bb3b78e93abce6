internal import Platform
import StoreInterface
import StoreModel

/// The surroundings of a context, fixed when it is created.
struct ContextEnvironment {
    let configuration: ContextConfiguration
    // Copies of values that every access to an object needs, so that it does not go through the coordinator.
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
        self.configuration = configuration
        capabilities = configuration.capabilities
        storeIdentity = configuration.writer.store.identity
        address = place
        observed = ObservedObjects(isOn: place.executor == nil)
        number = Self.counter.add(1, ordering: .relaxed).oldValue
        lease = configuration.writer.snapshotRegistry.add(configuration.name, state: state, place: place)
    }

    var model: Model { capabilities.model }
}
