import StoreInterface
import StoreModel

extension StoreWriter {
    /// Thrown to abort the transaction of a preview.
    private struct PreviewRollback: Error {}

    /// Thrown if the deferred saves must be written before the preview, as they are before a save.
    private struct MustFlush: Error {
        var cause: any Error
    }

    /// Checks a request and writes it, with the deferred saves before it, in a transaction that is then aborted.
    func preview(_ request: SaveRequest) async -> SavePreview {
        do {
            return try await onQueue { writer in
                writer.finishFlush()
                return writer.previewNow(request)
            }
        } catch {
            return SavePreview(failure: error)
        }
    }

    /// Runs on the queue, when no flush is running.
    private func previewNow(_ request: SaveRequest) -> SavePreview {
        do {
            return try tried(request)
        } catch {
            // Another process has saved, or a deferred save cannot be written. Only a flush settles either.
            startFlush()
            finishFlush()
        }
        do {
            return try tried(request)
        } catch {
            return SavePreview(failure: reported((error as? MustFlush)?.cause ?? error))
        }
    }

    /// - Throws: ``MustFlush``.
    private func tried(_ request: SaveRequest) throws -> SavePreview {
        var request = request
        request.isPreview = true
        let start = state
        var preview = SavePreview()
        preview.schema = store.schema
        do {
            try transaction { transaction in
                let base = try writtenBase(start, transaction)
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
        } catch let error as MustFlush {
            throw error
        } catch {
            preview.changes = ChangeSet()
            preview.failure = error
        }
        return preview
    }

    /// Returns the state that the save would follow, after writing the deferred saves in it.
    private func writtenBase(_ start: StoreState, _ transaction: any StoreTransaction) throws -> StoreState {
        let pending = shared.withLock { $0.deferred.pending }
        do {
            let base = try currentBase(start, transaction)
            if pending.contains(where: { $0.accepted != nil }) { throw Overtaken() }
            try base.writePending(
                pending, CommitNumbers(pending.map(\.sequence), first: transaction.nextGeneration), in: transaction)
            return base
        } catch {
            throw MustFlush(cause: error)
        }
    }

    /// Stamps a layer as the save that follows a state, and returns its changes for the history.
    func stamp(_ layer: Layer, _ request: SaveRequest, after state: StoreState) throws -> ChangeSet {
        layer.stamp(.accepted(state.sequence.next))
        var changes = layer.changeSet(
            metadata: .now(author: request.metadata.author, contextName: request.metadata.contextName))
        // Provisional: the store numbers the save when it is committed.
        changes.generation = state.generation.next
        if !request.preserved.isEmpty, layer.mayDelete {
            try changes.markDeleted(preserving: request.preserved, from: state.view)
        }
        return changes
    }
}
