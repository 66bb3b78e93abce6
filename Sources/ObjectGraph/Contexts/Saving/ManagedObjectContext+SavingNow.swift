import StoreInterface
import StoreModel

/// Saving without suspension, for code that cannot be asynchronous.
extension ManagedObjectContext {
    /// Saves a root context and returns when all other contexts can see the changes.
    ///
    /// The steps are those of ``save(_:)``. The calling thread waits for the saves that the writer is processing, and for its own check. With
    /// `.deferred` it does not wait for the disk, nor for the sync of durable saves: see ``StoreWriter/acceptWhileCommitting(_:from:)`` and
    /// ``StoreWriter/separateSync(of:)``. On every store it does wait if a context that merges by itself makes the durable save, and if no
    /// thread has waited for a save, or announced one by ``expectSynchronousSave()``, in the minute before that one began.
    ///
    /// With layered deferral, it also waits if deferred saves fill the memory, if they are being written when a durable save comes, if the
    /// save concerns an object of a durable save, if the model has derived attributes, and if the merge policy is custom. On SQLite, it
    /// also waits if a thread waits for the durable save, or for a flush, if keys are leased, and if SQLite copies its log into the file.
    ///
    /// A child of a context with the same executor saves to its parent.
    ///
    /// - Throws: ``SaveError`` or the store's error, as `save` does. `StoreError` `.unsupported` during another save of the context, and in
    ///   a child whose parent has another executor. `StoreError` `.suspended` while the store is suspended, also if a suspension begins
    ///   before the changes are handed to the writer. Then the context and the store are unchanged.
    package func saveNow(_ durability: Durability = .deferred) throws {
        checkIsolation()
        let confinement = phase.isMoving ? nil : place.confinement
        confinement?.runJobs(in: self)
        // This is decided again when the save is handed over, after hooks and validation.
        if isRoot, isStoreSuspended { throw StoreError.suspended(configuration.writer.store.name) }
        try using {
            // Within the use, so that no suspension comes between. The context does not move to the newest state, because the check
            // compares with the state that the program has seen.
            if let confinement { resumeConfined(confinement) }
            try saveInTurnNow(durability)
        }
    }

    /// Announces a deferred call of ``saveNow(_:)`` within the next minute. It then does not wait for the sync of durable saves that begin
    /// after this call. Reads nothing, so that it may be called in the middle of a change.
    package func expectSynchronousSave() { configuration.writer.expectSavers() }

    private func saveInTurnNow(_ durability: Durability) throws {
        guard phase.saveGate.enterIfIdle() else {
            throw StoreError(
                .unsupported,
                "cannot save \(name) now: another save of it is running. Wait for that save, or use the asynchronous save")
        }
        defer { endSave() }
        try checkOpen()
        guard isRoot else { return try saveToParentNow() }
        guard try moving(prepareSave) else { return }
        try configuration.coordinator.checkOpen()
        let outcome = try configuration.writer.suspension.whileOpen(configuration.writer.store) {
            var request = saveRequest(layerStack.sealed, durability)
            request.trace = trace(of: request)
            if let route = layerStack.baseState.route {
                return try route.write(request.layers) { [request] in
                    try configuration.writer.submitAndWait(request, from: .context(number))
                }
            }
            return try occupied { try configuration.writer.submitAndWait(request, from: .context(number)) }
        }
        moving { _ = didWrite(outcome) }
    }

    private func saveToParentNow() throws {
        guard let link = configuration.parent else { return }
        guard link.place.executor === place.executor else {
            throw StoreError(
                .unsupported,
                "cannot save \(name) now: its parent \(link.name) has another executor. Use the asynchronous save")
        }
        guard let parent = link.contextExecutor else { throw SaveError.parentGone(context: name) }
        guard try moving(prepareSave) else { return }
        let push = makePush()
        var result: Result<ParentState, any Error>?
        parent.runHere { parent in result = Result { try parent.moving { try parent.merge(child: push) } } }
        guard let result else { throw SaveError.parentGone(context: name) }
        let state = try result.get()
        moving { didPush(push, state) }
    }
}

extension StoreWriter {
    /// Submits a save and waits until it is published or refused. Blocks; do not call it on the writer's queues.
    func submitAndWait(_ request: SaveRequest, from source: SaveSource) throws -> SaveOutcome {
        let result = Result {
            if let refusal { throw refusal }
            if let accepted = acceptWhileCommitting(request, from: source) { return accepted }
            return try process(request, from: source)
        }
        request.trace?.end(result, self)
        return try result.get()
    }

    /// Waits until all earlier saves are on disk. Blocks; do not call it on the writer's queues.
    func flushAndWait(reportsFailures: Bool = true) throws {
        _ = try process(nil, from: .flush, reportsFailures: reportsFailures)
    }

    private func process(_ request: SaveRequest?, from source: SaveSource, reportsFailures: Bool = false) throws -> SaveOutcome {
        // The variable is set on the queue, before `sync` returns.
        nonisolated(unsafe) var result: Result<SaveOutcome, any Error>?
        _ = try add(
            SaveJob(request: request, source: source, reportsFailures: reportsFailures, isSynchronous: true) { result = $0 })
        // If the queue is idle, the calling thread processes the job. Otherwise an earlier block may process it first.
        queue.sync { if result == nil { drain() } }
        guard let result else { preconditionFailure("the writer has lost a save") }
        return try result.get()
    }
}
