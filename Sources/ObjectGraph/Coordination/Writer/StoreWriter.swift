import Dispatch
import Logging
internal import Platform
import StoreInterface

/// The one writer of a store: takes saves in their order, checks them, holds deferred ones back, writes groups in one
/// transaction, and publishes the new state.
///
/// One per store object and process, shared by every coordinator on it. It has threads of its own (two serial queues), so that no
/// context's executor and no cooperative thread ever waits for the disk: one takes saves, the other writes, so that deferred saves
/// are taken while older ones are written.
final class StoreWriter: Sendable {
    let store: any ObjectStore
    let keys: KeyAllocator
    let entityNames: [String]
    /// By entity.
    let valueRules: [ValueRules]
    /// Takes saves and publishes states, one after another.
    let queue: DispatchQueue
    /// Every transaction of the store runs on it.
    let disk: DispatchQueue
    let shared: Mutex<Shared>
    let clock: any WriterClock
    let externalCommits = ExternalCommitMonitor()
    let pins = SnapshotRegistry()
    let migration = Mutex(Migration())
    /// Snapshots of states that nobody has read yet.
    let untaken: Mutex<[WeakSnapshot]>
    /// A look whether the writer's state can let go of its snapshot is under way.
    let isResting = Atomic(false)
    /// Set when the last coordinator was closed; the registry then returns the writer no more.
    let retired = Atomic(false)
    /// Closures that end the sequences of news, by the number of the listener. Called when the store is closed.
    let endings = Mutex<[UInt64: @Sendable () -> Void]>([:])
    /// Held while saves are pending. Changed on the queue only.
    let claim = Mutex<(any SaveClaim)?>(nil)
    /// Held from the first deferred save on.
    let claimRequests = Mutex<(any StoreWatch)?>(nil)

    struct Shared {
        var state: StoreState
        /// The deferred saves in ``state``, oldest first: their lines in the history.
        var pending: [PendingSave] = []
        /// The generations of saves that contexts may still know as deferred ones.
        var numbers = CommittedNumbers()
        /// Deferred saves that were left out, until a flush reports them.
        var failures: [DeferredSaveFailure] = []
        /// Why the last flush has left saves pending; nil if it has not.
        var flushError: (any Error)?
        /// Deferred saves that are being written.
        var flush: Flush?
        /// A group of saves is being written, which other connections' saves do not come before any more.
        var isCommitting = false
        /// Requests that the queue has not begun with.
        var waiting: [SaveJob] = []
        var recent = ChangeFeed(limit: StoreWriter.recentLimit)
        /// When the oldest deferred save must be on disk.
        var deadline: DispatchTime?
        var listeners: [UInt64: Listener] = [:]
        var nextListener: UInt64 = 0
    }

    /// Told on the writer's queue of each save, with the state after it and the context that made it; 0 stands for all saves of other
    /// processes that were found at once.
    typealias Listener = @Sendable (StoreState, _ origin: UInt64) -> Void

    /// What the queue works on.
    struct SaveJob: Sendable {
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

    init(store: any ObjectStore, clock: any WriterClock = SystemClock()) throws {
        self.store = store
        self.clock = clock
        keys = KeyAllocator(entityCount: store.schema.entities.count)
        entityNames = store.schema.entities.map(\.name)
        valueRules = store.schema.entities.map(ValueRules.init)
        queue = DispatchQueue(label: "strata.writer")
        disk = DispatchQueue(label: "strata.disk")
        untaken = Mutex([])
        let base = try store.snapshot()
        shared = Mutex(Shared(state: StoreState(base: base, sequence: .zero)))
        let resting = lazySnapshot(after: base.generation)
        shared.withLock { $0.state = $0.state.reading(resting) }
        startMigration()
    }

    var state: StoreState { shared.withLock { $0.state } }

    /// On the queue only: another snapshot of the same saves.
    func replaceState(_ state: StoreState) {
        shared.withLock { shared in
            // A state that was published meanwhile is newer.
            if shared.state.sequence == state.sequence { shared.state = state }
        }
    }

    // MARK: Asking

    /// Queues a save; `completion` runs on the writer's queue.
    func submit(
        _ request: SaveRequest, origin: UInt64,
        completion: @escaping @Sendable (Result<SaveOutcome, any Error>) -> Void
    ) {
        // At once: a deferred save would be refused only when it is written.
        if isRetired { return queue.async { [store] in completion(.failure(StoreError.closed(store.name))) } }
        if store.isReadOnly { return queue.async { [store] in completion(.failure(StoreError.openReadOnly(store.name))) } }
        enqueue(SaveJob(request: request, origin: origin, completion: completion))
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
            enqueue(SaveJob(request: nil, origin: 0, completion: { continuation.resume(with: $0) }))
        }
    }

    /// Starts writing what is deferred; the queue keeps the writer alive until it is done.
    func flushAtRelease() {
        guard state.pendingSaves > 0 else { return }
        enqueue(SaveJob(request: nil, origin: .max, completion: { _ in }))
    }

    /// Runs a transaction that is no save of objects, after those under way. Blocking: for the writer's queues.
    func transaction<R>(_ body: (any StoreTransaction) throws -> R) throws -> R {
        try disk.sync { try store.write(.durable, body) }
    }

    /// Looks for saves of other processes, and publishes a newer state if there are any.
    func refresh() async throws {
        try await onQueue { writer in
            // Its own commit is not another's.
            writer.finishFlush()
            try writer.adoptExternalSaves()
        }
    }

    /// Runs `body` on the writer's queue, between groups of saves.
    func onQueue<T: Sendable>(_ body: @escaping @Sendable (StoreWriter) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body(self) }) }
        }
    }

    /// The same, without waiting. Calls that come before the look begins share it.
    func lookForExternalCommits() {
        guard !externalCommits.isLooking.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async {
            self.externalCommits.isLooking.store(false, ordering: .releasing)
            // A running flush finds out itself; after it there may be more.
            if self.shared.withLock({ $0.flush != nil }) {
                return self.externalCommits.isPostponed.store(true, ordering: .relaxed)
            }
            do { try self.adoptExternalSaves() } catch {
                Self.log.warning("looking for saves of other connections failed: \(error)")
            }
        }
    }

    func enqueue(_ job: SaveJob) {
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
                guard disk.sync(execute: { refillKeys() }) else { return KeyAllocator.unleased() }
            }
        }
    }

    /// Leases the first keys of every entity in one transaction, so that the first insert does not wait for the disk. Called once, when a
    /// store is opened; a store that cannot be written is opened all the same. Blocking.
    func leaseFirstKeys() { _ = disk.sync { refillKeys(isFirst: true) } }

    /// Whether keys were leased where they are wanted.
    @discardableResult
    private func refillKeys(isFirst: Bool = false) -> Bool {
        // Objects may be inserted all the same, by a child or for a preview; no save takes them.
        if store.isReadOnly || isRetired { return false }
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
                let shared = isFirst ? try transaction.allocateFreeKeys($0.entity) : []
                return ($0.entity, shared, try transaction.allocateKeys($0.entity, pages: $0.pages))
            }
        }
        for (entity, shared, range) in leases {
            keys.add(shared: shared, entity)
            keys.add(range, entity)
        }
    }

    /// Nobody inserts any more: what was leased and not given out goes back to the store (S155), on the disk's queue.
    deinit {
        guard let rests = keys.drain() else { return }
        disk.async { [store] in Self.giveBack(rests, to: store) }
    }

    /// Writes unused keys back to the store, by entity. On the disk's queue.
    static func giveBack(_ rests: [[Range<ObjectKey>]], to store: any ObjectStore) {
        do {
            try store.write(.durable) { transaction in
                for (entity, rest) in rests.enumerated() where !rest.isEmpty { try transaction.giveBackKeys(rest, entity) }
            }
        } catch {
            // Only key numbers are lost. Often the file was deleted before.
            log.debug("giving back keys failed, so some pages stay sparse: \(error)")
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
        _ = endings.withLock { $0.removeValue(forKey: number) }
    }

    /// The saves after one state up to another, oldest first; nil if they are no longer known.
    func changes(after old: StoreState, through new: StoreState) -> [ChangeSet]? {
        guard old.sequence <= new.sequence else { return nil }
        let (steps, committed) = shared.withLock { shared in
            (
                shared.recent.steps(after: old.sequence, through: new.sequence),
                old.pendingSaves == 0 ? old.committed : shared.numbers.generation(of: old.sequence)
            )
        }
        guard let steps else {
            guard let committed, new.pendingSaves == 0 else { return nil }
            return stored(after: committed, through: new.committed)
        }
        var changes: [ChangeSet] = []
        for step in steps {
            switch step {
            case .save(let save): changes.append(save)
            case .external(let after, let through):
                guard let external = stored(after: after, through: through) else { return nil }
                changes += external
            case .unknown: return nil
            }
        }
        return changes
    }

    private func stored(after old: Generation, through new: Generation) -> [ChangeSet]? {
        guard new > old, let changes = try? store.history(after: old, limit: Int(clamping: new - old)) else { return nil }
        let wanted = changes.filter { $0.generation <= new }
        return wanted.isEmpty ? nil : wanted
    }
}
