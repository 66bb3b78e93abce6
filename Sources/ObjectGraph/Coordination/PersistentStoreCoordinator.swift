import Dispatch
internal import Platform
import StoreInterface

/// Stands between root contexts and one store: knows the newest state, takes saves, tells contexts of each other's.
///
/// `Sendable`; its calls may come from anywhere. Two coordinators on one store object share its writer, and with it the newest state
/// and the order of saves; each tells its own contexts.
public final class PersistentStoreCoordinator: Sendable {
    public let model: Model
    public let name: String
    let writer: StoreWriter
    let routing: Routing
    let traits: ModelCapabilities
    private let contexts = Mutex<[UInt64: CoalescedNotifier]>([:])
    /// Where signals wait for the end of their interval.
    private let signals = DispatchQueue(label: "strata.merges")
    private let listener = Mutex<UInt64>(0)
    let closed = Atomic(false)

    /// Opens nothing: `store` is open. Blocking work (leasing the first keys) is done here, so call it off the main thread.
    public convenience init(
        model: Model, store: any ObjectStore, routing: Routing = .snapshot, name: String = "coordinator"
    ) throws {
        try self.init(model: model, store: store, routing: routing, name: name, clock: SystemClock())
    }

    /// - Parameter clock: of the writer, if no coordinator has made one for the store yet.
    init(model: Model, store: any ObjectStore, routing: Routing, name: String, clock: any WriterClock) throws {
        self.model = model
        self.name = name
        self.routing = routing
        traits = ModelCapabilities(model)
        writer = try StoreWriterRegistry.writer(for: store, clock: clock)
        let number = writer.addListener { [weak self] _, origin in self?.didSave(origin) }
        listener.withLock { $0 = number }
    }

    deinit {
        writer.removeListener(listener.withLock { $0 })
        // What is saved must not be lost with the last coordinator: the writer's queue finishes it.
        writer.flushAtRelease()
        if !isClosed { StoreWriterRegistry.leave(writer, closing: false) }
    }

    public var store: any ObjectStore { writer.store }

    /// Returns when every save made so far, deferred ones too, is on disk.
    public func flush() async throws {
        try checkOpen()
        try await writer.flush()
    }

    /// Looks whether another process, or another connection, has saved, and tells the contexts if so.
    public func refresh() async throws {
        try checkOpen()
        try await writer.refresh()
    }

    func register(_ host: any ContextExecutor, number: UInt64) {
        contexts.withLock { contexts in
            if contexts.count > 64 { contexts = contexts.filter { $0.value.isAlive } }
            contexts[number] = CoalescedNotifier(host, queue: signals, clock: writer.clock)
        }
    }

    func unregister(_ number: UInt64) {
        _ = contexts.withLock { $0.removeValue(forKey: number) }
    }

    /// Tells the contexts but the one that saved; 0 for none.
    func didSave(_ origin: UInt64) {
        let others = contexts.withLock { contexts in
            contexts.compactMap { $0.key == origin ? nil : $0.value }
        }
        for other in others { other.storeDidChange() }
    }
}

/// One writer a store object, for as long as somebody uses it.
enum StoreWriterRegistry {
    private struct Entry {
        weak var writer: StoreWriter?
        /// Coordinators that use it and are not closed.
        var users = 1
    }

    private static let writers = Mutex<[ObjectIdentifier: Entry]>([:])

    static func writer(for store: any ObjectStore, clock: any WriterClock) throws -> StoreWriter {
        try writers.withLock { writers in
            writers = writers.filter { $0.value.writer != nil }
            if let known = writers[ObjectIdentifier(store)]?.writer, known.store === store, !known.isRetired {
                writers[ObjectIdentifier(store)]?.users += 1
                return known
            }
            let made = try StoreWriter(store: store, clock: clock)
            made.leaseFirstKeys()
            writers[ObjectIdentifier(store)] = Entry(writer: made)
            return made
        }
    }

    /// Each coordinator calls this once: when it is closed, or else when it is deallocated.
    /// Closing the last coordinator retires the writer: a later opening gets a new one.
    static func leave(_ writer: StoreWriter, closing: Bool) {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard writers[key]?.writer === writer else { return }
            writers[key]?.users -= 1
            guard closing, writers[key]?.users == 0 else { return }
            writer.retired.store(true, ordering: .releasing)
            writers[key] = nil
        }
    }
}
