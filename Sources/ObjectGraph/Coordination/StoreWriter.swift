import Dispatch
import Logging
import StoreInterface
import Synchronization

/// The one writer of a store: takes saves in their order, checks them, holds deferred ones back, writes groups in one
/// transaction, and publishes the new state.
///
/// One per store object and process, shared by every coordinator on it. It has a thread of its own (a serial queue), so that no
/// context's executor and no cooperative thread ever waits for the disk.
final class StoreWriter: Sendable {
    let store: any ObjectStore
    let keys: KeyPool
    let entityNames: [String]
    let queue: DispatchQueue
    private let shared: Mutex<Shared>

    struct Shared {
        var state: StoreState
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
        /// The error of the last flush of deferred saves, until a flush succeeds.
        var flushError: (any Error)?
    }

    /// Told of each save on the writer's queue; nil changes mean that what changed is no longer known.
    typealias Listener = @Sendable (StoreState, ChangeSet?, _ origin: UInt64) -> Void

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
    /// Deferred layers are written early when there are this many, so that reading through them stays short.
    static let deferredLimit = 64

    static let log = Logger(label: "strata.writer")

    init(store: any ObjectStore) throws {
        self.store = store
        keys = KeyPool(entityCount: store.schema.entities.count)
        entityNames = store.schema.entities.map(\.name)
        queue = DispatchQueue(label: "strata.writer")
        shared = Mutex(Shared(state: StoreState(base: try store.snapshot())))
    }

    var state: StoreState { shared.withLock { $0.state } }

    /// On the queue only: another snapshot of the same saves.
    func replaceState(_ state: StoreState) { shared.withLock { $0.state = state } }

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

    /// Looks for saves of other processes, and publishes a newer state if there are any.
    func refresh() async throws { try await onQueue { try $0.adoptForeignSaves() } }

    /// Runs `body` on the writer's queue, between groups of saves.
    func onQueue<T: Sendable>(_ body: @escaping @Sendable (StoreWriter) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body(self) }) }
        }
    }

    /// The same, without waiting.
    func lookForForeignSaves() {
        queue.async {
            do { try self.adoptForeignSaves() } catch {
                Self.log.warning("looking for saves of other connections failed: \(error)")
            }
        }
    }

    private func adoptForeignSaves() throws {
        let start = state
        let base = try store.snapshot()
        guard base.generation > start.base.generation else { return }
        let moved = rebased(start, on: base)
        let listeners = shared.withLock { shared in
            shared.state = moved
            shared.forgetNumbers(of: start)
            return Array(shared.listeners.values)
        }
        tellForeign(listeners, from: start, to: moved)
    }

    /// Tells of the saves of other processes that lie between two states.
    private func tellForeign(_ listeners: [Listener], from old: StoreState, to new: StoreState) {
        let known = changes(after: old.generation, through: new.base.generation)
        for listener in listeners {
            guard let known else {
                listener(new, nil, 0)
                continue
            }
            for change in known { listener(new, change, 0) }
        }
    }

    private func enqueue(_ job: Job) {
        let isFirst = shared.withLock { shared in
            shared.waiting.append(job)
            return shared.waiting.count == 1
        }
        if isFirst { queue.async { self.drain() } }
    }

    // MARK: Keys

    /// Up to a page of fresh keys. Waits for the disk only when the pool is empty, which a steady user never meets.
    func takeKeys(_ entity: Int) throws -> Range<ObjectKey> {
        while true {
            switch keys.take(entity) {
            case .keys(let range): return range
            case .keysLow(let range):
                queue.async { self.refillKeys() }
                return range
            case .empty:
                keys.markWanted(entity)
                try queue.sync { try self.leaseWanted() }
            }
        }
    }

    /// Leases the first keys of every entity in one transaction. Called once, when a store is opened for writing.
    func leaseFirstKeys() throws { try queue.sync { try leaseWanted() } }

    private func refillKeys() {
        do { try leaseWanted() } catch {
            keys.refillFailed()
            Self.log.warning("leasing keys failed: \(error)")
        }
    }

    private func leaseWanted() throws {
        let wanted = keys.wanted()
        guard !wanted.isEmpty else { return }
        let leases = try store.write(.durable) { transaction in
            try wanted.map { ($0.entity, try transaction.leaseKeys($0.entity, pages: $0.pages)) }
        }
        for (entity, range) in leases { keys.add(range, entity) }
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

    // MARK: The queue

    private func drain() {
        let jobs = shared.withLock { shared in
            defer { shared.waiting = [] }
            return shared.waiting
        }
        guard !jobs.isEmpty else { return }
        do {
            try process(jobs)
        } catch  where jobs.count > 1 {
            // One of them, or the disk, is at fault: each alone, so that only what fails fails.
            for job in jobs {
                do { try process([job]) } catch { job.completion(.failure(error)) }
            }
        } catch {
            jobs[0].completion(.failure(error))
        }
    }

    /// Checks, writes and publishes a group. Throws when the writing failed; then nothing was published or completed.
    private func process(_ jobs: [Job]) throws {
        let start = state
        let group = Group(jobs: jobs, writer: self)
        if group.mustWrite || (start.deferred.count + jobs.count > Self.deferredLimit) {
            try store.write(group.durability) { transaction in
                let base = try currentBase(start, transaction)
                group.start = base
                try group.check(from: base)
                for layer in group.state.deferred.reversed() {
                    try transaction.apply(layer, changes: layer.record ?? layer.changeSet())
                }
            }
            group.state = StoreState(base: try store.snapshot())
            publish(group, after: start, deferred: false)
        } else {
            try group.check(from: start)
            publish(group, after: nil, deferred: !group.state.deferred.isEmpty)
        }
    }

    /// The state to check against inside a transaction: ours, or a newer one when another process or connection wrote.
    private func currentBase(_ state: StoreState, _ transaction: any StoreTransaction) throws -> StoreState {
        guard transaction.generation != state.base.generation else { return state }
        return rebased(state, on: try store.snapshot())
    }

    private func rebased(_ state: StoreState, on base: any StoreSnapshot) -> StoreState {
        var moved = StoreState(base: base)
        for layer in state.deferred.reversed() {
            moved = moved.adding(layer.restamped(moved.generation + 1, schema: store.schema))
        }
        return moved
    }

    /// - Parameter old: the state before the group, when a transaction may have found a newer one.
    private func publish(_ group: Group, after old: StoreState?, deferred: Bool) {
        let (listeners, wake) = shared.withLock { shared -> ([Listener], DispatchTime?) in
            shared.state = group.state
            if let old, group.start.base.generation != old.base.generation { shared.forgetNumbers(of: old) }
            for result in group.results {
                if case .success(let changes) = result, !changes.isEmpty { shared.recent.append(changes) }
            }
            // Trimmed in large steps: removing from the front moves the rest.
            if shared.recent.count > 2 * Self.recentLimit { shared.recent.removeFirst(Self.recentLimit) }
            var wake: DispatchTime?
            if deferred, let bound = group.bound {
                let deadline = DispatchTime.now() + bound
                if shared.deadline.map({ deadline < $0 }) ?? true {
                    shared.deadline = deadline
                    wake = deadline
                }
            } else if !deferred {
                shared.deadline = nil
            }
            return (Array(shared.listeners.values), wake)
        }
        if let wake { queue.asyncAfter(deadline: wake) { [weak self] in self?.flushOverdue() } }
        if let old, group.start.base.generation != old.base.generation {
            tellForeign(listeners, from: old, to: group.start)
        }
        for (job, result) in zip(group.jobs, group.results) {
            if case .success(let changes) = result, !changes.isEmpty {
                for listener in listeners { listener(group.state, changes, job.origin) }
            }
        }
        for (job, result) in zip(group.jobs, group.results) {
            job.completion(result.map { SaveOutcome(state: group.state, changes: $0) })
        }
    }

    private func flushOverdue() {
        let isDue = shared.withLock { shared in
            guard let deadline = shared.deadline, deadline <= .now() else { return false }
            shared.deadline = nil
            return true
        }
        guard isDue else { return }
        do { try process([Job(request: nil, origin: 0, completion: { _ in })]) } catch {
            Self.log.error("writing deferred saves failed, they are kept in memory and tried again: \(error)")
            shared.withLock { $0.deadline = .now() + .seconds(1) }
            queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.flushOverdue() }
        }
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
