import StoreInterface

/// What happened in a context: the payload of observers and of ``ManagedObjectContext/notices``. Only ids, so it may travel.
public struct ContextNotice: Sendable {
    public enum Kind: Sendable, Hashable { case objectsDidChange, willSave, didSave }

    public var kind: Kind
    public var contextName: String
    /// Inserted, updated and deleted objects; empty when the context went to a state whose differences are not known, as in
    /// `pin(to:)`.
    public var changes: ChangeSet
    /// Registered objects whose values changed below them, or may have when ``changes`` is empty; empty but for `objectsDidChange`
    /// after a merge, a child's save or a move to another state.
    public var refreshed: [ObjectID]
}

/// Told when what a context shows has changed: live results. Called on the context's executor; must only hand over.
package protocol ViewObserver: AnyObject, Sendable {
    /// - Parameters:
    ///   - view: sealed, so that any thread may read it.
    ///   - changes: nil when what changed is not known.
    ///   - saved: the context's own changes that were saved just now. They look as before, unless the store had other ideas: an
    ///     update of an object that somebody else deleted, say.
    func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet)
    /// Called after the context was closed; no notice follows.
    func contextDidClose(_ error: any Error)
}

extension ViewObserver {
    package func contextDidClose(_ error: any Error) {}
}

extension ManagedObjectContext {
    // MARK: Observing

    /// Calls `observer` on the context's executor, synchronously, for every notice until the token is given to
    /// ``removeObserver(_:)`` (S120).
    public func addObserver(_ observer: @escaping (ContextNotice) -> Void) -> UInt64 {
        checkIsolation()
        nextObserver += 1
        noticeObservers[nextObserver] = observer
        changeLog.isOn = true
        return nextObserver
    }

    public func removeObserver(_ token: UInt64) {
        noticeObservers[token] = nil
        noticeStreams[token] = nil
        switchLog()
    }

    /// The notices as a sequence, from now on; buffered, and ended with the context or the iteration (S120).
    public var notices: AsyncStream<ContextNotice> {
        let (stream, continuation) = AsyncStream<ContextNotice>.makeStream()
        let token = addObserver { continuation.yield($0) }
        noticeStreams[token] = continuation
        let host = WeakContext(host: host)
        continuation.onTermination = { _ in host.host?.enqueue { $0.removeObserver(token) } }
        return stream
    }

    package func addViewObserver(_ observer: any ViewObserver) -> LayeredView {
        checkIsolation()
        viewObservers.append(observer)
        changeLog.isOn = true
        return sealedView()
    }

    package func removeViewObserver(_ observer: any ViewObserver) {
        viewObservers.removeAll { $0 === observer }
        switchLog()
    }

    private func switchLog() {
        changeLog.isOn = !viewObservers.isEmpty || !noticeObservers.isEmpty
        if !changeLog.isOn { changeLog.removeAll() }
    }

    // MARK: Telling

    /// Makes one notice of all changes since the last call (S035). Called at the end of each `perform` and before a save; call it
    /// on the main context when observers should see a group of changes now. O(changed objects).
    public func processPendingChanges() {
        checkIsolation()
        if !changeLog.isEmpty { notify(ChangeSet(), refreshed: []) }
    }

    /// Tells observers of the view and of notices of changes that are visible now.
    ///
    /// The view also shows local changes that were not processed yet, so they are processed here: what an observer of the view
    /// hears is all that differs from the view before.
    func notify(_ changes: ChangeSet?, refreshed: [ObjectID], saved: ChangeSet = ChangeSet()) {
        let own = changeLog.isEmpty ? ChangeSet() : changeLog.take(origin) { pendingKind($0, $1) }
        if !viewObservers.isEmpty {
            let view = sealedView()
            let all = changes.map { own.isEmpty ? $0 : $0.isEmpty ? own : ChangeSet.union([$0, own]) }
            for observer in viewObservers { observer.viewDidChange(view, all, saved: saved) }
        }
        if !own.isEmpty { post(.objectsDidChange, own) }
        let changes = changes ?? ChangeSet()
        if !changes.isEmpty || !refreshed.isEmpty { post(.objectsDidChange, changes, refreshed: refreshed) }
    }

    func post(_ kind: ContextNotice.Kind, _ changes: ChangeSet, refreshed: [ObjectID] = []) {
        guard !noticeObservers.isEmpty else { return }
        let notice = ContextNotice(kind: kind, contextName: name, changes: changes, refreshed: refreshed)
        for observer in noticeObservers.sorted(by: { $0.key < $1.key }) { observer.value(notice) }
    }
}

extension ChangeSet {
    /// The ids of what was inserted, of every entity.
    public func insertedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.insertedKeys) }
    public func updatedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.updatedKeys) }
    public func deletedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.deletedKeys) }

    private func ids(_ store: StoreIdentity, _ keys: KeyPath<EntityChange, [ObjectKey]>) -> [ObjectID] {
        entities.flatMap { change in
            change[keyPath: keys].map { ObjectID(store: store, entity: change.entity, key: $0) }
        }
    }
}
