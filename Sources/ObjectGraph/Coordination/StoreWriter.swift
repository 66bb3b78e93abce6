import Dispatch
import Logging
import StoreInterface
import Locking

/// The one writer of a store: takes saves in their order, checks them, holds deferred ones back, writes groups in one
/// transaction, and publishes the new state.
///
/// One per store object and process, shared by every coordinator on it. It has threads of its own (two serial queues), so that no
/// context's executor and no cooperative thread ever waits for the disk: one takes saves, the other writes, so that deferred saves
/// are taken while older ones are written.
final class StoreWriter: Sendable {
    let store: any ObjectStore
    let keys: KeyPool
    let entityNames: [String]
    /// Takes saves and publishes states, one after another.
    let queue: DispatchQueue
    /// Every transaction of the store runs on it.
    let disk: DispatchQueue
    let shared: Mutex<Shared>
    let foreign = ForeignSaves()
    let pins = SnapshotPins()
    let migration = Mutex(Migration())

    struct Shared {
        var state: StoreState
        /// What the deferred saves in ``state`` changed, oldest first: their lines in the history, one a generation.
        var unwritten: [ChangeSet] = []
        /// Deferred saves that are being written.
        var flush: Flush?
        /// Requests that the queue has not begun with.
        var waiting: [Job] = []
        /// The newest change sets, oldest first.
        var recent: [ChangeSet] = []
        /// Saves up to this one may be known under another number: deferred saves that another process overtook were renumbered.
        var renumberedThrough: Generation?
        /// When the oldest deferred save must be on disk.
        var deadline: DispatchTime?
        var listeners: [UInt64: Listener] = [:]
        var nextListener: UInt64 = 0
    }

    /// Told on the writer's queue of each save, with the state after it and the context that made it; 0 stands for all saves of other
    /// processes that were found at once.
    typealias Listener = @Sendable (StoreState, _ origin: UInt64) -> Void

    /// What the queue works on.
    struct Job: Sendable {
        /// nil: a flush.
        var request: SaveRequest?
        /// The context that asked, so that it is not told of its own save.
        var origin: UInt64
        var completion: @Sendable (Result<SaveOutcome, any Error>) -> Void
    }

    /// How many change sets are kept in memory for contexts that catch up; older ones come from the store's history.
    static let recentLimit = 1024
    /// Deferred saves are written early when they have this many rows.
    static let deferredRows = 1 << 15
    /// Saves wait for the disk when so many rows are held in memory.
    static let deferredRowsLimit = 1 << 17

    static let log = Logger(label: "strata.writer")

    init(store: any ObjectStore) throws {
        self.store = store
        keys = KeyPool(entityCount: store.schema.entities.count)
        entityNames = store.schema.entities.map(\.name)
        queue = DispatchQueue(label: "strata.writer")
        disk = DispatchQueue(label: "strata.disk")
        let base = try store.snapshot()
        shared = Mutex(Shared(state: StoreState(base: base)))
        pins.note(base)
        startMigration()
    }

    var state: StoreState { shared.withLock { $0.state } }

    /// On the queue only: another snapshot of the same saves.
    func replaceState(_ state: StoreState) {
        shared.withLock { $0.state = state }
        pins.note(state.base)
    }

    // MARK: Asking

    /// Queues a save; `completion` runs on the writer's queue.
    func submit(
        _ request: SaveRequest, origin: UInt64,
        completion: @escaping @Sendable (Result<SaveOutcome, any Error>) -> Void
    ) {
        enqueue(Job(request: request, origin: origin, completion: completion))
    }

    /// Saves and waits: the classical way, kept for the routing `ancestors`.
    func submitAndWait(_ request: SaveRequest, origin: UInt64) throws -> SaveOutcome {
        let box = Mutex<Result<SaveOutcome, any Error>?>(nil)
        submit(request, origin: origin) { result in box.withLock { $0 = result } }
        queue.sync {}
        guard let result = box.withLock({ $0 }) else {
            throw StoreError(.internalInconsistency, "the writer did not answer a save; report this as a bug")
        }
        return try result.get()
    }

    /// Returns when all that was saved before is on disk.
    func flush() async throws {
        _ = try await withCheckedThrowingContinuation { continuation in
            enqueue(Job(request: nil, origin: 0, completion: { continuation.resume(with: $0) }))
        }
    }

    /// Starts writing what is deferred; the queue keeps the writer alive until it is done.
    func flushAtRelease() {
        guard !state.deferred.isEmpty else { return }
        enqueue(Job(request: nil, origin: 0, completion: { _ in }))
    }

    /// Runs a transaction that is no save of objects, after those under way. Blocking: for the writer's queues.
    func transaction<R>(_ body: (any StoreTransaction) throws -> R) throws -> R {
        try disk.sync { try store.write(.durable, body) }
    }

    /// Looks for saves of other processes, and publishes a newer state if there are any.
    func refresh() async throws { try await onQueue { try $0.adoptForeignSaves() } }

    /// Runs `body` on the writer's queue, between groups of saves.
    func onQueue<T: Sendable>(_ body: @escaping @Sendable (StoreWriter) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body(self) }) }
        }
    }

    /// The same, without waiting. Calls that come before the look begins share it.
    func lookForForeignSaves() {
        guard !foreign.isLooking.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async {
            self.foreign.isLooking.store(false, ordering: .releasing)
            // A running flush finds out itself; after it there may be more.
            if self.shared.withLock({ $0.flush != nil }) { return self.foreign.isPostponed.store(true, ordering: .relaxed) }
            do { try self.adoptForeignSaves() } catch {
                Self.log.warning("looking for saves of other connections failed: \(error)")
            }
        }
    }

    private func adoptForeignSaves() throws {
        // Its own commit is not another's.
        finishFlush()
        let start = state
        let base = try store.snapshot()
        guard base.generation > start.base.generation else { return }
        let moved = rebased(start, on: base)
        let listeners = shared.withLock { shared in
            shared.state = moved
            shared.unwritten = moved.renumbered(shared.unwritten)
            shared.forgetNumbers(of: start)
            return Array(shared.listeners.values)
        }
        pins.note(base)
        for listener in listeners { listener(moved, 0) }
    }

    private func enqueue(_ job: Job) {
        let isFirst = shared.withLock { shared in
            shared.waiting.append(job)
            return shared.waiting.count == 1
        }
        if isFirst { queue.async { self.drain() } }
    }

    // MARK: Keys

    /// Up to a page of fresh keys. Waits for the disk only when the pool is empty, which a steady user never meets. Where nothing can
    /// be leased (the disk is full, the file was migrated elsewhere), they are keys that nobody leases: inserting goes on, and the save
    /// tells the error.
    func takeKeys(_ entity: Int) -> Range<ObjectKey> {
        while true {
            switch keys.take(entity) {
            case .keys(let range): return range
            case .keysLow(let range):
                disk.async { self.refillKeys() }
                return range
            case .empty:
                keys.markWanted(entity)
                guard disk.sync(execute: { refillKeys() }) else { return KeyPool.unleased() }
            }
        }
    }

    /// Leases the first keys of every entity in one transaction, so that the first insert does not wait for the disk. Called once, when a
    /// store is opened; a store that cannot be written is opened all the same. Blocking.
    func leaseFirstKeys() { _ = disk.sync { refillKeys(isFirst: true) } }

    /// Whether keys were leased where they are wanted.
    @discardableResult
    private func refillKeys(isFirst: Bool = false) -> Bool {
        do {
            try leaseWanted(isFirst: isFirst)
            return true
        } catch {
            keys.refillFailed()
            Self.log.warning("leasing keys failed: \(error)")
            return false
        }
    }

    private func leaseWanted(isFirst: Bool) throws {
        let wanted = keys.wanted()
        guard !wanted.isEmpty else { return }
        let leases = try store.write(.durable) { transaction in
            try wanted.map {
                // First the shared page, so that it comes before the whole ones.
                let shared = isFirst ? try transaction.leaseFreeKeys($0.entity) : []
                return ($0.entity, shared, try transaction.leaseKeys($0.entity, pages: $0.pages))
            }
        }
        for (entity, shared, range) in leases {
            keys.add(shared: shared, entity)
            keys.add(range, entity)
        }
    }

    /// Nobody inserts any more: what was leased and not given out goes back to the store (S155), on the disk's queue.
    deinit {
        let rests = keys.drain()
        guard rests.contains(where: { !$0.isEmpty }) else { return }
        disk.async { [store] in
            do {
                try store.write(.durable) { transaction in
                    for (entity, rest) in rests.enumerated() where !rest.isEmpty { try transaction.giveBackKeys(rest, entity) }
                }
            } catch {
                Self.log.warning("giving back keys failed, so some pages stay sparse: \(error)")
            }
        }
    }

    // MARK: Listening

    func addListener(_ listener: @escaping Listener) -> UInt64 {
        shared.withLock { shared in
            shared.nextListener += 1
            shared.listeners[shared.nextListener] = listener
            return shared.nextListener
        }
    }

    func removeListener(_ number: UInt64) {
        _ = shared.withLock { $0.listeners.removeValue(forKey: number) }
    }

    /// The saves after one generation up to another, oldest first; nil when they are no longer known.
    func changes(after old: Generation, through new: Generation) -> [ChangeSet]? {
        if old == new { return [] }
        let (doubtful, recent) = shared.withLock { shared -> (Generation?, [ChangeSet]?) in
            (shared.renumberedThrough, shared.changes(after: old, through: new))
        }
        if old > new || doubtful.map({ old <= $0 }) == true { return nil }
        if let recent, UInt64(recent.count) == new - old { return recent }
        guard let stored = try? store.changes(after: old) else { return nil }
        let wanted = stored.filter { $0.generation <= new }
        return wanted.isEmpty ? nil : wanted
    }
}

extension StoreWriter.Shared {
    /// After saves of another process came between the state and its deferred saves.
    mutating func forgetNumbers(of state: StoreState) {
        guard !state.deferred.isEmpty else { return }
        recent.removeAll()
        renumberedThrough = state.generation
    }

    /// The recent change sets after one generation up to another; nil when they do not reach back that far.
    func changes(after old: Generation, through new: Generation) -> [ChangeSet]? {
        guard let first = recent.first, first.generation <= old + 1 else { return nil }
        return recent.filter { $0.generation > old && $0.generation <= new }
    }
}
