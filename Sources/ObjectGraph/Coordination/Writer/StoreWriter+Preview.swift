import StoreInterface
import StoreModel

extension StoreWriter {
    /// Thrown to abort the transaction of a preview.
    private struct PreviewRollback: Error {}

    /// Checks a request and writes it, with the deferred saves before it, in a transaction that is then aborted.
    func preview(_ request: SaveRequest) async -> SavePreview {
        do {
            return try await onQueue { writer in
                writer.finishFlush()
                return writer.tried(request)
            }
        } catch {
            return SavePreview(failure: error)
        }
    }

    private func tried(_ request: SaveRequest) -> SavePreview {
        var request = request
        request.isPreview = true
        let start = state
        var preview = SavePreview()
        do {
            try transaction { transaction in
                let base = try currentBase(start, transaction)
                let pending = shared.withLock { $0.deferred.pending }
                try base.writePending(
                    pending, CommitNumbers(pending.map(\.sequence), first: transaction.nextGeneration), in: transaction)
                var check = SaveCheck(request: request, state: base, writer: self)
                // Also if the check throws: the conflicts are the result then.
                defer { preview.conflicts = check.met }
                // Use a copy, because the context continues to use its own layers.
                let layer = try check.resolvedLayer().copied(schema: store.schema)
                guard !layer.isEmpty else { throw PreviewRollback() }
                preview.changes = try stamp(layer, request, after: base)
                let numbers = CommitNumbers([base.sequence.next], first: transaction.nextGeneration)
                preview.changes.generation = numbers.first
                try transaction.apply(layer, changes: preview.changes, numbers: numbers)
                throw PreviewRollback()
            }
        } catch is PreviewRollback {
            return preview
        } catch {
            preview.changes = ChangeSet()
            preview.failure = error
        }
        return preview
    }

    /// Stamps a layer as the save that follows a state, and returns its changes for the history.
    func stamp(_ layer: Layer, _ request: SaveRequest, after state: StoreState) throws -> ChangeSet {
        layer.stamp(.accepted(state.sequence.next))
        var changes = layer.changeSet(
            origin: .now(author: request.origin.author, contextName: request.origin.contextName))
        // Provisional: the store numbers the save when it is committed.
        changes.generation = state.generation + 1
        if !request.preserved.isEmpty, layer.mayDelete {
            try changes.markDeleted(preserving: request.preserved, from: state.view)
        }
        return changes
    }
}
