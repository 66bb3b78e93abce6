import Dispatch
import StoreInterface

/// What runs on the writer's queue: groups of saves are checked, written if one of them asks for it, and published.
extension StoreWriter {
    func drain() {
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

    /// Checks, writes if need be, and publishes a group. Throws when the writing failed; then nothing was published or completed.
    private func process(_ jobs: [Job]) throws {
        // What is being written must be on disk first, and a full memory emptied.
        if Group(jobs: jobs, writer: self).mustWrite || isFull { finishFlush() }
        let group = Group(jobs: jobs, writer: self)
        if group.mustWrite || isFull {
            try write(group)
        } else {
            try group.check(from: state)
            publish(group, after: nil, deferred: !group.state.deferred.isEmpty)
            tidyDeferred()
        }
    }

    private var isFull: Bool { state.deferredRows > Self.deferredRowsLimit }

    private func write(_ group: Group) throws {
        let start = state
        try disk.sync {
            try store.write(group.durability) { transaction in
                let base = try currentBase(start, transaction)
                group.start = base
                try group.check(from: base)
                try group.state.writeDeferred(group.unwritten, in: transaction)
            }
        }
        group.didWrite(StoreState(base: try store.snapshot()))
        publish(group, after: start, deferred: false)
    }

    /// The state to check against inside a transaction: ours, or a newer one when another process or connection wrote.
    func currentBase(_ state: StoreState, _ transaction: any StoreTransaction) throws -> StoreState {
        guard transaction.generation != state.base.generation else { return state }
        return rebased(state, on: try store.snapshot())
    }

    /// The deferred saves of a state over a newer base, under later numbers.
    func rebased(_ state: StoreState, on base: any StoreSnapshot) -> StoreState {
        let distance = base.generation - state.base.generation
        return StoreState(
            base: base, deferred: state.deferred.map { $0.shifted(by: distance, schema: store.schema) },
            generation: state.generation + distance)
    }

    /// - Parameter old: the state before the group, when a transaction may have found a newer one.
    private func publish(_ group: Group, after old: StoreState?, deferred: Bool) {
        if old != nil { pins.note(group.state.base) }
        let (listeners, wake) = shared.withLock { shared -> ([Listener], DispatchTime?) in
            shared.state = group.state
            shared.unwritten = group.unwritten
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
            for listener in listeners { listener(group.start, 0) }
        }
        for (job, result) in zip(group.jobs, group.results) {
            if case .success(let changes) = result, !changes.isEmpty {
                for listener in listeners { listener(group.state, job.origin) }
            }
        }
        for (job, result) in zip(group.jobs, group.results) {
            job.completion(result.map { SaveOutcome(state: group.state, changes: $0) })
        }
    }
}
