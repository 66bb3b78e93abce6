import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// Suspending the store (S167): see ``PersistentContainer/suspend()``.
extension StoreWriter {
    /// Releases every snapshot of this process, after the saves were written. Waits for running requests.
    ///
    /// - Throws: `StoreError` `.inUseElsewhere` for a request of a context without an executor that does not end.
    func suspendReads(within patience: Duration) async throws {
        await suspendContexts()
        try await suspendConfinedContexts(within: patience)
        try await onQueue { writer in
            writer.finishFlush()
            writer.claim.release()
            let state = writer.state
            writer.replaceState(state.reading(writer.lazySnapshot(after: state.committed)))
            writer.snapshotRegistry.endKept(state.suspended(writer.store))
        }
    }

    /// Closes the file until its next use. Contexts that have read since their suspension are suspended again meanwhile.
    ///
    /// - Throws: `StoreError` `.inUseElsewhere` for a read that does not end, such as a backup.
    func closeFile() async throws {
        // Tasks of their own, which go on to an end if the caller's task is cancelled: otherwise the file might stay open unnoticed.
        let closing = Task { try await onDisk { try $0.store.suspend() } }
        let releasing = Task {
            while (try? await Task.sleep(for: .milliseconds(10))) != nil { try await releaseReads() }
        }
        let result = await closing.result
        releasing.cancel()
        _ = await releasing.result
        try result.get()
    }

    /// Releases the snapshots of contexts with an executor, and those that the program keeps.
    private func releaseReads() async throws {
        await suspendContexts()
        try await onQueue { $0.snapshotRegistry.endKept($0.state.suspended($0.store)) }
    }

    /// Moves every context to the newest state that it has to show, and lets saves pass again. Does nothing if the store is not suspended.
    func resume() async {
        guard suspension.isClosed else { return }
        suspension.wake()
        // If the store cannot be read, each context reports it at its next request.
        try? await refresh()
        resumeMigration()
        await resumeContexts()
        suspension.open()
    }

    /// Suspends the contexts, and then the children that they have made meanwhile, which read the same snapshots.
    private func suspendContexts() async {
        // Kept until the end, so that no later address has the identity of an earlier one.
        var known: [ObjectIdentifier: ContextAddress] = [:]
        var listed = snapshotRegistry.places()
        while !listed.isEmpty {
            await onEach(of: listed) { context, done in context.suspend(then: done) }
            for place in listed { known[ObjectIdentifier(place)] = place }
            listed = snapshotRegistry.places().filter { $0.depth > 0 && known[ObjectIdentifier($0)] == nil }
        }
        // A child's save that ended after its parent was suspended may have acquired a snapshot for the parent.
        let depth = known.values.map(\.depth).max() ?? 0
        await onEach(of: known.values.filter { $0.depth < depth }) { context, done in context.suspend(then: done) }
    }

    private func suspendConfinedContexts(within patience: Duration) async throws {
        let confined = snapshotRegistry.confined()
        guard !confined.isEmpty else { return }
        let end = ContinuousClock.now + patience
        let store = store
        let busy = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                let base = lazySnapshot(after: state.committed, isFixed: false)
                let ended = state.suspended(store).view
                let busy = confined.filter { !$0.uses.suspend(within: end - .now, reading: base, ended: ended) }
                continuation.resume(returning: busy.map(\.name).sorted())
            }
        }
        guard !busy.isEmpty else { return }
        throw StoreError(
            .inUseElsewhere,
            "cannot suspend \(store.name): \(busy.joined(separator: ", ")) in use on another thread. End the request or save there, and "
                + "suspend it again")
    }

    private func resumeContexts() async {
        await onEach(of: snapshotRegistry.places()) { context, done in
            guard let parent = context.configuration.parent?.contextExecutor, let own = context.contextExecutor else {
                context.resume()
                return done()
            }
            let isAsked = parent.enqueue { parent in
                let state = parent.sealedBaseForChild()
                let isTold = own.enqueue { child in
                    child.resume(from: state)
                    done()
                }
                if !isTold { done() }
            }
            if isAsked { return }
            context.resume()
            done()
        }
    }

    /// Runs `body` on the executor of each of these contexts that has one, parents first, and waits until each has called `done`.
    private func onEach(
        of places: [ContextAddress],
        _ body: @escaping @Sendable (ManagedObjectContext, _ done: @escaping @Sendable () -> Void) -> Void
    ) async {
        let levels = Dictionary(grouping: places.filter { $0.confinement == nil }, by: \.depth)
        for (_, level) in levels.sorted(by: { $0.key < $1.key }) {
            await withTaskGroup(of: Void.self) { group in
                for contextExecutor in level.compactMap(\.contextExecutor) {
                    group.addTask {
                        await withCheckedContinuation { continuation in
                            let isEnqueued = contextExecutor.enqueue { context in body(context) { continuation.resume() } }
                            if !isEnqueued { continuation.resume() }
                        }
                    }
                }
            }
        }
    }

    /// The newest save in the file that a state contains; nil if that is forgotten.
    func committed(in state: StoreState) -> Generation? {
        // A snapshot that was acquired later may contain more saves than the state is known to contain.
        if state.pendingSaves == 0 { return max(state.committed, state.generationOfBase) }
        return shared.withLock { $0.numbers.generation(of: state.sequence) }
    }
}

extension PersistentStoreCoordinator {
    /// Runs work that reads the store and that the program did not ask for at this moment. A suspension that begins meanwhile waits for it.
    ///
    /// - Returns: The result; nil if the store is suspended, or about to be, so that reading would open the file again. Repeat it later.
    package func unlessSuspended<R>(_ body: () throws -> R) rethrows -> R? {
        // A closed store is never resumed. Its errors tell why.
        if isClosed { return try body() }
        guard writer.suspension.enterIfOpen() else { return nil }
        defer { writer.suspension.leave() }
        return try body()
    }
}

extension StoreState {
    /// Returns the state that kept snapshots and iterations read after the store was suspended. Requests throw.
    func suspended(_ store: any ObjectStore) -> StoreState {
        let error = StoreError(
            .suspended,
            "cannot read an old state of \(store.name): it ended when the store was suspended. Read again from the newest")
        return StoreState(base: ClosedSnapshot(store, generation: generation, error), sequence: sequence)
    }
}
