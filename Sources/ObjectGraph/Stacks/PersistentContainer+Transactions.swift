import StoreInterface
import StoreModel

/// Reading and writing in one call, each in a fresh context.
extension PersistentContainer {
    /// Runs `body` in a fresh context on the newest saved state, off the calling executor, and releases the state at the end.
    ///
    /// All reads of `body` show one state (S090), whatever other contexts save meanwhile. Unsaved changes of other contexts are not part of
    /// it. The context is for reading: its changes are discarded. The result must be `Sendable`, so objects cannot leave the closure.
    /// Return values and ids instead.
    ///
    /// ```swift
    /// let titles = try await container.read { context in
    ///     try context.fetch(FetchRequest<Track>(sortBy: [.init(\.title)])).map(\.title)
    /// }
    /// ```
    /// While `body` runs, the file keeps the pages of its state. Cost beside `body`: O(1), for a context and a snapshot.
    /// - Throws: The error of `body`; `StoreError` `.closed` after ``close()``.
    public func read<T: Sendable>(
        _ body: @Sendable (ManagedObjectContext) throws -> T
    ) async throws -> T {
        try await freshContext("read").performOnce(andSave: nil, body)
    }

    /// Runs `body` in a fresh context on the newest saved state and saves its changes. Repeats both after a conflict.
    ///
    /// If another context has changed the same objects since `body` read them, the save throws ``SaveError/conflicts(_:)``. Then `body` runs
    /// again in another fresh context on the newest state, at most `retries` times. The same holds for a unique value that is taken, if
    /// others have saved since `body` read. So `body` can look for an object and insert it if there is none. It must be repeatable: it must
    /// have no effects except on the context.
    ///
    /// ```swift
    /// try await container.write(retrying: 5) { context in
    ///     guard let track = try context.fetch(FetchRequest<Track>(where: #Predicate { $0.isrc == isrc })).first else { return }
    ///     track.playCount += 1
    /// }
    /// ```
    /// The save checks the versions of the objects that `body` changed or deleted. To check an object that `body` only read, call
    /// ``ManagedObjectContext/detectConflicts(for:)``.
    ///
    /// The context is a root, so the save goes directly to the store. Unsaved changes of the main context are not saved. The main context
    /// is moved to the new state in every stack, and its unsaved changes stay on top.
    /// - Parameters:
    ///   - retries: The maximum number of repetitions after conflicts. The default is 0. A programmer error if negative.
    ///   - durability: When the save counts as done.
    ///   - body: The work, which changes nothing but the context.
    /// - Returns: The result of `body`, after the save.
    /// - Throws: The last of these errors if no retry is left. Any other error of the save, and the error of `body`, at once.
    ///   `CancellationError` in place of a retry if the task is cancelled. In each case, nothing is saved, except for
    ///   `StoreError` `.notOnDisk`: then the save is visible, and `flush()` waits until it is on disk.
    public func write<T: Sendable>(
        retrying retries: Int = 0, _ durability: Durability = .durable,
        _ body: @Sendable (ManagedObjectContext) throws -> T
    ) async throws -> T {
        precondition(retries >= 0, "a write cannot be retried \(retries) times")
        var left = retries
        while true {
            do {
                let result = try await freshContext("write").performOnce(andSave: durability, body)
                await showSavesInMain()
                return result
            } catch let error as StoreError where error.code == .notOnDisk {
                await showSavesInMain()
                throw error
            } catch SaveError.conflicts where left > 0 {
                left -= 1
            } catch let duplicate as BackgroundContext.DuplicateOfNewerSave {
                guard left > 0 else { throw duplicate.error }
                left -= 1
            }
            try Task.checkCancellation()
        }
    }

    /// Creates a root context on the newest saved state. The snapshot is taken at its first read, on its own executor.
    private func freshContext(_ name: String) throws -> BackgroundContext {
        try backgroundCoordinator.checkOpen()
        return BackgroundContext(.root(of: backgroundCoordinator, name: name, beginsAtFirstRead: true))
    }

    /// Moves the main context and its parent to the newest state in the stacks in which they do not merge automatically. Does not wait for
    /// the main actor.
    private func showSavesInMain() async {
        switch stack {
        case .nested:
            guard creation.hasBegun else { return }
            // The end of a suspension moves the context. An earlier move would open the file again.
            main.enqueue { if !$0.phase.isSuspended { $0.refreshAllObjects() } }
        // The job does not throw.
        case .masterMainWorker, .hybrid: try? await creation.root?.run { [main] in $0.advance(with: main) }
        case .siblings, .split: break
        }
    }
}

extension ManagedObjectContext {
    /// Whether others have saved since the state that this root reads.
    var isOvertaken: Bool { layerStack.baseState.state.sequence != configuration.writer.state.sequence }

    /// Moves this root and then a child to the newest state.
    ///
    /// Does nothing to suspended contexts. The end of the suspension moves them, and an earlier move would open the file again.
    fileprivate func advance(with child: any ContextExecutor) {
        if phase.isSuspended { return }
        refreshAllObjects()
        let new = sealedBaseForChild()
        child.enqueue { child in
            if child.phase.isSuspended { return }
            // This root may have moved earlier without the child, as for a snapshot budget, so the child's own state counts.
            let (old, state) = (child.layerStack.baseState.state, new.baseState.state)
            let changes =
                old.sequence < state.sequence
                ? child.configuration.writer.changes(after: old, through: state).map(ChangeSet.union) : ChangeSet()
            // A merge, as in the stacks in which main is a root.
            child.tracker.forgetUnmerged()
            child.merging { child.moveToParent(new, changes: changes) }
            child.phase.mergedThrough = child.layerStack.baseState.state.sequence
        }
    }
}
