import Dispatch
import Locking
import StoreInterface

/// Deferred saves: folded so that reading through them stays short, and written while further saves are accepted.
extension StoreWriter {
    /// Deferred saves on their way to the disk.
    final class Flush: Sendable {
        let state: StoreState
        let pending: [PendingSave]
        /// What came of it; nil while it runs.
        let result = Mutex<Result<Written, any Error>?>(nil)

        init(state: StoreState, pending: [PendingSave]) {
            self.state = state
            self.pending = pending
        }
    }

    /// What a flush has committed.
    struct Written: Sendable {
        /// The store's state after the last commit.
        var base: any StoreSnapshot
        /// Its generation.
        var committed: Generation
        var commits: [CommitNumbers]
        /// Saves that could not be written by themselves.
        var failures: [DeferredSaveFailure] = []
        /// Whether other connections have committed since the saves were accepted.
        var isOvertaken = false
    }

    /// Another process has committed although saves were held back: its file of claims was removed.
    struct Overtaken: Error {}

    /// Folds what was accepted since the running flush began, and begins one if much is pending. On the queue.
    func compactDeferred() {
        let (state, flush) = shared.withLock { ($0.state, $0.flush) }
        let written = flush?.state.deferred.count ?? 0
        var newer = Array(state.deferred.dropLast(written).reversed())
        if let tail = Layer.foldableTail(of: newer) {
            let folded = Layer.folding(Array(newer[tail]), schema: store.schema)
            folded.seal()
            newer.replaceSubrange(tail, with: folded.isEmpty ? [] : [folded])
            let shorter = StoreState(
                base: state.base, committed: state.committed, deferred: newer.reversed() + state.deferred.suffix(written),
                pendingSaves: state.pendingSaves, sequence: state.sequence)
            shared.withLock { $0.state = shorter }
        }
        if flush == nil, state.deferredRows > Self.deferredRows { startFlush() }
    }

    /// Writes all pending saves now, on the disk's queue. On the queue, when no flush is running.
    func startFlush() {
        let flush = shared.withLock { shared -> Flush? in
            guard shared.flush == nil, !shared.pending.isEmpty else { return nil }
            shared.deadline = nil
            let flush = Flush(state: shared.state, pending: shared.pending)
            shared.flush = flush
            return flush
        }
        guard let flush else { return }
        disk.async {
            let result = Result { try self.write(flush) }
            flush.result.withLock { $0 = result }
            self.queue.async {
                self.adopt(flush)
                // Saves accepted meanwhile may have become due.
                self.flushOverdue()
            }
        }
    }

    private func write(_ flush: Flush) throws -> Written {
        do {
            return try writeTogether(flush.state, flush.pending)
        } catch let error where Self.isTransient(error) {
            throw error
        } catch {
            return try writeEach(flush)
        }
    }

    private func writeTogether(_ state: StoreState, _ pending: [PendingSave]) throws -> Written {
        try takeSnapshots()
        let (numbers, generation) = try store.write(.durable) { transaction in
            guard transaction.generation == state.committed else { throw Overtaken() }
            let numbers = CommitNumbers(pending.map(\.sequence), after: transaction.generation)
            try state.writePending(pending, numbers, in: transaction)
            return (numbers, transaction.generation)
        }
        return Written(base: lazySnapshot(after: generation), committed: generation, commits: [numbers])
    }

    /// Writes each layer in a transaction of its own and leaves out what cannot be written, so that one save does not block all others.
    private func writeEach(_ flush: Flush) throws -> Written {
        var rest = flush.pending[...]
        var written = Written(base: flush.state.base, committed: flush.state.committed, commits: [])
        var below: [Layer] = []
        for layer in flush.state.deferred.reversed() {
            let own = rest.prefix { save in layer.version.sequence.map { save.sequence <= $0 } ?? false }
            rest = rest.dropFirst(own.count)
            do {
                try write(
                    layer, Array(own), above: StoreState(base: flush.state.base, deferred: below, sequence: .zero), &written)
            } catch let error where Self.isTransient(error) {
                throw error
            } catch {
                let contexts = own.map(\.changes.origin.contextName)
                Self.log.error(
                    "a deferred save of \(contexts.joined(separator: ", ")) cannot be written and is left out: \(error)")
                written.failures += own.map { DeferredSaveFailure(origin: $0.changes.origin, error: error) }
            }
            below.insert(layer, at: 0)
        }
        if !rest.isEmpty { try write(nil, Array(rest), above: flush.state, &written) }
        return written
    }

    /// Writes one layer with its lines in the history.
    /// - Parameter before: what the layer was accepted upon. It is checked anew if other connections have committed since, which
    ///   only a file whose claims were removed lets them do.
    private func write(_ layer: Layer?, _ pending: [PendingSave], above before: StoreState, _ written: inout Written) throws {
        let known = written.committed
        try takeSnapshots()
        let (numbers, generation) = try store.write(.durable) { transaction in
            if let layer, let rules = pending.first?.rules, transaction.generation != known {
                let request = SaveRequest(
                    layers: [layer], base: before, watched: [], policy: .error, durability: .durable, origin: SaveOrigin(),
                    preserved: [], rules: rules)
                var check = SaveCheck(
                    request: request, state: StoreState(base: try newSnapshot(), sequence: before.sequence.next), writer: self)
                _ = try check.resolvedLayer()
            }
            let state = StoreState(base: before.base, deferred: layer.map { [$0] } ?? [], sequence: before.sequence)
            let numbers = CommitNumbers(pending.map(\.sequence), after: transaction.generation)
            try state.writePending(pending, numbers, in: transaction)
            return (numbers, transaction.generation)
        }
        // At once, because the check of the next layer compares versions.
        shared.withLock { $0.numbers.note(numbers) }
        written.commits.append(numbers)
        if numbers.first != known + 1 { written.isOvertaken = true }
        written.base = lazySnapshot(after: generation)
        written.committed = generation
    }

    /// Whether the same write may succeed later: the disk is at fault, not what is written.
    private static func isTransient(_ error: any Error) -> Bool {
        guard let error = error as? StoreError else { return false }
        return switch error.code {
        case .full, .readersFull, .storeBusy, .inputOutput, .readOnly, .usedAfterFork, .closed, .schemaMismatch, .schemaTooNew:
            true
        default: false
        }
    }

    /// Waits for the running flush, if there is one, and publishes its state. On the queue; no flush is running then.
    func finishFlush() {
        // Adopting one begins the next when saves have become due: nothing may be on its way to the disk in the end.
        while let flush = shared.withLock({ $0.flush }) {
            disk.sync {}
            adopt(flush)
        }
    }

    /// Publishes the state after a flush: what was accepted meanwhile over a newer base.
    private func adopt(_ flush: Flush) {
        guard shared.withLock({ $0.flush === flush }), let result = flush.result.withLock({ $0 }) else { return }
        defer { lookIfPostponed() }
        switch result {
        case .failure(let error):
            Self.log.error("writing deferred saves failed, they are kept in memory and tried again: \(error)")
            let retry = clock.now + .seconds(1)
            shared.withLock { shared in
                shared.flush = nil
                shared.deadline = retry
            }
            clock.run(at: retry, on: queue) { [weak self] in self?.flushOverdue() }
        case .success(let written): adopt(flush, written)
        }
    }

    private func adopt(_ flush: Flush, _ written: Written) {
        let (moved, listeners) = shared.withLock { shared -> (StoreState, [Listener]) in
            let newer = shared.state.deferred.dropLast(flush.state.deferred.count)
            let pending = shared.state.pendingSaves - flush.state.pendingSaves
            // What is left out, or came between, changes what contexts see, and nothing says how.
            let isChanged = !written.failures.isEmpty || written.isOvertaken
            let sequence = isChanged ? shared.state.sequence.next : shared.state.sequence
            shared.flush = nil
            shared.state = StoreState(
                base: written.base, committed: written.committed, deferred: Array(newer), pendingSaves: pending,
                sequence: sequence)
            shared.pending.removeFirst(flush.pending.count)
            if !isChanged { for commit in written.commits { shared.numbers.note(commit) } }
            shared.failures += written.failures
            if isChanged { shared.recent.append(.unknown, sequence) }
            return (shared.state, Array(shared.listeners.values))
        }
        // Contexts let go of the snapshot before the commit, and of the layers that are in the file now.
        let origin: UInt64 = written.failures.isEmpty && !written.isOvertaken ? .max : 0
        for listener in listeners { listener(moved, origin) }
        if moved.pendingSaves == 0 {
            releaseClaim()
        } else if claim.withLock({ $0 })?.isWanted == true {
            startFlush()
        }
    }

    func flushOverdue() {
        let now = clock.now
        let isDue = shared.withLock { shared in
            guard shared.flush == nil, let deadline = shared.deadline, deadline <= now else { return false }
            return true
        }
        guard isDue else { return }
        guard store.deferralStyle == .native else { return startFlush() }
        // What such a store has committed without a sync; nobody waits for it.
        shared.withLock { $0.deadline = nil }
        enqueue(Job(request: nil, origin: .max, completion: { _ in }))
    }
}

/// A deferred save that was acknowledged and could not be written, though the disk was in order.
public struct DeferredSaveFailure: Sendable, CustomStringConvertible {
    /// The context that saved, its author and the time.
    public let origin: SaveOrigin
    /// The store's reason.
    public let error: any Error

    public var description: String { "the save of \(origin.contextName) at \(origin.date): \(error)" }
}

extension StoreState {
    /// How much is held in memory: rows and pairs of the deferred saves.
    var deferredRows: Int { deferred.reduce(0) { $0 + $1.weight } }

    /// Writes the pending saves, oldest first, and their lines in the history. A layer may stand for several saves, or, after an
    /// insert and a delete, none.
    func writePending(_ pending: [PendingSave], _ numbers: CommitNumbers, in transaction: any StoreTransaction) throws {
        var rest = pending[...]
        for layer in deferred.reversed() {
            guard let newest = layer.version.sequence else { continue }
            while let next = rest.first, next.sequence < newest { try record(rest.removeFirst(), numbers, in: transaction) }
            try transaction.apply(layer, changes: rest.popFirst()?.changes ?? layer.changeSet(), numbers: numbers)
        }
        for save in rest { try record(save, numbers, in: transaction) }
    }

    /// A line in the history for a save whose rows are written with another's.
    private func record(_ save: PendingSave, _ numbers: CommitNumbers, in transaction: any StoreTransaction) throws {
        let layer = Layer(schema: base.schema)
        layer.setVersion(.accepted(save.sequence))
        layer.seal()
        try transaction.apply(layer, changes: save.changes, numbers: numbers)
    }
}
