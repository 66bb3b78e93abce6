import Dispatch
import StoreInterface
import StoreModel

/// Work on the writer's queue: groups of saves are checked, written if necessary, and published.
extension StoreWriter {
    func drain() {
        let jobs = takeJobs()
        guard !jobs.isEmpty else { return }
        do {
            try process(jobs)
        } catch let error as StoreError where error.code == .storeBusy {
            // Do not retry the jobs one by one, because each would wait just as long again.
            for job in jobs { job.completion(.failure(error)) }
        } catch {
            // The cause is one job, a pending save, or the disk. Process each job alone, so that only the invalid jobs fail.
            if state.pendingSaves > 0 {
                startFlush()
                finishFlush()
            }
            for job in jobs {
                do { try process([job]) } catch let second {
                    // A file that must be opened again refuses the second try, which does not tell why the first has failed.
                    let isRefused = error is StoreError && (second as? StoreError)?.code == .mustReopen
                    job.completion(.failure(reported(isRefused ? error : second)))
                }
            }
        }
    }

    /// Takes the jobs that wait. If threads wait for deferred saves beside jobs that wait for the disk, takes those saves alone. The other
    /// jobs follow in a later block, and let saves pass only once.
    private func takeJobs() -> [SaveJob] {
        let isLayered = capabilities.contains(.layeredDeferral)
        let (jobs, hasLeftSome) = shared.withLock { shared -> ([SaveJob], Bool) in
            let jobs = shared.waiting
            shared.waiting = []
            guard isLayered, jobs.count > 1, jobs.contains(where: \.isAwaitedInMemory) else { return (jobs, false) }
            // Then the saves are written at once, in one transaction with the others.
            if claim.isWanted || isFull(shared.state.deferred) { return (jobs, false) }
            let (first, later) = (jobs.filter(\.isAwaitedInMemory), jobs.filter { !$0.isAwaitedInMemory })
            // The thread of a synchronous job returns when its block ends, so the job is not left for a later one.
            let mayFollow = later.allSatisfy { !$0.isSynchronous && !$0.hasYielded }
            guard mayFollow, later.contains(where: \.waitsForDisk) else { return (jobs, false) }
            shared.waiting = later.map { job in
                var job = job
                job.hasYielded = true
                return job
            }
            return (first, true)
        }
        if hasLeftSome { queue.async { self.drain() } }
        return jobs
    }

    /// Checks a group, writes it if necessary, and publishes it. If writing fails, this throws and nothing was published or completed.
    private func process(_ jobs: [SaveJob]) throws {
        // Before writing, finish the running flush. Also write if memory is full, or if another process waits.
        let isWanted = claim.isWanted
        if completeIfNothingIsOwed(jobs) { return }
        if CommitGroup(jobs: jobs, writer: self).mustWrite || isFull || isWanted {
            finishFlush()
            if completeIfNothingIsOwed(jobs) { return }
        }
        if CommitGroup(jobs: jobs, writer: self).mustWrite || isFull || isWanted {
            try write(jobs)
        } else {
            try hold(jobs)
        }
    }

    /// Completes jobs that ask only for earlier saves to be written, if there are none. Returns whether it did. A suspended store stays
    /// closed.
    private func completeIfNothingIsOwed(_ jobs: [SaveJob]) -> Bool {
        guard state.pendingSaves == 0, jobs.allSatisfy({ $0.request == nil }),
            store.isReadOnly || !unsynced.isOwed(by: self)
        else { return false }
        for job in jobs { job.completion(outcome(of: job, .success(ChangeSet()), state)) }
        return true
    }

    private var isFull: Bool { isFull(state.deferred) }

    func isFull(_ deferred: some Sequence<Layer>) -> Bool { deferred.reduce(0) { $0 + $1.weight } > Self.deferredRowsLimit }

    /// Accepts saves that are deferred in memory.
    private func hold(_ jobs: [SaveJob]) throws {
        defer { if state.pendingSaves == 0 { claim.release() } }
        // A save that this process cannot write any more must not be acknowledged.
        if let error = shared.withLock({ $0.deferred.flushError }), Self.refusesAll(error) { throw error }
        try claimHoldingBack()
        // Deferred saves need a base state that does not change.
        try (state.base as? LazySnapshot)?.take()
        let group = CommitGroup(jobs: jobs, writer: self)
        try group.check(from: state)
        publish(group, after: nil)
        compactDeferred()
    }

    private func write(_ jobs: [SaveJob]) throws {
        let offer = makeOffer(of: jobs)
        defer { endOffer(offer) }
        // A save that is accepted during the commit is held back after it, too.
        if offer != nil { try claimHoldingBack() }
        let turn = claim.isHeld || !capabilities.contains(.externalSaves) ? nil : try store.claimSaves(.committing)
        defer { turn?.release() }
        let sync = separateSync(of: jobs)
        let group = CommitGroup(jobs: jobs, writer: self, isSyncedSeparately: sync != nil)
        var start = group.start
        let unsyncedBefore = unsynced.newest(by: self)
        do {
            let generation = try disk.sync {
                try store.write(group.durability) { transaction in
                    if try repeatShown(group, transaction) { return transaction.generation }
                    // From here on, no other process commits.
                    start = try beginCommit()
                    group.start = try currentBase(start, transaction)
                    if group.start !== start { show(group.start, to: group) }
                    try group.check(from: group.start)
                    try group.write(in: transaction)
                    shared.withLock { $0.newestOfGroup = transaction.generation }
                    if group.isUnsynced, let newest = group.newestWritten {
                        unsynced.willCommit(by: self, after: group.start.committed, through: newest)
                    }
                    if let offer, group.shown == nil { accept(over: group, offer) }
                    return transaction.generation
                }
            }
            if let shown = endCommitting() { return finish(group, shown, generation: generation) }
            group.didWrite(lazySnapshot(after: generation))
            if jobs.contains(where: { $0.request?.readsNextState ?? false }) { group.state.takeBase() }
        } catch {
            if let shown = endCommitting() { withdraw(shown) }
            shared.withLock { $0.isCommitting = false }
            if group.isUnsynced { unsynced.didFail(by: self, before: unsyncedBefore) }
            if let shown = group.shown { announce(shown) }
            if state.pendingSaves == 0 { claim.release() }
            throw error
        }
        publish(group, after: start, endedBy: sync)
        claim.release()
    }

    /// Lets deferred saves be accepted from here on, until the group is committed.
    private func accept(over group: CommitGroup, _ offer: GroupOffer) {
        let committing = CommittingGroup(group)
        shared.withLock { shared in
            shared.committing = committing
            shared.hasOffered = true
        }
        offer.open()
    }

    /// Writes a group again whose transaction is repeated, if saves were accepted over it: the group cannot be checked again. Otherwise no
    /// more saves are accepted over it.
    private func repeatShown(_ group: CommitGroup, _ transaction: any StoreTransaction) throws -> Bool {
        let isShown = shared.withLock { shared in
            if shared.committing?.flush == nil { shared.committing = nil }
            return shared.committing != nil
        }
        guard isShown else { return false }
        guard transaction.generation == group.start.committed else { throw Overtaken() }
        try takeSnapshots()
        try group.write(in: transaction)
        return true
    }

    // MARK: Claims

    /// Acquires the claim, so that no other process commits before the deferred saves of this process. Runs on the queue.
    private func claimHoldingBack() throws {
        guard capabilities.contains(.externalSaves), !claim.isHeld,
            let made = try store.claimSaves(.holdingBack)
        else { return }
        do {
            try adoptExternalSaves()
            try claim.watchRequests { try store.watchClaimRequests { [weak self] in self?.flushForOthers() } }
        } catch {
            made.release()
            throw error
        }
        claim.hold(made)
    }

    /// Starts a flush if another process waits for the pending saves.
    private func flushForOthers() {
        queue.async { if self.claim.isWanted { self.startFlush() } }
    }

    // MARK: Bases

    /// Returns the state to check against inside a transaction: ours, or a newer state if another process or connection has written.
    func currentBase(_ state: StoreState, _ transaction: any StoreTransaction) throws -> StoreState {
        guard transaction.generation != state.committed else { return state }
        try checkGeneration(transaction.generation, since: state.committed)
        // A lazy one, which the writer releases after a time if the save fails and no other follows.
        let base = lazySnapshot(after: transaction.generation)
        try base.take()
        return try following(state, base)
    }

    /// Returns the state on a newer base. Throws if saves are pending, which must be flushed first: see ``Overtaken``.
    private func following(_ state: StoreState, _ base: any StoreSnapshot) throws -> StoreState {
        guard state.pendingSaves > 0 else { return StoreState(base: base, sequence: state.sequence.next) }
        throw Overtaken()
    }

    /// Publishes the state with saves of other connections that a group follows, so that reads during its commit see them (S068).
    /// Listeners are notified after the commit.
    private func show(_ state: StoreState, to group: CommitGroup) {
        shared.withLock { shared in
            shared.recent.append(.external(after: shared.state.committed, through: state.committed), state.sequence)
            shared.state = state
        }
        group.shown = state
    }

    /// Notifies listeners of a state with saves of other connections.
    private func announce(_ state: StoreState) {
        for listener in shared.withLock({ $0.listeners.all }) { listener(state, .externalProcess) }
    }

    /// Publishes the state after a group, notifies listeners, and completes the jobs.
    ///
    /// - Parameters:
    ///   - old: The state before a group that was written; nil for deferred saves.
    ///   - sync: The sync that ends the jobs that wait for the disk; nil if the commit has synced them, or if there are none.
    private func publish(_ group: CommitGroup, after old: StoreState?, endedBy sync: (any CommitSync)? = nil) {
        let (listeners, wake, synced) = shared.withLock {
            shared -> ([SaveListeners.Call], DispatchTime?, [SeparateSyncs.Job]) in
            var sequence = shared.state.sequence
            for case (let job, .success(let changes)) in zip(group.jobs, group.results) where !changes.isEmpty {
                sequence = sequence.next
                shared.recent.append(.save(changes), sequence, source: job.source)
            }
            shared.isCommitting = false
            shared.deferred.replacePending(by: group.pending)
            var synced: [SeparateSyncs.Job] = []
            if old != nil {
                shared.numbers.note(group.committed)
                if !group.isUnsynced {
                    shared.unsynced.didSync(by: self, through: group.newestWritten)
                    // The commit has taken earlier ones to disk, too.
                    synced = shared.syncs.endAll()
                }
            }
            shared.state = group.state
            return (shared.listeners.all, nextDeadline(group, &shared), synced)
        }
        if let wake { clock.run(at: wake, on: queue) { [weak self] in self?.flushOverdue() } }
        if let shown = group.shown { announce(shown) }
        let accepted = zip(group.jobs, group.results).compactMap { job, result in
            if case .success(let changes) = result, !changes.isEmpty { job.source } else { nil }
        }
        // After a flush, notify all contexts, so that they release the snapshot below the deferred saves.
        for source in accepted.isEmpty && (old?.pendingSaves ?? 0) > 0 ? [.flush] : accepted {
            for listener in listeners { listener(group.state, source) }
        }
        complete(synced)
        if let sync { complete(group, after: sync) } else { complete(group, group.state) }
    }

    /// Completes the jobs of a group.
    ///
    /// - Parameter state: A state that contains its saves.
    func complete(_ group: CommitGroup, _ state: StoreState) {
        for (job, result) in zip(group.jobs, group.results) { job.completion(outcome(of: job, result, state)) }
    }

    /// Returns the time at which to flush the group's saves; nil if an earlier time is set, or if all saves are on disk.
    private func nextDeadline(_ group: CommitGroup, _ shared: inout Shared) -> DispatchTime? {
        guard group.state.pendingSaves > 0 || group.isUnsynced else {
            shared.deferred.clearDeadline()
            return nil
        }
        guard let bound = group.bound else { return nil }
        let deadline = clock.now + bound
        return shared.deferred.require(by: deadline) ? deadline : nil
    }

    /// Returns the result of a job. A flush may also report the deferred saves that could not be written.
    func outcome(
        of job: SaveJob, _ result: Result<ChangeSet, any Error>, _ state: StoreState
    ) -> Result<SaveOutcome, any Error> {
        guard job.reportsFailures else { return result.map { SaveOutcome(state: state, changes: $0) } }
        let failures = takeFailures()
        if !failures.isEmpty { return .failure(SaveError.deferredSavesFailed(failures)) }
        return .success(SaveOutcome(state: state, changes: ChangeSet()))
    }
}

extension StoreWriter.SaveJob {
    /// Whether the job ends only when its save, or earlier ones, are on disk.
    var waitsForDisk: Bool { request.map { $0.durability == .durable } ?? true }

    /// Whether a thread waits for a save that may stay in memory.
    fileprivate var isAwaitedInMemory: Bool { isSynchronous && !waitsForDisk }
}
