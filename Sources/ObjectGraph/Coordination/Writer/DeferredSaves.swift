import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Accepted saves that are not on disk yet, and the flush that writes them. Part of the writer's state; it does no work itself.
struct DeferredSaves {
    /// The saves, oldest first, with their history records. They include the saves that the running flush writes.
    var pending: [PendingSave] = []
    /// The running flush.
    private(set) var flush: Flush?
    /// The error with which the last flush left saves pending; nil if it left none.
    private(set) var flushError: (any Error)?
    /// The time at which the oldest save must be on disk.
    private(set) var deadline: DispatchTime?
    /// Saves that were left out. The next flush, closing or suspension that a caller waits for reports them.
    private var failures: [DeferredSaveFailure] = []

    /// Saves that are being written.
    final class Flush: Sendable {
        let state: StoreState
        let pending: [PendingSave]
        /// The result; nil while the flush runs.
        let result = Mutex<Result<Written, any Error>?>(nil)

        init(state: StoreState, pending: [PendingSave]) {
            self.state = state
            self.pending = pending
        }
    }

    /// The result of a flush.
    struct Written: Sendable {
        /// The store's state after the last commit.
        var base: any StoreSnapshot
        /// The generation of the last commit.
        var committed: Generation
        /// Saves that could not be written, each in its own transaction.
        var failures: [DeferredSaveFailure] = []
        /// The layers of the saves that were written or left out one by one, as they were accepted, newest first.
        var processed: [Layer] = []
        /// Whether other connections have committed since the saves were accepted.
        var isOvertaken = false
        /// Whether a save was written with other changes than it was accepted with, because it was checked again.
        var isRewritten = false
        /// Saves that are still to be written, oldest first, and the error that prevented it.
        var rest: [PendingSave] = []
        var stop: (any Error)?

        /// Whether contexts see something else now than the saves as they were accepted. No change set describes the difference.
        var isChanged: Bool { !failures.isEmpty || isOvertaken || isRewritten }
    }

    var isFlushing: Bool { flush != nil }

    /// Whether something must still be written or synced.
    var isOwed: Bool { deadline != nil || !pending.isEmpty || isFlushing }

    /// Begins a flush of all saves. Returns nil if there are none, or if a flush is running.
    mutating func beginFlush(of state: StoreState) -> Flush? {
        guard flush == nil, !pending.isEmpty else { return nil }
        deadline = nil
        let made = Flush(state: state, pending: pending)
        flush = made
        return made
    }

    /// Ends a flush that has written nothing. Its saves stay pending.
    mutating func endFlush(failure: any Error) {
        flush = nil
        flushError = failure
    }

    /// Ends a flush. Saves that it did not reach stay pending, before the saves that were accepted meanwhile.
    mutating func endFlush(_ ended: Flush, _ written: Written) {
        flush = nil
        flushError = written.stop
        let later = pending.dropFirst(ended.pending.count)
        pending = PendingSave.remaining(written.rest + later, after: ended, written)
        failures += written.failures
    }

    /// Replaces the saves after a group was accepted or written. If none is left, the error of the last flush no longer counts.
    mutating func replacePending(by saves: [PendingSave]) {
        pending = saves
        if saves.isEmpty { flushError = nil }
    }

    /// Replaces the states over which pending saves were accepted by states with the same content. Saves that shared one still do.
    mutating func rebase(_ replacement: (StoreState) -> StoreState) {
        var made: [ObjectIdentifier: StoreState] = [:]
        pending = pending.map { save in
            guard let accepted = save.accepted else { return save }
            let state = made[ObjectIdentifier(accepted)] ?? replacement(accepted)
            made[ObjectIdentifier(accepted)] = state
            var save = save
            save.accepted = state
            return save
        }
    }

    /// Ends a flush that has written nothing, and whose saves are not all kept.
    mutating func withdrawFlush(leaving saves: some Sequence<PendingSave>) {
        flush = nil
        pending = Array(saves)
    }

    /// The saves that are left, as failures: the store is closed or its writer released, so they can never be written.
    var lost: [DeferredSaveFailure] {
        let error = flushError ?? StoreError(.closed, "the store was closed before the save was written. Open it, and save again")
        return pending.map { DeferredSaveFailure(metadata: $0.changes.metadata, error: error) }
    }

    /// Gives up the saves that are left. The next call that reports failures lists them.
    mutating func abandon() {
        failures += lost
        replacePending(by: [])
    }

    mutating func takeFailures() -> [DeferredSaveFailure] {
        defer { failures = [] }
        return failures
    }

    // MARK: Time

    /// Sets the time at which the saves must be on disk, if it is earlier than the present one. Returns whether it was set.
    mutating func require(by time: DispatchTime) -> Bool {
        if let deadline, deadline <= time { return false }
        deadline = time
        return true
    }

    /// Postpones the next flush, after one that failed.
    mutating func retry(at time: DispatchTime) { deadline = time }

    /// Declares that nothing must be written, or that its writing has begun.
    mutating func clearDeadline() { deadline = nil }

    /// Whether a flush must begin.
    func isDue(at now: DispatchTime) -> Bool { !isFlushing && deadline.map { $0 <= now } ?? false }
}
