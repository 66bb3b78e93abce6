import Dispatch
import Logging
internal import Platform
import StoreInterface
import StoreModel

/// Coordinates the root contexts of one store: it knows the newest state, accepts saves, and notifies contexts of each other's saves.
///
/// Its methods may be called from any thread. Two coordinators on one store object share its writer, and so the newest state and
/// the order of saves. Each notifies its own contexts.
///
/// ```swift
/// let unplayed = FetchRequest<Track>(where: #Predicate { $0.playCount == 0 })
/// let result = try await container.coordinator.batchDelete(unplayed)
/// try await container.coordinator.compact()
/// ```
public final class PersistentStoreCoordinator: Sendable {
    /// The model of the store's objects.
    public let model: Model
    /// The model with the hidden entity of keyed values, if the store has it.
    let contextModel: Model
    /// The name of the coordinator in errors.
    public let name: String
    let writer: StoreWriter
    /// Makes the routes of root contexts; nil if they have none.
    private let makeRootRoute: RootRouteFactory?
    let capabilities: ModelCapabilities
    private let contexts = Mutex<[UInt64: RegisteredContext]>([:])
    /// The queue on which notifiers wait for the end of their interval.
    private let signals = DispatchQueue(label: "strata.merges")
    private let listener = Mutex<UInt64>(0)
    let closed = Atomic(false)
    /// Whether the contexts are being closed, or were. A context that is created later closes itself.
    let closesContexts = Atomic(false)
    let hasLeft = Atomic(false)
    let slowFetches = Mutex<SlowFetchLog?>(nil)
    /// The spans and metrics that the coordinator reports; nil if none are installed.
    let instruments: Instruments?
    /// Whether fetches are logged or reported, for contexts to read without a lock.
    let watchesFetches: Atomic<Bool>

    private struct RegisteredContext {
        let notifier: CoalescedNotifier
        /// The number of the root if the context is its child, which receives the root's own saves from there.
        let root: UInt64?
        let onlyFlushes: Bool
    }

    /// Creates a coordinator on a store that is already open.
    ///
    /// This allocates the first keys, which blocks, so call it off the main thread.
    public convenience init(
        model: Model, store: any ObjectStore, name: String = "coordinator", telemetry: Telemetry = .installed
    ) throws {
        try self.init(model: model, store: store, name: name, clock: SystemClock(), telemetry: telemetry)
    }

    /// - Parameters:
    ///   - rootRoute: Makes the routes of root contexts; nil if they have none.
    ///   - clock: The clock of the writer, if the store has no writer yet.
    init(
        model: Model, store: any ObjectStore, rootRoute: RootRouteFactory? = nil, name: String,
        clock: any WriterClock = SystemClock(), telemetry: Telemetry = .none
    ) throws {
        self.model = model
        self.name = name
        for message in model.inverseWarnings { Self.modelLog.warning("\(message)") }
        contextModel = model.withHiddenEntities(of: store.schema)
        makeRootRoute = rootRoute
        capabilities = ModelCapabilities(contextModel)
        instruments = Instruments(telemetry)
        watchesFetches = Atomic(instruments != nil)
        writer = try StoreWriterRegistry.writer(for: store, clock: clock)
        let number = writer.addListener { [weak self] _, source in self?.didSave(source) }
        listener.withLock { $0 = number }
    }

    private static let modelLog = Logger(label: "strata.models")

    deinit {
        writer.removeListener(listener.withLock { $0 })
        // Deferred saves must not be lost with the last coordinator. The writer's queue writes them.
        writer.flushAtRelease()
        leaveWriter(closing: false)
    }

    /// The route of a new root context; nil if it has none.
    var rootRoute: (any RequestRoute)? { makeRootRoute?(contextModel.storeSchema) }

    /// The store of the coordinator.
    package var store: any ObjectStore { writer.store }

    /// Waits until every save made so far, including deferred saves, is on disk. Includes the saves of other containers of this process
    /// on the same file.
    public func flush() async throws {
        try checkOpen()
        try await writer.flush()
        try await writer.flushOthers()
    }

    /// Waits, blocking the calling thread, until every save made so far is on disk.
    ///
    /// - Parameter reportsFailures: Whether to throw if earlier deferred saves could not be written.
    package func flushNow(reportsFailures: Bool = true) throws {
        try checkOpen()
        try writer.flushAndWait(reportsFailures: reportsFailures)
        try writer.syncCommitted()
    }

    /// Looks for saves of other processes and connections, and notifies the contexts if there are any.
    public func refresh() async throws {
        try checkOpen()
        try await writer.refresh()
    }

    /// - Parameters:
    ///   - root: The number of the context's root; nil for a root.
    ///   - onlyFlushes: Whether to notify the context of flushes, but not of saves, because it does not merge.
    func register(
        _ contextExecutor: any ContextExecutor, at place: ContextAddress, number: UInt64, root: UInt64?, onlyFlushes: Bool = false
    ) {
        let alive = contexts.withLock { contexts in
            let alive = contexts.count > 64 ? contexts.compactMapValues(\.notifier.contextExecutor) : [:]
            if contexts.count > 64 { contexts = contexts.filter { alive[$0.key] != nil } }
            let notifier = CoalescedNotifier(contextExecutor, queue: signals, clock: writer.clock, onlyAnnounces: root != nil) {
                [weak writer, weak place] in
                if place?.readsNextState.load(ordering: .relaxed) ?? false { writer?.acquireState() }
            }
            contexts[number] = RegisteredContext(notifier: notifier, root: root, onlyFlushes: onlyFlushes)
            return alive
        }
        // These may be the last references. A context that is deallocated unregisters, which takes the lock.
        withExtendedLifetime(alive) {}
    }

    func unregister(_ number: UInt64) {
        _ = contexts.withLock { $0.removeValue(forKey: number) }
    }

    /// Notifies all contexts except the one that saved, and its child.
    ///
    func didSave(_ source: SaveSource) {
        let others = contexts.withLock { contexts in
            contexts.filter { number, context in
                !source.isContext(number) && context.root.map(source.isContext) != true
                    && (source.concernsEveryContext || !context.onlyFlushes)
            }.values.map(\.notifier)
        }
        for other in others { other.storeDidChange(isFlush: source.concernsEveryContext) }
    }
}

extension PersistentStoreCoordinator: CustomStringConvertible, CustomReflectable {
    /// The names of the coordinator and the store.
    public var description: String { "\(name) of \(store.name)" }

    /// No children: the state of a coordinator is no content to print.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// The writers of this process: one per store object, as long as the writer is used.
enum StoreWriterRegistry {
    private struct Entry {
        weak var writer: StoreWriter?
        /// The number of coordinators that use the writer and are not closed.
        var users = 0
        /// Whether a coordinator of the writer was closed. The program may keep it, and with it the store.
        var wasClosed = false
        /// Whether the last user was deallocated, so that no closing of a container closes the store.
        var closesItself = false
        /// The running closing of a writer that closes itself.
        var closing: Task<Void, any Error>?
        /// Whether such a closing has failed. It is tried again.
        var closingHasFailed = false
        /// Held while the writer is made, which may wait for the disk. The lock of all writers is not held meanwhile.
        let making = Making()
        /// The number of calls that wait for the writer, or make it.
        var waiting = 0
    }

    private final class Making: Sendable {
        let turn = Mutex(())
    }

    private static let writers = Mutex<[ObjectIdentifier: Entry]>([:])

    static func writer(for store: any ObjectStore, clock: any WriterClock) throws -> StoreWriter {
        let key = ObjectIdentifier(store)
        let making = writers.withLock { writers in
            writers = writers.filter { $0.value.writer != nil || $0.value.waiting > 0 }
            writers[key, default: Entry()].waiting += 1
            return writers[key, default: Entry()].making
        }
        defer { writers.withLock { $0[key]?.waiting -= 1 } }
        return try making.turn.withLock { _ in
            if let known = try writers.withLock({ try use($0[key]?.writer, of: store, &$0) }) { return known }
            let made = try StoreWriter(store: store, clock: clock)
            made.leaseFirstKeys()
            writers.withLock { writers in
                writers[key]?.writer = made
                writers[key]?.users = 1
                // The entry may be that of an earlier writer, kept for a call that waited.
                writers[key]?.wasClosed = false
                writers[key]?.closesItself = false
                writers[key]?.closing = nil
                writers[key]?.closingHasFailed = false
            }
            return made
        }
    }

    /// Counts a user of a known writer. Returns nil if there is no such writer.
    private static func use(
        _ known: StoreWriter?, of store: any ObjectStore, _ writers: inout [ObjectIdentifier: Entry]
    ) throws -> StoreWriter? {
        guard let known, known.store === store else { return nil }
        // Closing ends the use of a second writer too. Opening waits for it a while.
        if known.isRetired {
            throw StoreError(
                .closed,
                "cannot open \(store.name): another container of this program has not finished closing it. "
                    + "If its close() has thrown, remove the reason and call it again")
        }
        writers[ObjectIdentifier(store)]?.users += 1
        writers[ObjectIdentifier(store)]?.closesItself = false
        return known
    }

    /// Removes a coordinator from its writer. Each coordinator calls this once: when it is closed, or else when it is deallocated.
    ///
    /// Closing the last coordinator retires the writer, so that an opening after its store is closed gets a new one. If the last one is
    /// deallocated and another was closed before, the writer closes itself, because the closed one keeps the store as long as it lives.
    static func leave(_ writer: StoreWriter, closing: Bool) {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard writers[key]?.writer === writer else { return }
            writers[key]?.users -= 1
            if closing { writers[key]?.wasClosed = true }
            guard writers[key]?.users == 0 else { return }
            guard closing else {
                let wasClosed = writers[key]?.wasClosed ?? false
                writers[key]?.closesItself = wasClosed
                return
            }
            // The entry stays until the store is closed, so that no other writer uses the store meanwhile.
            writer.retired.store(true, ordering: .releasing)
        }
        closeIfUnused(writer)
    }

    /// Begins to close a writer that closes itself, unless it is being closed.
    ///
    /// - Returns: The closing; nil if the writer is used, or closed, or if the closing of a container closes it.
    @discardableResult
    static func closeIfUnused(_ writer: StoreWriter) -> Task<Void, any Error>? {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard let entry = writers[key], entry.writer === writer, entry.closesItself else { return nil }
            if let running = entry.closing { return running }
            let made = Task { try await writer.closeUnused() }
            writers[key]?.closing = made
            return made
        }
    }

    /// Retires a writer that closes itself. If a coordinator has come to use it meanwhile, ends the closing and returns false.
    static func retireIfUnused(_ writer: StoreWriter) -> Bool {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard let entry = writers[key], entry.writer === writer else { return false }
            // In one step with the question: when that coordinator is deallocated, another closing begins.
            guard entry.closesItself else {
                writers[key]?.closing = nil
                return false
            }
            writer.retired.store(true, ordering: .releasing)
            return true
        }
    }

    /// Forgets the closing of a writer that closes itself, because it has failed. ``closeIfUnused(_:)`` begins another one.
    ///
    /// - Returns: Whether no closing of the writer has failed before.
    static func closingFailed(_ writer: StoreWriter) -> Bool {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard let entry = writers[key], entry.writer === writer else { return true }
            writers[key]?.closing = nil
            writers[key]?.closingHasFailed = true
            return !entry.closingHasFailed
        }
    }

    /// Returns whether a writer was made here and its store is not closed.
    static func isKnown(_ writer: StoreWriter) -> Bool {
        writers.withLock { $0[ObjectIdentifier(writer.store)]?.writer === writer }
    }

    /// Forgets a retired writer, whose store is closed.
    static func forget(_ writer: StoreWriter) {
        writers.withLock { writers in
            let key = ObjectIdentifier(writer.store)
            guard writers[key]?.writer === writer else { return }
            // A call that waits makes the next writer.
            if writers[key]?.waiting ?? 0 > 0 { writers[key]?.writer = nil } else { writers[key] = nil }
        }
    }
}
