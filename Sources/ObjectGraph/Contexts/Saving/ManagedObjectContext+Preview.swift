import StoreInterface

/// What a save would do (S065).
extension ManagedObjectContext {
    /// Runs a save's validation, conflict and uniqueness checks, and its writing, in a transaction that is aborted. Nothing is saved or
    /// changed; `willSave` hooks, which may change objects, are not called.
    ///
    /// In a child it says what `save(through: .store)` would do: this context's changes, its parents' and the root's.
    /// Costs what the save would, but for the disk; the executors are free meanwhile. Large values of more than 16 MiB together are written
    /// all the same, on LMDB, before the transaction, and taken out after it.
    nonisolated(nonsending) public func previewSave() async -> SavePreview {
        checkIsolation()
        await beginSave()
        defer { endSave() }
        do {
            return try await preview(layersToTry(), origin)
        } catch {
            return SavePreview(failure: error)
        }
    }

    /// Own changes, checked, oldest first and sealed.
    private func layersToTry() throws -> [Layer] {
        try checkOpen()
        guard hasChanges else { return [] }
        processPendingChanges()
        try validate()
        sealTop()
        return sealed
    }

    nonisolated(nonsending) private func preview(_ layers: [Layer], _ origin: SaveOrigin) async throws -> SavePreview {
        if isRoot { return layers.isEmpty ? SavePreview() : await setup.writer.preview(requestToTry(layers, origin)) }
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        let (request, writer) = try await withCheckedThrowingContinuation { continuation in
            parent.enqueue { $0.gather(layers, origin) { continuation.resume(with: $0) } }
        }
        return request.layers.isEmpty ? SavePreview() : await writer.preview(request)
    }

    private func requestToTry(_ layers: [Layer], _ origin: SaveOrigin) -> SaveRequest {
        var request = saveRequest(layers, .durable)
        request.origin = origin.orAuthor(transactionAuthor)
        return request
    }

    /// Puts this context's changes below a child's and asks the parent to do the same; the root makes a request of them.
    private func gather(
        _ above: [Layer], _ origin: SaveOrigin,
        _ completion: @escaping @Sendable (Result<(SaveRequest, StoreWriter), any Error>) -> Void
    ) {
        // After a running save, whose changes are no longer this context's.
        whenIdle { [self] in
            defer { endSave() }
            do {
                let own = try layersToTry()
                let layers = own + layersAbove(own, above)
                let origin = origin.orAuthor(transactionAuthor)
                if isRoot { return completion(.success((requestToTry(layers, origin), setup.writer))) }
                guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
                parent.enqueue { $0.gather(layers, origin, completion) }
            } catch {
                completion(.failure(error))
            }
        }
    }
}

extension BackgroundContext {
    /// What a save would do, found out without doing it: see ``ManagedObjectContext/previewSave()`` (S065).
    public func previewSave() async -> SavePreview { await context.previewSave() }
}
