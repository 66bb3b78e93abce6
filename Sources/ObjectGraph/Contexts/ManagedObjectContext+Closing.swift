import StoreInterface
import StoreModel

/// Closing (``PersistentContainer/close()``): the context releases the store and keeps its unsaved changes.
extension ManagedObjectContext {
    /// - Throws: `StoreError` `.closed` after the container was closed.
    func checkOpen() throws { if let closure = phase.closure { throw closure } }

    /// Closes the context after its running saves, then calls `done` on the context's executor.
    func close(then done: @escaping () -> Void) {
        whenIdle { [self] in
            closeNow()
            endSave()
            done()
        }
    }

    private func closeNow() {
        guard phase.closure == nil else { return }
        // The values before the changes can be read for the last time. In a suspended context that would open the file again.
        if !phase.isSuspended { closeUndoSegment() }
        let error = configuration.coordinator.closedError
        phase.closure = error
        giveBackKeys()
        setBaseState(layerStack.baseState)
        phase.behind = nil
        let (views, sources) = observers.close()
        for source in sources { source.source?.end(layerStack.baseState.state) }
        for observer in views {
            observer.releaseViews(layerStack.baseState.state.view)
            observer.contextDidClose(error)
        }
        if followsStore { configuration.coordinator.unregister(number) }
    }

    /// Returns the state to read below the context's own layers. After closing, that state contains no objects from the store.
    func shown(_ baseState: LayerStack.BaseState) -> LayerStack.BaseState {
        guard phase.closure != nil else { return baseState }
        var shown = baseState
        shown.state = baseState.state.closed(configuration.coordinator.store)
        shown.route = nil
        return shown
    }
}

/// A weak reference to a request that is being iterated.
struct WeakSource {
    weak var source: BatchSource?
}

extension ManagedObjectContext: CustomStringConvertible, CustomReflectable {
    /// The name of the context, and the numbers of registered objects and of objects with unsaved changes. O(changed objects).
    public var description: String {
        var count = 0
        forEachPending { _, _, _ in count += 1 }
        return "context \(name): \(registry.count) registered, \(count == 0 ? "no" : "\(count)") unsaved"
    }

    /// No children: the context's state is no content to print.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
