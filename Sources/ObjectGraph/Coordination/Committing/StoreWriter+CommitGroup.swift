import Dispatch
import StoreInterface
import StoreModel

extension StoreWriter {
    /// The jobs that the writer processes together. They are checked in order, each against the state after the jobs before it.
    final class CommitGroup {
        let jobs: [SaveJob]
        /// Whether the group is committed without a sync although jobs wait for the disk: see ``StoreWriter/separateSync(of:)``.
        private let isSyncedSeparately: Bool
        /// The state against which the first job is checked. It is newer than the writer's state if another process has saved.
        var start: StoreState
        /// The state with saves of other connections that contexts see since the transaction began, and listeners do not know yet.
        var shown: StoreState?
        var state: StoreState
        /// For each job, the changes of an accepted save (empty for a flush), or the error that refused it.
        var results: [Result<ChangeSet, any Error>] = []
        private let writer: StoreWriter
        /// The saves in ``state`` that are not on disk, oldest first: earlier saves and the group's own.
        private(set) var pending: [PendingSave] = []
        /// The generations of the saves that the group has written.
        private(set) var committed = CommitNumbers.none
        /// The newest save that the group has written; nil if it has written none.
        var newestWritten: Generation? { committed.sequences.last.map { committed.generation(of: .accepted($0)) } }

        init(jobs: [SaveJob], writer: StoreWriter, isSyncedSeparately: Bool = false) {
            self.jobs = jobs
            self.isSyncedSeparately = isSyncedSeparately
            self.writer = writer
            start = writer.state
            state = start
        }

        /// Writes the earlier pending saves and the group's own. May be called again if the transaction is repeated.
        func write(in transaction: any StoreTransaction) throws {
            // Only a flush checks saves again. Throwing starts one.
            if pending.contains(where: { $0.accepted != nil }) {
                throw writer.shared.withLock { $0.deferred.flushError } ?? Overtaken()
            }
            committed = CommitNumbers(pending.map(\.sequence), first: transaction.nextGeneration)
            try state.writePending(pending, committed, in: transaction)
        }

        /// Updates the group after all its saves are on disk. From here on its changes have the generations that the store gave them.
        func didWrite(_ base: LazySnapshot) {
            var own = pending.suffix(results.count { (try? $0.get())?.isEmpty == false })
            for position in results.indices {
                guard case .success(var changes) = results[position], !changes.isEmpty, let save = own.popFirst() else {
                    continue
                }
                changes.generation = committed.generation(of: .accepted(save.sequence))
                results[position] = .success(changes)
            }
            state = StoreState(base: base, sequence: state.sequence)
            pending = []
        }

        /// Whether a job waits for the disk, or the store does not support saves in memory.
        var mustWrite: Bool {
            !writer.capabilities.contains(.layeredDeferral)
                || jobs.contains { job in
                    guard let request = job.request else { return state.pendingSaves > 0 }
                    return request.durability == .durable
                }
        }

        /// Whether the store has committed the group without a sync, so that one must follow.
        var isUnsynced: Bool { if case .deferred = durability { true } else { false } }

        /// The durability of the commit: the strictest one that the jobs ask for, unless a separate sync follows.
        var durability: Durability {
            if writer.capabilities.contains(.layeredDeferral) { return .durable }
            if isSyncedSeparately { return .deferred }
            return bound == nil || jobs.contains { $0.request?.durability == .durable || $0.request == nil }
                ? .durable : .deferred
        }

        /// The shortest time within which a deferred save of the group must be on disk.
        var bound: DispatchTimeInterval? {
            let bounds = jobs.compactMap { job -> Duration? in
                guard case .deferred(let within)? = job.request?.durability else { return nil }
                return within
            }
            guard let shortest = bounds.min() else { return nil }
            return .nanoseconds(shortest.nanoseconds)
        }

        /// Checks each job. May be called again with another base if the transaction is repeated.
        func check(from base: StoreState) throws {
            state = base
            pending = writer.shared.withLock { $0.deferred.pending }
            results = jobs.map { job in
                guard let request = job.request else { return .success(ChangeSet()) }
                return Result { try accept(request) }
            }
        }

        private func accept(_ request: SaveRequest) throws -> ChangeSet {
            guard let trace = request.trace else { return try checked(request) }
            return try trace.checking { try checked(request) }
        }

        private func checked(_ request: SaveRequest) throws -> ChangeSet {
            let request = try request.prepared(for: state)
            var check = SaveCheck(request: request, state: state, writer: writer)
            var layer = try check.resolvedLayer()
            guard !layer.isEmpty else { return ChangeSet() }
            layer = writer.unpublished(layer)
            let changes = try writer.stamp(layer, request, after: state)
            layer.seal()
            request.trace?.accepted(layer)
            state = state.adding(layer)
            pending.append(PendingSave(sequence: state.sequence, changes: changes, terms: check.terms, layer: layer))
            return changes
        }
    }
}

extension Layer {
    /// Returns a sealed copy that shares no rows, for a preview.
    func copied(schema: StoreSchema) -> Layer {
        let copy = Layer(schema: schema)
        for entity in entityIndices {
            guard let changes = self.entity(entity) else { continue }
            for (number, page) in changes.pages {
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot]?.copy(layer: copy.id) else { continue }
                    copy.put(row, entity: entity, key: PageAddress.key(page: number, slot: slot))
                }
            }
        }
        for (link, changes) in links.enumerated(as: LinkIndex.self) {
            for (source, pairs) in changes.forward {
                for (destination, linked) in pairs { copy.setLink(link, from: source, to: destination, linked: linked) }
            }
        }
        copy.seal()
        return copy
    }
}
