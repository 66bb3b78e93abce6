import StoreInterface
import StoreModel

/// Moving clean contexts to newer snapshots when a snapshot budget demands it (S152).
extension ManagedObjectContext {
    /// Moves a context without unsaved changes to the newest state. A child moves to its parent's state after the parent has moved.
    ///
    /// A context that has the newest saves already moves to a newer snapshot of them. That does not retain the pages that a compaction has
    /// replaced.
    func advanceIfClean() {
        // The end of a suspension moves the context. A move before it would open the file again.
        if phase.isSuspended || phase.closure != nil { return }
        guard !phase.saveGate.isSaving, !hasChanges else {
            return StoreWriter.log.warning("the context \(name) has unsaved changes, so it keeps the snapshot that it reads")
        }
        let (newest, old) = (configuration.writer.state, layerStack.baseState.state)
        if isRoot || followsStore && layerStack.baseState.route == nil, newest.sequence == old.sequence {
            return moving { moveUnmerged { renewSnapshot(newest) } }
        }
        if isRoot { return moveUnmerged { advance(to: newest) } }
        guard let parent = configuration.parent?.contextExecutor, layerStack.baseState.route == nil, let own = contextExecutor
        else { return }
        parent.enqueue { parent in
            if parent.layerStack.baseState.state.sequence <= old.sequence { parent.advanceIfClean() }
            let state = parent.layerStack.baseState.state
            let isRenewed =
                state.sequence == old.sequence && state.storeBase !== old.storeBase && !parent.hasChanges
                && !parent.phase.saveGate.isSaving
            guard state.sequence > old.sequence || isRenewed else { return }
            let new = parent.sealedBaseForChild()
            own.enqueue { child in
                if child.phase.isSuspended || child.phase.saveGate.isSaving || child.hasChanges { return }
                child.moveUnmerged { child.moveToParent(new, changes: isRenewed ? ChangeSet() : nil) }
            }
        }
    }

    /// Moves a context by a move that the program did not ask for, so that it is no merge: watched objects and changes of children that read
    /// an older state stay in conflict with the saves that the context moves past.
    func moveUnmerged(_ move: () -> Void) {
        let mergedThrough = phase.mergedThrough
        phase.unmergedSince = tracker.checks.watched.isEmpty && observed.isEmpty ? nil : (viewBelow(), [])
        move()
        phase.unmergedSince = nil
        phase.mergedThrough = mergedThrough
    }
}
