import Dispatch
import StoreInterface
import Locking

/// Deferred saves: folded so that reading through them stays short, and written beside the taking of further ones.
extension StoreWriter {
    /// Deferred saves on their way to the disk.
    final class Flush: Sendable {
        let state: StoreState
        let unwritten: [ChangeSet]
        /// The store's state after the commit, or why there was none; nil while it runs.
        let result = Mutex<Result<any StoreSnapshot, any Error>?>(nil)

        init(state: StoreState, unwritten: [ChangeSet]) {
            self.state = state
            self.unwritten = unwritten
        }
    }

    /// What the deferred saves of a state changed, under its numbers.
    func unwritten(in state: StoreState) -> [ChangeSet] {
        state.renumbered(shared.withLock { $0.unwritten })
    }

    /// Folds what was taken since the running flush began, and begins one when there is much. On the queue.
    func tidyDeferred() {
        let (state, flush) = shared.withLock { ($0.state, $0.flush) }
        let written = flush?.state.deferred.count ?? 0
        var newer = Array(state.deferred.dropLast(written).reversed())
        if let tail = Layer.foldableTail(of: newer) {
            let folded = Layer.folding(Array(newer[tail]), schema: store.schema)
            folded.seal()
            newer.replaceSubrange(tail, with: folded.isEmpty ? [] : [folded])
            let shorter = StoreState(
                base: state.base, deferred: newer.reversed() + state.deferred.suffix(written), generation: state.generation)
            shared.withLock { $0.state = shorter }
        }
        if flush == nil, state.deferredRows > Self.deferredRows { startFlush() }
    }

    /// Writes all that is deferred now, on the disk's queue. On the queue, when no flush is running.
    private func startFlush() {
        let flush = shared.withLock { shared -> Flush? in
            shared.deadline = nil
            guard !shared.unwritten.isEmpty else { return nil }
            let flush = Flush(state: shared.state, unwritten: shared.unwritten)
            shared.flush = flush
            return flush
        }
        guard let flush else { return }
        disk.async {
            let result = Result { try self.write(flush) }
            flush.result.withLock { $0 = result }
            self.queue.async {
                self.adopt(flush)
                // Saves taken meanwhile may have become due.
                self.flushOverdue()
            }
        }
    }

    private func write(_ flush: Flush) throws -> any StoreSnapshot {
        try store.write(.durable) { transaction in
            let state = try currentBase(flush.state, transaction)
            try state.writeDeferred(state.renumbered(flush.unwritten), in: transaction)
        }
        return try store.snapshot()
    }

    /// Waits for the running flush, if there is one, and publishes its state. On the queue; no flush is running then.
    func finishFlush() {
        // Adopting one begins the next when saves have become due: nothing may be on its way to the disk in the end.
        while let flush = shared.withLock({ $0.flush }) {
            disk.sync {}
            adopt(flush)
        }
    }

    /// Publishes the state after a flush: what was taken meanwhile over a newer base.
    private func adopt(_ flush: Flush) {
        guard shared.withLock({ $0.flush === flush }), let result = flush.result.withLock({ $0 }) else { return }
        defer { lookIfPostponed() }
        switch result {
        case .failure(let error):
            Self.log.error("writing deferred saves failed, they are kept in memory and tried again: \(error)")
            shared.withLock { shared in
                shared.flush = nil
                shared.deadline = .now() + .seconds(1)
            }
            queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.flushOverdue() }
        case .success(let base): adopt(flush, on: base)
        }
    }

    private func adopt(_ flush: Flush, on base: any StoreSnapshot) {
        let start = state
        // Not zero when another process has saved.
        let distance = base.generation - flush.state.generation
        let newer = start.deferred.dropLast(flush.state.deferred.count)
        let moved = StoreState(
            base: base, deferred: distance == 0 ? Array(newer) : newer.map { $0.shifted(by: distance, schema: store.schema) },
            generation: start.generation + distance)
        pins.note(base)
        let listeners = shared.withLock { shared in
            shared.flush = nil
            shared.state = moved
            shared.unwritten = moved.renumbered(Array(shared.unwritten.dropFirst(flush.unwritten.count)))
            if distance != 0 { shared.forgetNumbers(of: start) }
            return Array(shared.listeners.values)
        }
        if distance != 0 { for listener in listeners { listener(moved, 0) } }
    }

    func flushOverdue() {
        let isDue = shared.withLock { shared in
            guard shared.flush == nil, let deadline = shared.deadline, deadline <= .now() else { return false }
            return true
        }
        if isDue { startFlush() }
    }
}

extension StoreState {
    /// How much is held in memory: rows and pairs of the deferred saves.
    var deferredRows: Int { deferred.reduce(0) { $0 + $1.weight } }

    /// The changes of the newest saves of this state, oldest first, with their numbers in it.
    func renumbered(_ changes: [ChangeSet]) -> [ChangeSet] {
        guard let last = changes.last, last.generation != generation else { return changes }
        var changes = changes
        for position in changes.indices {
            changes[position].generation = generation - UInt64(changes.count - 1 - position)
        }
        return changes
    }

    /// Writes the deferred saves, oldest first, and their lines in the history. A layer may stand for several saves, or, after an
    /// insert and a delete, none.
    func writeDeferred(_ changes: [ChangeSet], in transaction: any StoreTransaction) throws {
        var rest = changes[...]
        for layer in deferred.reversed() {
            while let next = rest.first, next.generation < layer.generation { try record(rest.removeFirst(), in: transaction) }
            try transaction.apply(layer, changes: rest.popFirst() ?? layer.changeSet())
        }
        for change in rest { try record(change, in: transaction) }
    }

    /// A line in the history for a save whose rows are written with another's.
    private func record(_ changes: ChangeSet, in transaction: any StoreTransaction) throws {
        let layer = Layer(schema: base.schema)
        layer.setGeneration(changes.generation)
        layer.seal()
        try transaction.apply(layer, changes: changes)
    }
}
