import Dispatch
import Logging
internal import Platform
import StoreInterface
import StoreModel

/// The writer of a store. It accepts saves in order, checks them, defers them, writes groups in one transaction, and publishes the new
/// state.
///
/// There is one writer per store object and process, shared by every coordinator on it. It has two serial queues, so that no
/// context's executor and no cooperative thread waits for the disk. One queue accepts saves and the other writes, so that deferred
/// saves are accepted while older saves are written.
final class StoreWriter: Sendable {
    let store: any ObjectStore
    let capabilities: StoreCapabilities
    let keys: KeyAllocator
    /// The value rules of each entity.
    let valueRules: [ValueRules]
    /// The derived columns, which each save keeps; nil if there are none.
    let derived: DerivedColumns?
    /// The queue that accepts saves and publishes states, one after another.
    let queue: DispatchQueue
    /// The queue on which every transaction of the store runs.
    let disk: DispatchQueue
    let shared: Mutex<Shared>
    let clock: any WriterClock
    let externalCommits = ExternalCommitMonitor()
    let snapshotRegistry = SnapshotRegistry()
    let migration = Mutex(Migration())
    /// Set when the last coordinator was closed. From then on the registry no longer returns the writer.
    let retired = Atomic(false)
    let claim = HeldClaim()
    let suspension = SaveSuspension()

    struct Shared {
        var state: StoreState
        /// The saves in the file that are not on disk, of all writers of this process on the file.
        let unsynced: UnsyncedCommits
        /// The deferred saves in ``state``.
        var deferred = DeferredSaves()
        /// The generations of saves that contexts may have read while the saves were deferred.
        var numbers = CommittedNumbers()
        /// The durable group that is being committed, while deferred saves are accepted over it.
        var committing: CommittingGroup?
        /// The offer of a group that is being written; nil if no group will be offered.
        var offer: GroupOffer?
        /// The jobs that wait for a sync beside the writer's queue.
        var syncs = SeparateSyncs()
        /// Durable groups are offered, or synced separately, until this time. Each save that a thread waits for, or announces, sets it
        /// again.
        var expectsSaversUntil: DispatchTime?
        /// Whether a group was ever offered to threads that save over it. If it is not committed, its rows may be saved again.
        var hasOffered = false
        /// Whether a group of saves is being written. Saves of other connections are published only after it.
        var isCommitting = false
        /// The newest save of the group that is being written, or that was written last.
        var newestOfGroup: Generation = 0
        /// Jobs that the queue has not started.
        var waiting: [SaveJob] = []
        var recent = ChangeFeed(limit: StoreWriter.recentLimit)
        var listeners = SaveListeners()
        /// The use of the store's cache that metrics have counted.
        var countedCacheUse = CacheUse()
        /// The writer of the other coordinator of a container that has two, each with its own connection to the file.
        weak var sibling: StoreWriter?
    }

    /// A job of the writer's queue.
    struct SaveJob: Sendable {
        /// The save; nil for a flush.
        var request: SaveRequest?
        var source: SaveSource
        /// Whether the job fails if a deferred save could not be written. True for a flush that a caller waits for.
        var reportsFailures = false
        /// Whether a thread waits for the job, and processes it itself if the queue is idle.
        var isSynchronous = false
        /// Whether deferred saves that came later were processed before the job.
        var hasYielded = false
        var completion: @Sendable (Result<SaveOutcome, any Error>) -> Void
    }

    /// The number of change sets kept in memory for contexts that catch up. Older change sets are read from the store's history.
    static let recentLimit = 1024
    /// The number of rows in memory at which deferred saves are written early.
    static let deferredRows = 1 << 15
    /// The number of rows in memory at which saves wait for the disk.
    static let deferredRowsLimit = 1 << 17
    /// The number of lost saves that the log lists one by one.
    static let loggedSaves = 20

    static let log = Logger(label: "strata.writer")

    init(store: any ObjectStore, clock: any WriterClock = SystemClock()) throws {
        self.store = store
        capabilities = store.capabilities
        self.clock = clock
        keys = KeyAllocator(entityCount: store.schema.entities.count)
        valueRules = store.schema.entities.map(ValueRules.init)
        derived = DerivedColumns(store.schema)
        queue = DispatchQueue(label: "strata.writer")
        disk = DispatchQueue(label: "strata.disk")
        let base = try store.snapshot()
        // Not zero, which is the sequence of the states of other writers: see `Snapshot.state(for:)`.
        shared = Mutex(Shared(state: StoreState(base: base, sequence: SaveSequence.zero.next), unsynced: .shared(by: store)))
        let resting = lazySnapshot(after: base.generation)
        shared.withLock { $0.state = $0.state.reading(resting) }
        startMigration()
    }

    var state: StoreState { shared.withLock { $0.state } }

    var unsynced: UnsyncedCommits { shared.withLock { $0.unsynced } }

    /// Replaces the state by another snapshot of the same saves. Runs on the queue.
    func replaceState(_ state: StoreState) {
        shared.withLock { shared in
            // A state that was published in the meantime is newer and stays.
            if shared.state.sequence == state.sequence { shared.state = state }
        }
    }

    // MARK: Requests

    /// Enqueues a save. `completion` runs on the writer's queue.
    func submit(
        _ request: SaveRequest, from source: SaveSource,
        completion: @escaping @Sendable (Result<SaveOutcome, any Error>) -> Void
    ) {
        var completion = completion
        if let trace = request.trace {
            completion = { [completion] result in
                trace.end(result, self)
                completion(result)
            }
        }
        if let refusal { return queue.async { [completion] in completion(.failure(refusal)) } }
        enqueue(SaveJob(request: request, source: source, completion: completion))
    }

    /// The error of every save now; nil if saves are accepted. A deferred save would otherwise be refused only when it is written.
    var refusal: StoreError? {
        if isRetired { return StoreError.closed(store.name) }
        return store.isReadOnly ? StoreError.openReadOnly(store.name) : nil
    }

    /// Waits until all earlier saves are on disk.
    func flush() async throws {
        _ = try await withCompletion { enqueue(SaveJob(request: nil, source: .flush, reportsFailures: true, completion: $0)) }
    }

    /// Starts writing the deferred saves, or syncing those that are in the file. The queue retains the writer until they are on disk.
    func flushAtRelease() {
        guard shared.withLock({ $0.deferred.isOwed }) || unsynced.isOwed(by: self) else { return }
        enqueue(
            SaveJob(request: nil, source: .flush) { [self] result in
                // Saves in memory are tried again by the flush that has failed.
                guard !capabilities.contains(.layeredDeferral), case .failure(let error) = result,
                    (error as? StoreError)?.code != .closed
                else { return }
                tryAgain(after: error)
            })
    }

    /// Runs a transaction that is not a save of objects, after running transactions. Blocks; call it on the writer's queues.
    func transaction<R>(_ body: (any StoreTransaction) throws -> R) throws -> R {
        try disk.sync { try store.write(.durable, body) }
    }

    /// Looks for saves of other processes, and publishes a newer state if there are any.
    func refresh() async throws {
        try await onQueue { writer in
            // Finish the running flush, so that its commit does not count as one of another process.
            writer.finishFlush()
            try writer.adoptExternalSaves()
        }
    }

    /// Runs `body` on the writer's queue, between groups of saves.
    func onQueue<T: Sendable>(_ body: @escaping @Sendable (StoreWriter) throws -> T) async throws -> T {
        try await withCompletion { completion in queue.async { completion(Result { try body(self) }) } }
    }

    /// Looks for saves of other processes without waiting. Calls made before the check starts share it.
    func lookForExternalCommits() {
        guard !externalCommits.isLooking.exchange(true, ordering: .acquiringAndReleasing) else { return }
        queue.async {
            self.externalCommits.isLooking.store(false, ordering: .releasing)
            // Resuming looks.
            if self.suspension.isSuspended { return }
            // A running flush detects other commits itself. Check for later commits after it.
            if self.shared.withLock({ $0.deferred.isFlushing }) {
                return self.externalCommits.isPostponed.store(true, ordering: .relaxed)
            }
            do { try self.adoptExternalSaves() } catch {
                Self.log.warning("looking for saves of other connections failed: \(error)")
            }
        }
    }

    func enqueue(_ job: SaveJob) {
        do { if try add(job) { queue.async { self.drain() } } } catch {
            queue.async { job.completion(.failure(error)) }
        }
    }

    /// Adds a job for the queue. Returns whether no other one waits.
    ///
    /// - Throws: `StoreError` `.closed` for a save after the last coordinator was closed.
    func add(_ job: SaveJob) throws -> Bool {
        try shared.withLock { shared in
            // Under the lock: closing processes the jobs that it finds, and a save that came later would be lost.
            if job.request != nil, isRetired { throw StoreError.closed(store.name) }
            shared.waiting.append(job)
            return shared.waiting.count == 1
        }
    }

    // MARK: Keys

    /// Returns up to one page of unused keys. Waits for the disk only if the allocator is empty, which does not happen at a steady
    /// rate.
    ///
    /// If no keys can be allocated (the disk is full, or another process migrated the file), this returns random keys outside all
    /// allocations. Inserting then continues, and the save reports the error.
    func takeKeys(_ entity: EntityIndex) -> Range<ObjectKey> {
        while true {
            switch keys.take(entity) {
            case .keys(let range): return range
            case .keysLow(let range):
                // A refill opens the file. While the store is suspended, only an insert that needs keys does so.
                disk.async { if self.suspension.isSuspended { self.keys.refillFailed() } else { self.refillKeys() } }
                return range
            case .empty:
                keys.markWanted(entity)
                guard disk.sync(execute: { refillKeys() }) else { return KeyAllocator.unleased() }
            }
        }
    }

    /// Allocates the first keys of every entity in one transaction, so that the first insert does not wait for the disk. Blocks.
    ///
    /// Called once, when a store is opened. A store that cannot be written is opened nevertheless.
    func leaseFirstKeys() { _ = disk.sync { refillKeys(isFirst: true) } }

    /// Allocates keys for the entities that need them. Returns whether that succeeded.
    @discardableResult
    private func refillKeys(isFirst: Bool = false) -> Bool {
        // Objects may still be inserted, by a child or for a preview, but they cannot be saved.
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
                // First the shared page, so that it comes before the whole pages.
                let shared = isFirst ? try transaction.allocateFreeKeys($0.entity) : []
                return ($0.entity, shared, try transaction.allocateKeys($0.entity, pages: $0.pages))
            }
        }
        for (entity, shared, range) in leases {
            keys.add(shared: shared, entity)
            keys.add(range, entity)
        }
    }

    /// Logs saves that are lost, and returns allocated but unused keys to the store (S155), on the disk's queue.
    deinit {
        logLostSaves()
        guard let rests = keys.drain() else { return }
        disk.async { [store] in Self.giveBack(rests, to: store) }
    }

    /// Writes unused keys back to the store, by entity. Runs on the disk's queue.
    static func giveBack(_ rests: [[Range<ObjectKey>]], to store: any ObjectStore) {
        do {
            try store.write(.durable) { transaction in
                for (entity, rest) in rests.enumerated(as: EntityIndex.self) where !rest.isEmpty {
                    try transaction.giveBackKeys(rest, entity)
                }
            }
        } catch {
            // Only key numbers are lost. Often the file was deleted before.
            log.debug("giving back keys failed, so some pages stay sparse: \(error)")
        }
    }

    // MARK: Listening

    func addListener(_ listener: @escaping SaveListeners.Call) -> UInt64 {
        shared.withLock { $0.listeners.add(listener) }
    }

    func removeListener(_ number: UInt64) {
        shared.withLock { $0.listeners.remove(number) }
    }

    /// Returns the saves after one state up to another, oldest first; nil if they are no longer known.
    func changes(after old: StoreState, through new: StoreState) -> [ChangeSet]? {
        // Read the states under the lock under which they were published: the thread sanitizer sees no other hand-over between a
        // writer's queue and a task that a continuation resumes.
        let (steps, committed) = shared.withLock { shared -> ([ChangeFeed.Step]?, Generation?) in
            let steps = shared.recent.steps(after: old.sequence, through: new.sequence)
            if steps != nil { return (steps, nil) }
            if old.pendingSaves == 0 { return (nil, old.committed) }
            // The history has nothing of a save in the old state that was left out since, or withdrawn.
            if shared.recent.mayHaveUnknown(after: old.sequence) { return (nil, nil) }
            return (nil, shared.numbers.generation(of: old.sequence))
        }
        guard let steps else {
            guard let committed, new.pendingSaves == 0 else { return nil }
            return stored(after: committed, through: new.committed)
        }
        return changes(steps)
    }

    /// Returns the saves after one step up to another that other contexts made; nil if they are no longer known.
    ///
    /// - Parameter root: The number of the root context whose saves are left out.
    func changes(after old: SaveSequence, through new: SaveSequence, notBy root: UInt64) -> [ChangeSet]? {
        shared.withLock { $0.recent.steps(after: old, through: new, notBy: root) }.flatMap(changes)
    }

    private func changes(_ steps: [ChangeFeed.Step]) -> [ChangeSet]? {
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

    /// Returns the saves in the file after one generation up to another; nil if they are no longer known.
    ///
    /// Saves of the sibling come from its memory, so that the main thread does not decode them from the history.
    func stored(after old: Generation, through new: Generation) -> [ChangeSet]? {
        let sibling = shared.withLock { $0.sibling }
        if let saves = sibling?.shared.withLock({ $0.recent.saves(after: old, through: new, $0.numbers) }) { return saves }
        guard new > old, let changes = try? store.history(after: old, limit: old.distance(to: new)) else { return nil }
        let wanted = changes.filter { $0.generation <= new }
        return wanted.isEmpty ? nil : wanted
    }
}
