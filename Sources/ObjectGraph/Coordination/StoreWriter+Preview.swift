import StoreInterface

extension StoreWriter {
    /// Thrown to abort a transaction that was only tried.
    private struct Tried: Error {}

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
                try base.writeDeferred(unwritten(in: base), in: transaction)
                var check = SaveCheck(request: request, state: base, writer: self)
                // Also when it throws: the conflicts are the answer then.
                defer { preview.conflicts = check.met }
                // A copy, because the context goes on with its own layers.
                let layer = try check.resolvedLayer().shifted(by: 0, schema: store.schema)
                guard !layer.isEmpty else { throw Tried() }
                layer.stamp(base.generation + 1)
                preview.changes = try changes(of: layer, request, before: base)
                try transaction.apply(layer, changes: preview.changes)
                throw Tried()
            }
        } catch is Tried {
            return preview
        } catch {
            preview.changes = ChangeSet()
            preview.failure = error
        }
        return preview
    }

    /// What a stamped layer changes, as the history will have it.
    func changes(of layer: Layer, _ request: SaveRequest, before state: StoreState) throws -> ChangeSet {
        var changes = layer.changeSet(
            origin: .now(author: request.origin.author, contextName: request.origin.contextName))
        if !request.preserved.isEmpty, layer.mayDelete {
            try changes.bury(preserving: request.preserved, from: state.view)
        }
        return changes
    }
}
