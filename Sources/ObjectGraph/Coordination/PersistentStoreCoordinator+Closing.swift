import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Closing: see ``PersistentContainer/close()``.
extension PersistentStoreCoordinator {
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    var closedError: StoreError { StoreError.closed(store.name) }

    /// Whether a context that is created now has to close itself. False until the contexts are being closed, because closing can fail before.
    var closesNewContexts: Bool { closesContexts.load(ordering: .acquiring) }

    /// - Throws: `StoreError` `.closed` after the container was closed.
    func checkOpen() throws { if isClosed { throw closedError } }

    /// Ends the sequences of saves and leaves the writer, once.
    func leaveWriter(closing: Bool) {
        if hasLeft.exchange(true, ordering: .acquiringAndReleasing) { return }
        // Before leaving: the last coordinator that leaves closes the writer, which forgets the sequences of all.
        for end in writer.shared.withLock({ $0.listeners.endings(of: ObjectIdentifier(self)) }) { end() }
        StoreWriterRegistry.leave(writer, closing: closing)
    }

    /// Ends the reads of every confined context of this coordinator, and waits for its running request or save.
    ///
    /// - Throws: `StoreError` `.inUseElsewhere` with the names of contexts whose use did not end in time.
    func endConfinedReads(within patience: Duration) async throws {
        let contexts = writer.snapshotRegistry.confined(of: self)
        guard !contexts.isEmpty else { return }
        let end = ContinuousClock.now + patience
        let busy = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: contexts.filter { !$0.uses.close(within: end - .now) }.map(\.name).sorted())
            }
        }
        guard let first = busy.first else { return }
        let names = busy.count == 1 ? "the context \(first) is" : "the contexts \(busy.joined(separator: ", ")) are"
        throw StoreError(
            .inUseElsewhere,
            "cannot close \(store.name): \(names) in use on another thread. End the request or save there, and close the container again"
        )
    }

    /// Closes every context of this coordinator, each on its executor after its running saves.
    func closeContexts() async {
        // Before the contexts are listed, so that none is forgotten.
        closesContexts.store(true, ordering: .releasing)
        await withTaskGroup(of: Void.self) { group in
            for place in writer.snapshotRegistry.places() {
                guard let contextExecutor = place.contextExecutor else { continue }
                if place.confinement != nil {
                    // The next use closes a confined context. Its reads end without it: see ``endConfinedReads(within:)``.
                    contextExecutor.enqueue { [self] context in if context.configuration.coordinator === self { context.close {} }
                    }
                    continue
                }
                group.addTask { [self] in
                    await withCheckedContinuation { continuation in
                        let isEnqueued = contextExecutor.enqueue { context in
                            guard context.configuration.coordinator === self else { return continuation.resume() }
                            context.close { continuation.resume() }
                        }
                        if !isEnqueued { continuation.resume() }
                    }
                }
            }
        }
    }
}

extension StoreWriter {
    var isRetired: Bool { retired.load(ordering: .acquiring) }

    /// Waits until all submitted saves are completed and all deferred saves are on disk, except those that can never be written: see
    /// ``takeFailures()``.
    func finishSaves() async throws {
        let owes = try await onQueue { writer in
            while writer.shared.withLock({ !$0.waiting.isEmpty }) { writer.drain() }
            return writer.shared.withLock { $0.deferred.isOwed || $0.syncs.isOwed }
        }
        if owes { _ = try await withCompletion { enqueue(SaveJob(request: nil, source: .flush, completion: $0)) } }
    }

    /// Writes the deferred saves. Returns the error of saves that this writer can never write.
    ///
    /// - Throws: The error of saves that may be written later.
    func finishSavesThatCanBeWritten() async throws -> (any Error)? {
        do { try await finishSaves() } catch let error where isFinal(error) { return error }
        return nil
    }

    /// Returns whether a retry cannot write the saves either.
    private func isFinal(_ error: any Error) -> Bool {
        guard let code = (error as? StoreError)?.code else { return false }
        // The file cannot be opened again while contexts read it. When the last container has closed them, it takes the saves.
        if code == .mustReopen { return !isRetired }
        return [.fileReplaced, .schemaTooNew, .usedAfterFork, .closed].contains(code)
    }

    /// Returns the deferred saves that were left out and not reported yet. The caller reports them.
    func takeFailures() -> [DeferredSaveFailure] { shared.withLock { $0.deferred.takeFailures() } }

    /// Prepares the last try to write deferred saves: nothing reads the store any more, so that it can open its file again.
    ///
    /// - Precondition: Every coordinator has left the writer, and its contexts are closed.
    func endReads() async throws {
        guard state.pendingSaves > 0 else { return }
        try await onQueue { writer in
            writer.finishFlush()
            writer.releaseBases()
        }
        // Snapshots that the program retains.
        snapshotRegistry.close(state.closed(store))
    }

    /// Closes the store after the last coordinator was deallocated, because another one was closed before (S168). Does nothing if a
    /// coordinator has come to use the writer meanwhile.
    ///
    /// - Throws: The errors of ``PersistentContainer/close()``, which are also logged. If deferred saves cannot be written now, the writer
    ///   is not retired, and goes on trying (S066).
    func closeUnused() async throws {
        do {
            _ = try await finishSavesThatCanBeWritten()
            guard StoreWriterRegistry.retireIfUnused(self) else { return }
            // A save may have been accepted in between, and a file that must be opened again can be opened now.
            try await endReads()
            let lost = try await finishSavesThatCanBeWritten()
            try await close()
            let failures = takeFailures()
            if !failures.isEmpty { throw SaveError.deferredSavesFailed(failures) }
            if let lost { throw lost }
        } catch {
            if StoreWriterRegistry.closingFailed(self) {
                Self.log.error("cannot close \(store.name) after its last container was released, and tries it again: \(error)")
            }
            // A stream that reads the store may end, or a disk may get space, without a call that closes it again.
            DispatchQueue.global().asyncAfter(deadline: .now() + 1) { [weak self] in
                if let self { StoreWriterRegistry.closeIfUnused(self) }
            }
            throw error
        }
    }

    /// Ends all use of the store, and closes it. Does nothing if it is closed.
    ///
    /// - Precondition: Every coordinator has left the writer.
    func close() async throws {
        // A suspension that is running would close the file again.
        await suspension.beginTurn()
        defer { suspension.endTurn() }
        // Another call has closed the store while this one waited.
        guard StoreWriterRegistry.isKnown(self) else { return }
        // Building indexes may wait for a resumption that does not come. It ends with an error now.
        resumeMigration()
        try await onQueue { writer in
            writer.finishFlush()
            writer.claim.release()
            writer.shared.withLock { shared in
                shared.deferred.clearDeadline()
                shared.listeners.removeAll()
            }
        }
        setSnapshotBudget(nil)
        claim.stopWatching()
        externalCommits.watch.withLock { $0 = nil }
        try await onDisk { writer in
            if let rests = writer.keys.drain() { Self.giveBack(rests, to: writer.store) }
        }
        // Snapshots that the program retains must release the file too.
        let closed = state.closed(store)
        try await onQueue { writer in
            writer.shared.withLock { shared in
                // Saves that are given up are in no file, so no position in the history may come after them (S160).
                let committed = ClosedSnapshot(writer.store, generation: shared.state.committed)
                shared.state = StoreState(base: committed, sequence: closed.sequence)
                shared.deferred.abandon()
                shared.unsynced.didSync(by: writer, through: nil)
            }
            writer.snapshotRegistry.unacquired.removeAll()
        }
        snapshotRegistry.close(closed)
        try await onDisk { try $0.store.shutDown() }
        StoreWriterRegistry.forget(self)
    }

    func onDisk(_ body: @escaping @Sendable (StoreWriter) throws -> Void) async throws {
        try await withCompletion { completion in disk.async { completion(Result { try body(self) }) } }
    }
}

extension StoreState {
    /// Returns the state to read after the store was closed. It contains no objects, and requests throw.
    func closed(_ store: any ObjectStore) -> StoreState {
        StoreState(base: ClosedSnapshot(store, generation: generation), sequence: sequence)
    }
}

/// The snapshot of a closed store. It contains no objects, and requests throw.
final class ClosedSnapshot: StoreSnapshot {
    let schema: StoreSchema
    /// The generation of the last state before closing.
    let generation: Generation
    /// The error that requests throw.
    let error: StoreError

    init(_ store: any ObjectStore, generation: Generation, _ error: StoreError? = nil) {
        schema = store.schema
        self.generation = generation
        self.error = error ?? StoreError.closed(store.name)
    }

    // Reading a property cannot throw, so it reads like a property of a deleted object.
    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? { nil }
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? { nil }
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { false }
    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? { nil }
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { [] }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { throw error }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { throw error }
    func count(_ query: StoreQuery) throws -> Int { throw error }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { throw error }
    func explain(_ query: StoreQuery) throws -> String { throw error }
    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] { throw error }
    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] { throw error }
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? { throw error }
}
