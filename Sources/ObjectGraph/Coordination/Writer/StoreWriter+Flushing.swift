import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Deferred saves: they are folded so that reads stay fast, and written while further saves are accepted.
extension StoreWriter {
    /// Another process has committed although saves were deferred, because its file of claims was removed.
    struct Overtaken: Error {}

    /// Returns the error to throw to a caller: for ``Overtaken``, the error that kept the deferred saves from being written.
    func reported(_ error: any Error) -> any Error {
        guard error is Overtaken else { return error }
        return shared.withLock { $0.deferred.flushError }
            ?? StoreError(.storeBusy, "\(store.name): saving failed: another process saves at the same time. Save again")
    }

    /// Folds the saves accepted since the running flush began, and starts a flush if many rows are pending. Runs on the queue.
    func compactDeferred() {
        let rows = state.deferredRows
        foldDeferred()
        if shared.withLock({ !$0.deferred.isFlushing }), rows > Self.deferredRows { startFlush() }
    }

    private func foldDeferred() {
        let (state, flush) = shared.withLock { ($0.state, $0.deferred.flush) }
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
    }

    /// Writes all pending saves now, on the disk's queue. Runs on the queue, when no flush is running.
    func startFlush() {
        guard let flush = shared.withLock({ $0.deferred.beginFlush(of: $0.state) }) else { return }
        disk.async {
            let result = Result { try self.write(flush) }
            flush.result.withLock { $0 = result }
            self.queue.async {
                self.adopt(flush)
                // Saves accepted in the meantime may have become due.
                self.flushOverdue()
            }
        }
    }

    private func write(_ flush: DeferredSaves.Flush) throws -> DeferredSaves.Written {
        if flush.pending.contains(where: { $0.accepted != nil }) { return writeEach(flush) }
        do {
            return try writeTogether(flush.state, flush.pending)
        } catch let error where Self.isTransient(error) {
            throw error
        } catch {
            return writeEach(flush)
        }
    }

    private func writeTogether(_ state: StoreState, _ pending: [PendingSave]) throws -> DeferredSaves.Written {
        try takeSnapshots()
        let (numbers, generation) = try store.write(.durable) { transaction in
            try checkGeneration(transaction.generation, since: state.committed)
            guard transaction.generation == state.committed else { throw Overtaken() }
            let numbers = CommitNumbers(pending.map(\.sequence), first: transaction.nextGeneration)
            try state.writePending(pending, numbers, in: transaction)
            return (numbers, transaction.generation)
        }
        shared.withLock { $0.numbers.note(numbers) }
        return DeferredSaves.Written(base: lazySnapshot(after: generation), committed: generation)
    }

    /// Writes each save in its own transaction and skips those that cannot be written, so that one save does not block the rest.
    ///
    /// If the disk refuses a write, the commits so far stay, and the remaining saves are kept.
    private func writeEach(_ flush: DeferredSaves.Flush) -> DeferredSaves.Written {
        var written = DeferredSaves.Written(base: flush.state.base, committed: flush.state.committed)
        for (position, save) in flush.pending.enumerated() {
            do {
                try write(save, above: save.state(after: written.processed, in: flush), &written)
            } catch let error where Self.isTransient(error) {
                written.rest = Array(flush.pending[position...])
                written.stop = error
                return written
            } catch {
                Self.log.error(
                    "a deferred save of \(save.changes.metadata.contextName) cannot be written and is left out: \(error)")
                written.failures.append(DeferredSaveFailure(metadata: save.changes.metadata, error: error))
            }
            written.processed.insert(save.layer, at: 0)
        }
        return written
    }

    /// Writes one save with its history record.
    ///
    /// - Parameter before: The state that preceded the save when it was accepted. The save is checked again if the file has another state:
    ///   a save in it was left out or written otherwise, or other connections have committed since. They can do so only if the file of
    ///   claims was removed.
    private func write(_ save: PendingSave, above before: StoreState, _ written: inout DeferredSaves.Written) throws {
        let known = written.committed
        let mustCheck = save.accepted != nil || written.isChanged
        try takeSnapshots()
        let (checked, numbers, newest, generation) = try store.write(.durable) { transaction in
            let newest = transaction.generation
            try checkGeneration(newest, since: known)
            let checked = mustCheck || newest != known ? try checkedAgain(save, above: before) : save
            // The merge policy may have dropped all changes (S063).
            guard checked.layer === save.layer || !checked.layer.isEmpty else {
                return (checked, CommitNumbers.none, newest, newest)
            }
            let state = StoreState(base: before.base, deferred: [checked.layer], sequence: before.sequence)
            let numbers = CommitNumbers([checked.sequence], first: transaction.nextGeneration)
            try state.writePending([checked], numbers, in: transaction)
            return (checked, numbers, newest, transaction.generation)
        }
        // Record the number now, because the check of the next save compares versions. The writer of another coordinator on the file can
        // find the save from here on.
        shared.withLock { shared in
            shared.numbers.note(numbers)
            guard checked.layer !== save.layer else { return }
            shared.recent.noteRewritten(save.sequence)
            shared.numbers.noteRewritten(save.sequence)
        }
        if newest != known { written.isOvertaken = true }
        if checked.layer !== save.layer { written.isRewritten = true }
        written.base = lazySnapshot(after: generation)
        written.committed = generation
    }

    /// Checks a save against the present content of the file, inside the transaction that writes it, by the rules and the merge policy with
    /// which it was accepted.
    private func checkedAgain(_ save: PendingSave, above before: StoreState) throws -> PendingSave {
        let state = StoreState(base: try newSnapshot(), sequence: before.sequence.next)
        let request = try SaveRequest(checkingAgain: save, base: before, over: state)
        var check = SaveCheck(request: request, state: state, writer: self)
        let layer = try check.resolvedLayer()
        guard layer !== save.layer else { return save }
        var checked = save
        // Contexts may be reading the accepted rows, so write a copy.
        checked.layer = layer.copied(schema: store.schema)
        checked.layer.stamp(.accepted(save.sequence))
        checked.changes = checked.layer.changeSet(metadata: save.changes.metadata)
        checked.changes.generation = save.changes.generation
        if !request.preserved.isEmpty, layer.mayDelete {
            try checked.changes.markDeleted(preserving: request.preserved, from: state.view)
        }
        return checked
    }

    /// Whether the same write may succeed later, because the error is in the disk or file instead of the saved values.
    private static func isTransient(_ error: any Error) -> Bool {
        guard let error = error as? StoreError else { return false }
        return switch error.code {
        case .full, .readersFull, .storeBusy, .inputOutput, .readOnly, .usedAfterFork, .closed, .schemaMismatch, .schemaTooNew,
            .mustReopen, .cannotOpen, .inUseElsewhere, .fileReplaced:
            true
        default: false
        }
    }

    /// Whether the file takes no save of this process before it is opened again, or has its name back.
    static func refusesAll(_ error: any Error) -> Bool {
        guard let code = (error as? StoreError)?.code else { return false }
        return [.schemaMismatch, .schemaTooNew, .mustReopen, .fileReplaced].contains(code)
    }

    /// Waits for the running flush, if there is one, and publishes its state. Runs on the queue. No flush is running afterwards.
    func finishFlush() {
        // Adopting a flush starts the next one if saves have become due. Repeat until none is running.
        while let flush = shared.withLock({ $0.deferred.flush }) {
            disk.sync {}
            adopt(flush)
        }
    }

    /// Publishes the state after a flush: the newer base, with the saves accepted in the meantime.
    ///
    /// - Parameter source: The source under which listeners learn of the new state.
    func adopt(_ flush: DeferredSaves.Flush, from source: SaveSource = .flush) {
        guard shared.withLock({ $0.deferred.flush === flush }), let result = flush.result.withLock({ $0 }) else { return }
        defer { lookIfPostponed() }
        switch result {
        case .failure(let error):
            shared.withLock { $0.deferred.endFlush(failure: error) }
            tryAgain(after: error)
        case .success(let written):
            adopt(flush, written, from: source)
            if let error = written.stop {
                foldDeferred()
                tryAgain(after: error)
            }
        }
    }

    /// Releases the snapshots below the deferred saves. The store can open its file again only while it has none. Runs on the queue.
    func releaseBases() {
        // No other process saves before the deferred saves are written, so snapshots that are acquired later show the same.
        func unread(_ state: StoreState) -> StoreState { state.reading(lazySnapshot(after: state.base.generation)) }
        shared.withLock { shared in
            shared.state = unread(shared.state)
            shared.deferred.rebase(unread)
        }
    }

    /// Whether a retry would hardly ever write the saves. If no coordinator is left, keeping such saves would only keep other processes
    /// from saving.
    private static func isHopeless(_ error: any Error) -> Bool {
        guard let code = (error as? StoreError)?.code else { return false }
        return [.fileReplaced, .schemaMismatch, .schemaTooNew, .usedAfterFork, .closed].contains(code)
    }

    func tryAgain(after error: any Error) {
        Self.log.error("writing deferred saves failed and is tried again: \(error)")
        if (error as? StoreError)?.code == .mustReopen, snapshotRegistry.isUnused { releaseBases() }
        let retry = clock.now + .seconds(1)
        let isHopeless = Self.isHopeless(error)
        let owesSync = unsynced.isOwed(by: self)
        // Saves must not be lost with the last coordinator, so the retry keeps the writer until they are on disk.
        let kept = shared.withLock { shared -> StoreWriter? in
            shared.deferred.retry(at: retry)
            return isHopeless || shared.deferred.pending.isEmpty && !owesSync ? nil : self
        }
        clock.run(at: retry, on: queue) { [weak self] in
            self?.flushOverdue()
            withExtendedLifetime(kept) {}
        }
    }

    /// Logs the deferred saves that are lost with the writer, because no coordinator is left and a retry is hopeless. No call can
    /// report them.
    func logLostSaves() {
        let lost = shared.withLock { $0.deferred.lost }
        guard !lost.isEmpty else { return }
        var list = lost.prefix(Self.loggedSaves).map(\.description)
        if lost.count > list.count { list.append("\(lost.count - list.count) more") }
        Self.log.error(
            "\(lost.count) deferred save(s) of \(store.name) are lost with the last container: \(list.joined(separator: "; "))")
    }

    private func adopt(_ flush: DeferredSaves.Flush, _ written: DeferredSaves.Written, from source: SaveSource) {
        let (moved, listeners) = shared.withLock { shared -> (StoreState, [SaveListeners.Call]) in
            let newer = shared.state.deferred.dropLast(flush.state.deferred.count)
            let accepted = shared.state.pendingSaves - flush.state.pendingSaves
            let sequence = written.isChanged ? shared.state.sequence.next : shared.state.sequence
            shared.deferred.endFlush(flush, written)
            shared.state = StoreState(
                base: written.base, committed: written.committed, deferred: newer + written.rest.reversed().map(\.layer),
                pendingSaves: accepted + written.rest.count, sequence: sequence)
            if written.isChanged { shared.recent.append(.unknown, sequence) }
            return (shared.state, shared.listeners.all)
        }
        // Notify contexts, so that they release the old snapshot, and the layers that are now in the file.
        for listener in listeners { listener(moved, written.isChanged ? .externalProcess : source) }
        if moved.pendingSaves == 0 {
            claim.release()
        } else if written.stop == nil, claim.isWanted {
            startFlush()
        }
    }

    func flushOverdue() {
        let now = clock.now
        guard shared.withLock({ $0.deferred.isDue(at: now) }) else { return }
        if capabilities.contains(.layeredDeferral) { return startFlush() }
        // The store has committed these saves without a sync. No caller waits for them, or would learn of an error.
        shared.withLock { $0.deferred.clearDeadline() }
        enqueue(
            SaveJob(request: nil, source: .flush) { [weak self] result in
                guard case .failure(let error) = result, (error as? StoreError)?.code != .closed else { return }
                self?.tryAgain(after: error)
            })
    }
}

/// A deferred save that was acknowledged and could not be written, although the disk was in order.
///
/// ```swift
/// do {
///     try await coordinator.flush()
/// } catch SaveError.deferredSavesFailed(let failures) {
///     for failure in failures { print(failure.metadata.contextName, failure.error) }
/// }
/// ```
public struct DeferredSaveFailure: Sendable, Equatable, CustomStringConvertible {
    /// The context that saved, its author and the time.
    public let metadata: SaveMetadata
    /// The store's error.
    public let error: any Error

    /// The context, the time and the error of the save, as one line.
    public var description: String { "the save of \(metadata.contextName) at \(metadata.date): \(error)" }

    /// Returns whether two failures have the same metadata and equal errors.
    public static func == (a: DeferredSaveFailure, b: DeferredSaveFailure) -> Bool {
        a.metadata == b.metadata && ErrorComparison.areEqual(a.error, b.error)
    }
}

extension PendingSave {
    /// Returns the state that preceded the save when it was accepted.
    ///
    /// - Parameters:
    ///   - processed: The earlier saves of the flush as they were accepted, newest first.
    ///   - flush: The flush that writes the save, or during which it was accepted.
    func state(after processed: [Layer], in flush: DeferredSaves.Flush) -> StoreState {
        StoreState(
            base: (accepted ?? flush.state).base, deferred: processed + (accepted?.deferred ?? []), sequence: .zero)
    }

    /// Returns saves as they remain pending after a flush. Saves that were accepted over one state share it.
    static func remaining(
        _ saves: [PendingSave], after flush: DeferredSaves.Flush, _ written: DeferredSaves.Written
    ) -> [PendingSave] {
        var made: [ObjectIdentifier: StoreState] = [:]
        return saves.map { save in
            guard written.isChanged || save.accepted != nil else { return save }
            let known = ObjectIdentifier(save.accepted ?? flush.state)
            let state = made[known] ?? save.state(after: written.processed, in: flush)
            made[known] = state
            var save = save
            save.accepted = state
            return save
        }
    }
}

extension StoreState {
    /// The number of rows and pairs of the deferred saves in memory.
    var deferredRows: Int { deferred.reduce(0) { $0 + $1.weight } }

    /// Writes the pending saves, oldest first, with their history records. A layer may contain several saves, or, after an insert and a
    /// delete, none.
    func writePending(_ pending: [PendingSave], _ numbers: CommitNumbers, in transaction: any StoreTransaction) throws {
        var rest = pending[...]
        for layer in deferred.reversed() {
            guard let newest = layer.version.sequence else { continue }
            while let next = rest.first, next.sequence < newest { try record(rest.removeFirst(), numbers, in: transaction) }
            try transaction.apply(layer, changes: rest.popFirst()?.changes ?? layer.changeSet(), numbers: numbers)
        }
        for save in rest { try record(save, numbers, in: transaction) }
    }

    /// Writes the history record of a save whose rows are written with another save's layer.
    private func record(_ save: PendingSave, _ numbers: CommitNumbers, in transaction: any StoreTransaction) throws {
        let layer = Layer(schema: base.schema)
        layer.setVersion(.accepted(save.sequence))
        layer.seal()
        try transaction.apply(layer, changes: save.changes, numbers: numbers)
    }
}
