internal import Platform
import StoreInterface
import StoreModel

/// Previews of saves (S065).
extension ManagedObjectContext {
    /// Runs a save's validation, conflict and uniqueness checks, and its writes, in a transaction that is then aborted.
    ///
    /// Nothing is saved or changed. `willSave` hooks are not called, because they may change objects.
    /// In a child, this previews `save(through: .store)`: the changes of this context, its parents and the root.
    /// Deferred saves that cannot be written together are written one by one first, as they are before a save.
    ///
    /// The cost is that of the save without waiting for the disk. The executors are not blocked. On LMDB, large values of more than
    /// 16 MiB together are written before the transaction and removed after it.
    nonisolated(nonsending) public func previewSave() async -> SavePreview {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        do { try await setup.writer.suspension.enter(for: setup.coordinator) } catch { return SavePreview(failure: error) }
        defer { setup.writer.suspension.leave() }
        checkIsolation()
        await beginSave()
        defer { endSave() }
        do {
            let uses = try beginUse()
            defer { uses?.end() }
            return try await preview(layersToTry(), origin)
        } catch {
            return SavePreview(failure: error)
        }
    }

    /// Returns own changes after validation, oldest first and sealed.
    private func layersToTry() throws -> [Layer] {
        try checkOpen()
        try tracker.keyed.check()
        guard hasChanges else { return [] }
        postPendingChanges()
        try validate()
        sealTop()
        return layerStack.sealed
    }

    nonisolated(nonsending) private func preview(_ layers: [Layer], _ origin: SaveOrigin) async throws -> SavePreview {
        if isRoot { return layers.isEmpty ? SavePreview() : await setup.writer.preview(requestToTry(layers, origin)) }
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        let (request, writer) = try await withCompletion { completion in
            let isEnqueued = parent.enqueue { $0.gather(layers, origin: origin, completion) }
            if !isEnqueued { completion(.failure(SaveError.parentGone(context: name))) }
        }
        return request.layers.isEmpty ? SavePreview() : await writer.preview(request)
    }

    private func requestToTry(_ layers: [Layer], _ origin: SaveOrigin) -> SaveRequest {
        var request = saveRequest(layers, .durable)
        request.origin = origin.orAuthor(transactionAuthor)
        return request
    }

    /// Combines this context's changes with a child's and forwards both to the parent. The root creates a save request of them.
    private func gather(
        _ above: [Layer], origin: SaveOrigin,
        _ completion: @escaping @Sendable (Result<(SaveRequest, StoreWriter), any Error>) -> Void
    ) {
        // Wait for a running save, whose changes no longer belong to this context.
        whenIdle { [self] in
            defer { endSave() }
            do {
                let own = try layersToTry()
                let layers = own + layersAbove(own, above)
                let origin = origin.orAuthor(transactionAuthor)
                if isRoot { return completion(.success((requestToTry(layers, origin), setup.writer))) }
                guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
                let isEnqueued = parent.enqueue { $0.gather(layers, origin: origin, completion) }
                if !isEnqueued { throw SaveError.parentGone(context: name) }
            } catch {
                completion(.failure(error))
            }
        }
    }
}

extension BackgroundContext {
    /// Returns the result that a save would have, without saving: see ``ManagedObjectContext/previewSave()`` (S065).
    public func previewSave() async -> SavePreview { await context.previewSave() }
}
