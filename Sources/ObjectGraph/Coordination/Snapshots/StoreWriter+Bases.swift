import Dispatch
internal import Platform
import StoreInterface
import StoreModel

/// The snapshots of states. A snapshot that is not being read is not acquired: see ``LazySnapshot``.
extension StoreWriter {
    /// The time for which the writer's own state keeps an acquired snapshot.
    private static let restingInterval: DispatchTimeInterval = .milliseconds(250)

    /// Returns a snapshot of the newest commit and registers it.
    func newSnapshot() throws -> any StoreSnapshot {
        let base = try store.snapshot()
        snapshotRegistry.note(base)
        return base
    }

    /// Returns the base of the state after a commit of this generation.
    ///
    /// - Parameter isFixed: false for a context that has read an older state, and not yet moved to this one.
    func lazySnapshot(after generation: Generation, isFixed: Bool = true) -> LazySnapshot {
        let snapshotRegistry = snapshotRegistry
        let made = LazySnapshot(store, generation: generation, isFixed: isFixed) { [weak self] snapshot in
            snapshotRegistry.note(snapshot)
            self?.restLater()
        }
        snapshotRegistry.unacquired.add(made)
        return made
    }

    /// Acquires every snapshot that must show the state before the next commit. Called before each commit of this process.
    func takeSnapshots() throws { try snapshotRegistry.unacquired.acquire() }

    /// Acquires the snapshot of the newest state for a context that is about to read it. Does nothing while the store is suspended.
    func acquireState() {
        guard suspension.enterIfOpen() else { return }
        state.takeBase()
        suspension.leave()
    }

    /// Returns the state with which a new root context begins: the newest one. While the store is suspended, or about to be, that is the newest
    /// known state, because asking the file for newer saves would open it again.
    func firstState() -> StoreState {
        guard suspension.enterIfOpen() else { return state }
        defer { suspension.leave() }
        return newestState()
    }

    /// Acquires the snapshot of a new context's state and returns the state. While the store is suspended, or about to be, returns the same
    /// state with a base that the first read acquires.
    func acquired(_ state: StoreState) -> StoreState {
        guard suspension.enterIfOpen() else { return resting(state) }
        defer { suspension.leave() }
        state.takeBase()
        return state
    }

    /// Returns the same state with a base that is not acquired, for a context that has read nothing.
    ///
    /// While the newest state has saves that are not in the file, the context must read the snapshot below them if it reads. It is
    /// released after they are written.
    func resting(_ state: StoreState) -> StoreState {
        // Under the lock, so that no commit of this process comes between.
        shared.withLock { shared in
            guard !isRetired, !shared.isCommitting, shared.state.sequence == state.sequence, shared.state.pendingSaves == 0
            else { return state.pendingSaves == 0 ? state : unread(state) }
            // The state's deferred saves may be in the file by now.
            return shared.state.reading(lazySnapshot(after: shared.state.committed))
        }
    }

    /// Returns the same state with a base that records whether it is read.
    private func unread(_ state: StoreState) -> StoreState {
        let lazy = state.storeBase as? LazySnapshot
        if let lazy, lazy.current == nil { return state }
        return state.reading(LazySnapshot(over: lazy?.current ?? state.storeBase))
    }

    /// Acquires the snapshots that must show the state before a commit. Called inside its transaction, when no other process can
    /// commit.
    ///
    /// - Returns: The state that the commit follows.
    func beginCommit() throws -> StoreState {
        let state = shared.withLock { shared in
            shared.isCommitting = true
            return shared.state
        }
        try takeSnapshots()
        return state
    }

    /// Releases the snapshot of the writer's state after a time without saves. Called after the state was read.
    private func restLater() {
        guard !snapshotRegistry.unacquired.isResting.exchange(true, ordering: .acquiringAndReleasing) else { return }
        clock.run(at: clock.now + Self.restingInterval, on: queue) { [weak self] in
            guard let self else { return }
            snapshotRegistry.unacquired.isResting.store(false, ordering: .releasing)
            rest()
        }
    }

    /// Releases the snapshot of the writer's state. Runs on the queue. Readers keep their snapshot.
    func rest() {
        let current = state
        guard current.pendingSaves == 0, (current.base as? LazySnapshot)?.current != nil else { return }
        let resting = resting(current)
        shared.withLock { shared in
            if shared.state.sequence == current.sequence, shared.state.base === current.base { shared.state = resting }
        }
    }

    // MARK: Saves of other connections

    /// Acquires the snapshot of a state.
    ///
    /// - Returns: The saves that the snapshot contains beyond the state: other connections committed them before the snapshot was acquired.
    ///   nil if they are unknown. A context that shows the snapshot must report them.
    func acquire(_ state: StoreState) -> [ChangeSet]? {
        state.takeBase()
        guard state.pendingSaves == 0, state.base.generation > state.committed else { return [] }
        return stored(after: state.committed, through: state.base.generation)
    }

    /// Returns the newest state, including saves of other processes and connections. Never waits for the disk.
    ///
    /// During a commit this is the state that the commit follows, which has been published with all earlier saves of other connections. If
    /// the file has newer saves, the commit is about to be published, and this waits some microseconds for it. If only the group that is
    /// being committed is newer, this gives up soon, because no caller has that save's result yet. A later save of another connection may
    /// have returned, so this waits longer for it.
    func newestState() -> StoreState {
        var attempts = 0
        while true {
            let current = state
            guard capabilities.contains(.externalSaves), current.pendingSaves == 0,
                store.mayHaveCommitted(after: current.committed)
            else { return current }
            // If the store cannot be read, the known state is the newest.
            guard (try? adoptsExternalSaves()) == false, let newest = try? store.snapshot().generation, newest > state.committed
            else { return state }
            attempts += 1
            let isOfGroup = newest <= shared.withLock { $0.newestOfGroup }
            if attempts >= (isOfGroup ? Self.publicationTries : Self.longPublicationTries) { return state }
            CurrentThread.sleep(microseconds: Self.publicationWait)
        }
    }

    /// The most attempts to find a commit of this process published, and the microseconds between them.
    static let publicationTries = 2000
    private static let longPublicationTries = 400_000
    private static let publicationWait: UInt32 = 50

    /// Publishes the state after saves of other connections, if there are any.
    ///
    /// May be called on any thread. During a commit this does nothing, because the group being written is published after those saves.
    func adoptExternalSaves() throws { _ = try adoptsExternalSaves() }

    /// Publishes the state after saves of other connections, if there are any. Never waits for a commit of this process, which publishes
    /// them with its own. A suspension that begins meanwhile waits. If the store cannot be read, the known state stays the newest.
    func lookForExternalSaves() {
        guard suspension.enterIfOpen() else { return }
        defer { suspension.leave() }
        let current = state
        guard capabilities.contains(.externalSaves), current.pendingSaves == 0, store.mayHaveCommitted(after: current.committed)
        else { return }
        try? adoptExternalSaves()
    }

    /// - Returns: false if a commit is running, which will publish the saves.
    private func adoptsExternalSaves() throws -> Bool {
        let known = state.committed
        let base = try store.snapshot()
        try checkGeneration(base.generation, since: known)
        var isAdopted = true
        let (moved, listeners) = shared.withLock { shared -> (StoreState?, [SaveListeners.Call]) in
            // A commit may have published the saves without announcing them.
            if shared.isCommitting {
                isAdopted = false
                return (nil, [])
            }
            // While saves are pending, no other process commits.
            let start = shared.state
            guard base.generation > start.committed, start.pendingSaves == 0 else { return (nil, []) }
            let moved = StoreState(base: lazySnapshot(after: base.generation), sequence: start.sequence.next)
            shared.state = moved
            shared.recent.append(.external(after: start.committed, through: base.generation), moved.sequence)
            return (moved, shared.listeners.all)
        }
        if let moved { for listener in listeners { listener(moved, .externalProcess) } }
        return isAdopted
    }

    /// Publishes the state after saves of another connection of this process, after the group that is being written.
    ///
    /// Call this on the queue of that connection's writer, after its commit. So one of two writers is never committing while it waits, and
    /// they cannot wait for each other.
    func adoptSavesOfSibling() {
        while (try? adoptsExternalSaves()) == false { CurrentThread.sleep(microseconds: Self.publicationWait) }
    }
}
