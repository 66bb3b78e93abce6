internal import Platform
import StoreInterface
import StoreModel

extension StoreWriter {
    /// The number of saves deleted in one transaction, which takes some milliseconds of the writer's time.
    private static let deletedAtOnce = 1024

    /// Deletes the beginning of the history in small transactions. Other saves run between them. While the store is suspended, waits until it
    /// is resumed.
    func deleteHistory(_ cut: HistoryCut, for coordinator: PersistentStoreCoordinator) async throws -> Int {
        var total = 0
        while true {
            try await suspension.enter(for: coordinator)
            defer { suspension.leave() }
            let count = try await onQueue { try $0.deleteSome(cut) }
            total += count
            if count < Self.deletedAtOnce { return total }
        }
    }

    /// Deletes the beginning of the history as ``deleteHistory(_:for:)`` does. Blocks; do not call it on the writer's queues.
    ///
    /// - Throws: `StoreError` `.suspended` while the store is suspended.
    func deleteHistoryAndWait(_ cut: HistoryCut) throws -> Int {
        var total = 0
        while true {
            let count = try suspension.whileOpen(store) { try queue.sync { try deleteSome(cut) } }
            total += count
            if count < Self.deletedAtOnce { return total }
        }
    }

    /// The newest save that is on disk while this process has committed later ones to the file without a sync; `.max` if it has not.
    var newestSynced: Generation { unsynced.newestSynced }

    /// Takes the saves that this process has committed to the file without a sync to disk, those of other containers too. Blocks; do not
    /// call it on a writer's queues.
    func syncCommitted() throws {
        for writer in unsynced.writers { try writer.flushAndWait(reportsFailures: false) }
    }

    /// Waits until the saves that other writers of this process have committed to the file without a sync are on disk.
    func flushOthers() async throws {
        for writer in unsynced.writers where writer !== self {
            _ = try await withCompletion { writer.enqueue(SaveJob(request: nil, source: .flush, completion: $0)) }
        }
    }

    /// Whether a state may lack the save with a generation.
    ///
    /// The deferred saves in the state have provisional generations. If one of them was left out since, a later save has its generation.
    func mayLack(_ generation: Generation, _ state: StoreState) -> Bool {
        if generation > state.generation { return true }
        guard generation > state.committed else { return false }
        return shared.withLock { shared in
            guard let steps = shared.recent.steps(after: state.sequence, through: shared.state.sequence) else { return true }
            return steps.contains { if case .unknown = $0 { true } else { false } }
        }
    }

    /// The newest save in the file that a state contains.
    ///
    /// A state with deferred saves counts each of them as one. If one was left out since, the later ones have smaller generations.
    func newestStored(in state: StoreState) -> Generation {
        if state.pendingSaves == 0 { return max(state.committed, state.generationOfBase) }
        return max(state.committed, shared.withLock { $0.numbers.newest(through: state.sequence) } ?? 0)
    }

    /// Whether a row has the version of the save with a generation. The generation of a save in memory is provisional.
    func isVersion(_ version: RowVersion, of generation: Generation) -> Bool {
        guard let sequence = version.sequence else { return version == .committed(generation) }
        return shared.withLock { shared in
            let committed = shared.numbers.generation(of: sequence)
            return committed ?? shared.deferred.pending.first { $0.sequence == sequence }?.changes.generation
        } == generation
    }

    private func deleteSome(_ cut: HistoryCut) throws -> Int {
        try transaction { try $0.deleteHistory(cut, limit: Self.deletedAtOnce) }
    }
}
