internal import Platform

/// Runs the jobs of a confined context: a root context that any thread may use, one thread at a time.
///
/// Jobs of other threads wait until the context is used for a request, a save or a refresh. No such job repeats while an earlier one
/// waits, so their number is bounded by the observers of the context. Saves of other contexts send no jobs: the context looks for them
/// itself, see ``ManagedObjectContext/prepareRequest()``.
final class ConfinedExecutor: ContextExecutor, @unchecked Sendable {
    // `@unchecked Sendable` is safe because `context` is set once, before the executor is shared, and a weak reference may be read by every
    // thread.
    private weak var context: ManagedObjectContext?
    /// The uses of the store, which end when the container is closed.
    let uses: StoreUses
    /// The waiting jobs; nil after the context was released.
    private let jobs = Mutex<[@Sendable (ManagedObjectContext) -> Void]?>([])
    /// The closures to call when a job waits, each until its observation ends.
    private let observers = Mutex<[(end: ObservationEnd, call: @Sendable () -> Void)]>([])
    /// The thread that is using the context, or 0. Kept only while ``ConcurrencyCheck/isOn``.
    private let user = Atomic<UInt>(0)

    private init(_ uses: StoreUses) { self.uses = uses }

    /// Creates a context that any thread may use, one at a time. Its last reference may be released on any thread, too.
    static func makeContext(_ new: NewContext) -> sending ManagedObjectContext {
        let configuration = new.configuration
        precondition(configuration.parent == nil, "a confined context is a root context")
        let contextExecutor = ConfinedExecutor(StoreUses(of: ObjectIdentifier(configuration.coordinator)))
        let address = ContextAddress(confinement: contextExecutor)
        let context = ManagedObjectContext(new, place: address)
        contextExecutor.context = context
        if configuration.coordinator.closesNewContexts { context.close {} }
        return context
    }

    @discardableResult
    func enqueue(_ job: @escaping @Sendable (ManagedObjectContext) -> Void) -> Bool {
        let isAccepted = jobs.withLock { jobs in
            jobs?.append(job)
            return jobs != nil
        }
        // Observers are called without a lock, because they may add jobs.
        if isAccepted { for observer in observers.withLock({ $0 }) where !observer.end.isReached { observer.call() } }
        return isAccepted
    }

    /// Calls a closure when a job waits, on the thread that adds the job.
    func observeJobs(_ body: @escaping @Sendable () -> Void) -> ObservationToken {
        let end = ObservationEnd()
        observers.withLock { $0.append((end, body)) }
        return ObservationToken(end) { [weak self] in self?.observers.withLock { $0.removeAll { $0.end.isReached } } }
    }

    /// Runs the jobs that wait. Call this on the thread that uses the context.
    func runJobs(in context: ManagedObjectContext) {
        let waiting = jobs.withLock { jobs in
            defer { if jobs?.isEmpty == false { jobs = [] } }
            return jobs ?? []
        }
        for job in waiting { context.moving { job(context) } }
    }

    /// Drops the jobs that wait, because the context is being released.
    func close() {
        let dropped = jobs.withLock { jobs in
            defer { jobs = nil }
            return jobs
        }
        // Jobs are released after the lock, because releasing one may call other code.
        withExtendedLifetime(dropped) {}
    }

    func runHere(_ job: (ManagedObjectContext) -> Void) {
        if let context { job(context) }
    }

    func runAndWait(_ job: @Sendable (ManagedObjectContext) -> Void) { runHere(job) }

    // MARK: One thread at a time

    /// Stops the program if another thread is using the context.
    func check(_ name: String) {
        let other = user.load(ordering: .relaxed)
        precondition(
            other == 0 || other == CurrentThread.identifier,
            "the context \(name) is used on two threads at one time; use one context per thread, and pass ids, not objects")
    }

    /// Runs `body` as the only user of the context. Uses of other threads during it stop the program.
    func occupied<R>(_ name: String, _ body: () throws -> R) rethrows -> R {
        let thread = CurrentThread.identifier
        let (isOutermost, other) = user.compareExchange(expected: 0, desired: thread, ordering: .acquiringAndReleasing)
        precondition(
            isOutermost || other == thread,
            "the context \(name) is used on two threads at one time; use one context per thread, and pass ids, not objects")
        defer { if isOutermost { user.store(0, ordering: .releasing) } }
        return try body()
    }
}

extension ManagedObjectContext {
    /// Runs `body` as the only user of a confined context, if uses are checked. In other contexts, just runs it.
    @inline(__always)
    func occupied<R>(_ body: () throws -> R) rethrows -> R {
        guard ConcurrencyCheck.isOn, let confinement = place.confinement else { return try body() }
        return try confinement.occupied(name, body)
    }
}
