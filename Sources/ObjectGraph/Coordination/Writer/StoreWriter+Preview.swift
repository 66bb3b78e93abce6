import StoreInterface

extension StoreWriter {
    /// Thrown to abort a transaction that was only tried.
    private struct PreviewRollback: Error {}

    /// Checks a request and writes it, with what is deferred before it, in a transaction that is then aborted.
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
                let pending = shared.withLock { $0.pending }
                try base.writePending(
                    pending, CommitNumbers(pending.map(\.sequence), after: transaction.generation), in: transaction)
                var check = SaveCheck(request: request, state: base, writer: self)
                // Also when it throws: the conflicts are the answer then.
                defer { preview.conflicts = check.met }
                // A copy, because the context goes on with its own layers.
                let layer = try check.resolvedLayer().copied(schema: store.schema)
                guard !layer.isEmpty else { throw PreviewRollback() }
                preview.changes = try stamp(layer, request, after: base)
                let numbers = CommitNumbers([base.sequence.next], after: transaction.generation)
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

    /// Makes a layer the save that follows a state, and returns what it changes, as the history will have it.
    func stamp(_ layer: Layer, _ request: SaveRequest, after state: StoreState) throws -> ChangeSet {
        layer.stamp(.accepted(state.sequence.next))
        var changes = layer.changeSet(
            origin: .now(author: request.origin.author, contextName: request.origin.contextName))
        changes.generation = state.generation + 1
        if !request.preserved.isEmpty, layer.mayDelete {
            try changes.markDeleted(preserving: request.preserved, from: state.view)
        }
        return changes
    }
}
