import StoreInterface
import StoreModel

/// Moving clean contexts to newer snapshots when a snapshot budget demands it (S152).
extension ManagedObjectContext {
    /// Moves a context without unsaved changes to the newest state. A child moves to its parent's state after the parent has moved.
    func advanceIfClean() {
        guard !phase.saveGate.isSaving, !hasChanges else {
            return StoreWriter.log.warning("the context \(name) has unsaved changes, so it keeps the snapshot that it reads")
        }
        if isRoot { return advance(to: setup.writer.state) }
        guard let parent = setup.parent?.host, layerStack.baseState.route == nil, let own = host else { return }
        let sequence = layerStack.baseState.state.sequence
        parent.enqueue { parent in
            if parent.layerStack.baseState.state.sequence <= sequence { parent.advanceIfClean() }
            guard parent.layerStack.baseState.state.sequence > sequence else { return }
            let new = parent.sealedBaseForChild()
            own.enqueue { child in
                if !child.phase.saveGate.isSaving, !child.hasChanges { child.moveToParent(new, changes: nil) }
            }
        }
    }
}
