internal import Platform
import StoreInterface
import StoreModel

/// Previews of saves (S065).
extension ManagedObjectContext {
    /// Runs a save's validation, conflict and uniqueness checks, and its writes, in a transaction that is then aborted.
    ///
    /// Nothing is saved or changed. `willSave` hooks are not called, because they may change objects.
    /// In a child, this previews `save(through: .store)`: the changes of this context, its parents and the root. If there are any, a parent
    /// that reads an older state of the store than the child moves to the child's state, which a save does too.
    /// Deferred saves that cannot be written together are written one by one first, as they are before a save.
    ///
    /// The cost is that of the save without waiting for the disk. The executors are not blocked. On LMDB, large values of more than
    /// 16 MiB together are written before the transaction and removed after it.
    nonisolated(nonsending) public func previewSave() async -> SavePreview {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        do { try await configuration.writer.suspension.enter(for: configuration.coordinator) } catch {
            return SavePreview(failure: error)
        }
        defer { configuration.writer.suspension.leave() }
        checkIsolation()
        await beginSave()
        defer { endSave() }
        do {
            let uses = try beginUse()
            defer { uses?.end() }
            return try await preview()
        } catch {
            return SavePreview(failure: error)
        }
    }

    /// Returns own changes after validation, oldest first and sealed.
    private func layersToTry() throws -> [Layer] {
        try checkOpen()
        try checkKeyedChanges()
        guard hasChanges else { return [] }
        postPendingChanges()
        try validate()
        sealTop()
        return layerStack.sealed
    }

    nonisolated(nonsending) private func preview() async throws -> SavePreview {
        let layers = try layersToTry()
        if isRoot { return layers.isEmpty ? SavePreview() : await configuration.writer.preview(saveRequest(layers, .durable)) }
        guard let parent = configuration.parent?.contextExecutor else { throw SaveError.parentGone(context: name) }
        // Only until the push is made, so that the changes can be rolled back during the preview.
        if !layers.isEmpty { layerStack.beginSave() }
        let push = makePush()
        layerStack.endSave()
        let (request, writer) = try await withCompletion { completion in
            let isEnqueued = parent.enqueue { $0.gather(push, completion) }
            if !isEnqueued { completion(.failure(SaveError.parentGone(context: name))) }
        }
        return request.layers.allSatisfy(\.isEmpty) ? SavePreview() : await writer.preview(request)
    }

    /// Combines this context's changes with a child's and forwards both to the parent, as a save would. The root creates a save request of
    /// them.
    private func gather(
        _ push: ChildChanges, _ completion: @escaping @Sendable (Result<(SaveRequest, StoreWriter), any Error>) -> Void
    ) {
        // Wait for a running save, whose changes no longer belong to this context.
        whenIdle { [self] in
            defer { endSave() }
            do {
                var push = push
                try checkAccepts(push)
                // As in a save, a context with nothing to save does not move.
                if layerStack.baseState.route == nil, !savesNothing([push]) || !wouldMove(with: push) { catchUp(with: &push) }
                // As in a save, changes that cancel each other are not taken.
                if try !layersToTry().isEmpty { layerStack.beginSave() }
                let joined = joined(applicable([push]))
                if isRoot { return completion(.success((saveRequest(with: joined, .durable), configuration.writer))) }
                guard let parent = configuration.parent?.contextExecutor else { throw SaveError.parentGone(context: name) }
                let all = self.push(of: joined)
                let isEnqueued = parent.enqueue { $0.gather(all, completion) }
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
