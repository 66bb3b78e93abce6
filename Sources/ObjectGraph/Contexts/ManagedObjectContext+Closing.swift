import StoreInterface

/// Closing (``PersistentContainer/close()``): the context releases the store and keeps its unsaved changes.
extension ManagedObjectContext {
    /// - Throws: `StoreError` `.closed` after the container was closed.
    func checkOpen() throws { if let closure { throw closure } }

    /// Closes the context after its running saves, then calls `done` on the context's executor.
    func close(then done: @escaping () -> Void) {
        whenIdle { [self] in
            closeNow()
            endSave()
            done()
        }
    }

    private func closeNow() {
        guard closure == nil else { return }
        let error = setup.coordinator.closedError
        closure = error
        for (entity, rest) in keys.enumerated() where !rest.isEmpty { setup.writer.keys.giveBack(rest, entity) }
        keys = traits.noKeys
        setBaseState(baseState)
        behind = nil
        for source in openSources { source.source?.end(baseState.state) }
        openSources = []
        let observers = viewObservers
        viewObservers = []
        for observer in observers { observer.contextDidClose(error) }
        let streams = noticeStreams
        for (token, stream) in streams {
            noticeObservers[token] = nil
            stream.finish()
        }
        noticeStreams = [:]
        childObservers = []
        if isRoot { setup.coordinator.unregister(number) }
    }

    /// Returns the state to read below the context's own layers. After closing, that state contains no objects from the store.
    func shown(_ baseState: BaseState) -> BaseState {
        guard closure != nil else { return baseState }
        var shown = baseState
        shown.state = baseState.state.closed(setup.coordinator.store)
        shown.route = nil
        return shown
    }
}

/// A weak reference to a request that is being iterated.
struct WeakSource {
    weak var source: BatchSource?
}
