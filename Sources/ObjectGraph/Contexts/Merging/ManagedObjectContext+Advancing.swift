import StoreInterface
import StoreModel

/// Moving clean contexts to newer snapshots when a snapshot budget demands it (S152).
extension ManagedObjectContext {
    /// Moves a context without unsaved changes to the newest state. A child moves to its parent's state after the parent has moved.
    func advanceIfClean() {
        // The end of a suspension moves the context. A move before it would open the file again.
        if phase.isSuspended { return }
        guard !phase.saveGate.isSaving, !hasChanges else {
            return StoreWriter.log.warning("the context \(name) has unsaved changes, so it keeps the snapshot that it reads")
        }
        if isRoot { return moveUnmerged { advance(to: configuration.writer.state) } }
        guard let parent = configuration.parent?.contextExecutor, layerStack.baseState.route == nil, let own = contextExecutor
        else { return }
        let sequence = layerStack.baseState.state.sequence
        parent.enqueue { parent in
            if parent.layerStack.baseState.state.sequence <= sequence { parent.advanceIfClean() }
            guard parent.layerStack.baseState.state.sequence > sequence else { return }
            let new = parent.sealedBaseForChild()
            own.enqueue { child in
                if child.phase.isSuspended || child.phase.saveGate.isSaving || child.hasChanges { return }
                child.moveUnmerged { child.moveToParent(new, changes: nil) }
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
