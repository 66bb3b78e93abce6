import StoreInterface
import StoreModel

/// A notice of changes in a context, for observers and ``ManagedObjectContext/notices``. It contains only ids, so it is `Sendable`.
///
/// ```swift
/// for await notice in context.notices where notice.kind == .objectsDidChange {
///     print(notice.contextName, notice.changes)
/// }
/// ```
public struct ContextNotice: Sendable {
    /// The kind of an event in a context.
    public enum Kind: Sendable, Hashable { case objectsDidChange, willSave, didSave }

    /// The kind of the event.
    public var kind: Kind
    /// The name of the context.
    public var contextName: String
    /// The inserted, updated and deleted objects.
    ///
    /// Empty if the context moved to a state whose differences are unknown, as in `read(from:)`.
    public var changes: ChangeSet
    /// The registered objects whose values changed in the base state, or may have changed if ``changes`` is empty.
    ///
    /// Empty except for `objectsDidChange` after a merge, a child's save or a move to another state.
    public var refreshed: [ObjectID]
}

extension ContextNotice: CustomStringConvertible {
    /// The event, the context's name and the changes.
    public var description: String {
        let event =
            switch kind {
            case .objectsDidChange: "objects changed in"
            case .willSave: "about to save"
            case .didSave: "saved"
            }
        let refreshed = refreshed.isEmpty ? "" : ", refreshed \(KeyText.list(refreshed.map(\.key)))"
        return "\(event) \(contextName): \(changes)\(refreshed)"
    }
}

/// An observer of a context's view, such as live results. Called on the context's executor, where it must only hand the view over.
package protocol ViewObserver: AnyObject, Sendable {
    /// Called after the view has changed.
    ///
    /// - Parameters:
    ///   - view: The new view, with sealed layers, so that any thread may read it.
    ///   - changes: The changes; nil if they are unknown.
    ///   - saved: Changes that were just saved, of this context or an ancestor, and that the view showed before. They look as before unless
    ///     the save dropped some, such as an update of an object that another context deleted.
    func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet)
    /// Called after the context was closed. No call follows.
    func contextDidClose(_ error: any Error)
    /// Called before the store is suspended or closed. The observer releases every view at once, so that the file can be closed. The next
    /// view has all changes since the last one.
    ///
    /// - Parameter ended: A view that cannot be read, to have instead.
    func releaseViews(_ ended: LayeredView)
}

extension ViewObserver {
    package func releaseViews(_ ended: LayeredView) {}
    package func contextDidClose(_ error: any Error) {}
}

extension ManagedObjectContext {
    // MARK: Observing

    /// Calls `observer` on the context's executor, synchronously, for every notice until the token is cancelled or released (S120).
    ///
    /// The observation also ends with the context. The token does not retain the context.
    ///
    /// ```swift
    /// observation = context.observe { notice in
    ///     if notice.kind == .didSave { upload(notice.changes) }
    /// }
    /// ```
    public func observe(_ observer: @escaping (ContextNotice) -> Void) -> ObservationToken {
        let end = ObservationEnd()
        let number = addObserver { if !end.isReached { observer($0) } }
        let contextExecutor = WeakContext(contextExecutor: contextExecutor)
        return ObservationToken(end) { contextExecutor.contextExecutor?.enqueue { $0.removeObserver(number) } }
    }

    /// Calls `observer` as ``observe(_:)`` does, until the context is released or ``removeObserver(_:)`` is called.
    ///
    /// Prefer ``observe(_:)``, which ends with the owner of its token.
    /// - Returns: A number for ``removeObserver(_:)``.
    public func addObserver(_ observer: @escaping (ContextNotice) -> Void) -> UInt64 {
        checkIsolation()
        tracker.log.isOn = true
        if !observers.hasNotices, hasUnsavedLayers {
            tracker.log.beginNotices(over: layerStack.folded().changeSet(metadata: metadata))
        }
        return observers.add(observer)
    }

    /// Removes an observer that ``addObserver(_:)`` added.
    public func removeObserver(_ token: UInt64) {
        let removed = observers.remove(token)
        switchLog()
        withExtendedLifetime(removed) {}
    }

    /// The context's notices from now on, as a buffered sequence. It ends when the context is released, the container is closed, or the
    /// iteration ends (S120).
    public var notices: AsyncStream<ContextNotice> {
        let (stream, continuation) = AsyncStream<ContextNotice>.makeStream()
        if phase.closure != nil {
            continuation.finish()
            return stream
        }
        let token = addObserver { continuation.yield($0) }
        observers.setStream(continuation, for: token)
        let contextExecutor = WeakContext(contextExecutor: contextExecutor)
        continuation.onTermination = { _ in contextExecutor.contextExecutor?.enqueue { $0.removeObserver(token) } }
        return stream
    }

    package func addViewObserver(_ observer: any ViewObserver) -> LayeredView {
        checkIsolation()
        observers.add(observer)
        // From the first move on, so that the main thread does not acquire its snapshot.
        if place.executor == nil, place.confinement == nil { place.readsNextState.store(true, ordering: .relaxed) }
        place.confinement?.uses.add(observer)
        tracker.log.isOn = true
        return sealedView()
    }

    package func removeViewObserver(_ observer: any ViewObserver) {
        observers.remove(observer)
        place.confinement?.uses.remove(observer)
        switchLog()
    }

    func switchLog() {
        tracker.log.isOn = observers.needChanges || endsUndoEventsAutomatically
        if !tracker.log.isOn { tracker.log.removeAll() }
    }

    // MARK: Notifying

    /// Posts one notice of all changes since the last call (S035). O(changed objects).
    ///
    /// A context calls this at the end of each `perform` and before a save. On the main context, call it to show a group of changes to
    /// observers immediately. The changes are also a group for undo (S162). While the container is suspended, this reads nothing: the notice is
    /// posted when the context is next read, or the container resumed (S167).
    public func processPendingChanges() {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        if isWaitingForResumption {
            phase.suspended?.endsUndoEvent = true
            return
        }
        checkIsolation()
        prepareRequest()
        if tracker.undo != nil { endUndoEvent() }
        postPendingChanges()
    }

    /// Posts one notice of all changes since the last call. Does not end a group of changes for undo.
    package func postPendingChanges() {
        if ConcurrencyCheck.isOn { ConcurrencyCheck.verify(self) }
        if isWaitingForResumption { return }
        checkIsolation()
        prepareRequest()
        if !tracker.log.isEmpty { notify(ChangeSet(), refreshed: []) }
    }

    /// A closure called when unsaved changes begin: at the first change after it was set, and at the first change after each end of a save,
    /// rollback and reset, and after each call of ``awaitUnsavedChange()``. nil for none.
    ///
    /// It runs on the context's executor, in the middle of the change. It must not use the context, only schedule work that does.
    package var onFirstUnsavedChange: (() -> Void)? {
        get { tracker.log.onFirstUnsavedChange }
        set { tracker.log.onFirstUnsavedChange = newValue }
    }

    /// Makes the next change call ``onFirstUnsavedChange`` again.
    package func awaitUnsavedChange() { tracker.log.forgetUnsavedChange() }

    /// Processes later changes without a call of ``processPendingChanges()``: each time after the executor's job that made them. Where
    /// groups for undo end otherwise, such as with a `perform` block that may be suspended, this ends none (S162).
    func processChangesAutomatically() {
        guard tracker.log.onFirstChange == nil, let contextExecutor else { return }
        let context = WeakContext(contextExecutor: contextExecutor)
        tracker.log.onFirstChange = {
            context.contextExecutor?.enqueue {
                if $0.endsUndoEventsAutomatically { $0.processPendingChanges() } else { $0.postPendingChanges() }
            }
        }
        // The log calls the closure only for its first change. Changes that it has already need a call of their own.
        if !tracker.log.isEmpty { tracker.log.onFirstChange?() }
    }

    /// Notifies view observers and notice observers of changes that are visible now.
    ///
    /// The view also contains local changes that were not processed yet, so this method processes them. View observers thus receive all
    /// differences from the previous view.
    ///
    /// - Parameters:
    ///   - shown: Unsaved changes of ancestors that the previous view contained.
    ///   - unnamed: The changed objects that only views may have shown, by their slots.
    func notify(
        _ changes: ChangeSet?, refreshed: [ObjectID], saved: ChangeSet = ChangeSet(), over shown: [Layer] = [],
        unnamed: [EntityIndex: [PageNumber: UInt64]] = [:]
    ) {
        // Objects that were inserted and deleted since the last notice. Views may have shown them, but no notice names them (S041).
        var gone: [EntityIndex: [PageNumber: UInt64]] = [:]
        let log = tracker.log
        let own =
            tracker.log.isEmpty
            ? ChangeSet()
            : tracker.log.take(metadata) { entity, key in
                let kind = layerStack.pendingKind(entity, key)
                // A closed context shows no objects, although they exist.
                guard kind == nil, phase.closure == nil, (try? exists(entity, key)) == false else { return kind }
                guard log.isUnnamed(entity, key) else { return .delete }
                gone[entity, default: [:]][key.page, default: 0] |= 1 << UInt64(key.slot)
                return nil
            }
        if !observers.views.isEmpty {
            let view = sealedView()
            let (changes, saved) = comparing(changes, saved: saved, over: shown)
            let all = changes.map { own.isEmpty ? $0 : $0.isEmpty ? own : ChangeSet.union([$0, own]) }
            for observer in observers.views { observer.viewDidChange(view, all, saved: saved) }
        }
        var named = own
        if !gone.isEmpty { named.entities = own.entities(within: { ~(gone[$0]?[$1] ?? 0) }) }
        if !named.isEmpty { post(.objectsDidChange, named) }
        if changes?.isEmpty == true, refreshed.isEmpty { return }
        var shownChanges = changes ?? ChangeSet()
        if !unnamed.isEmpty {
            shownChanges.entities = shownChanges.entities(within: { ~(unnamed[$0]?[$1] ?? 0) })
            // An empty notice would say that the changes are unknown.
            if shownChanges.isEmpty, refreshed.isEmpty { return }
        }
        post(.objectsDidChange, shownChanges, refreshed: refreshed)
    }

    /// Counts merged changes of objects as saved if a running save of this context, or unsaved changes of its ancestors, have changed them
    /// too. The merge may bring what the context shows already. Observers compare saved objects in both views.
    private func comparing(
        _ changes: ChangeSet?, saved: ChangeSet, over shown: [Layer]
    ) -> (changes: ChangeSet?, saved: ChangeSet) {
        let layers = layerStack.taken + shown
        guard !layers.isEmpty, let changes, !changes.entities.isEmpty else { return (changes, saved) }
        func ownSlots(_ entity: EntityIndex, _ page: PageNumber) -> UInt64 {
            layers.reduce(0) { $0 | ($1.entity(entity)?.pages[page]?.touched ?? 0) }
        }
        var (others, own) = (changes, changes)
        own.entities = changes.entities(within: ownSlots)
        own.links = []
        others.entities = changes.entities(within: { ~ownSlots($0, $1) })
        return (others, saved.isEmpty ? own : ChangeSet.union([saved, own]))
    }

    func post(_ kind: ContextNotice.Kind, _ changes: ChangeSet, refreshed: [ObjectID] = []) {
        guard observers.hasNotices else { return }
        tracker.log.didName(changes)
        observers.post(ContextNotice(kind: kind, contextName: name, changes: changes, refreshed: refreshed))
        while let call = observers.nextCall() { call() }
    }
}

extension ChangeSet {
    /// Returns the ids of the inserted objects of every entity.
    public func insertedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.insertedKeys) }
    /// Returns the ids of the updated objects of every entity.
    public func updatedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.updatedKeys) }
    /// Returns the ids of the deleted objects of every entity.
    public func deletedIDs(in store: StoreIdentity) -> [ObjectID] { ids(store, \.deletedKeys) }

    /// Returns the ids of the objects that the history names as updated: of the updated ones, and of those with changed pairs.
    package func updatedIDs(in store: StoreIdentity, withPairsOf model: Model) -> [ObjectID] {
        var found = updatedIDs(in: store)
        guard !links.isEmpty else { return found }
        var known = Set(found + insertedIDs(in: store) + deletedIDs(in: store))
        forEachChangedList(of: model) { entity, key, _ in
            let id = ObjectID(store: store, entity: entity, key: key)
            if known.insert(id).inserted { found.append(id) }
        }
        return found
    }

    /// Calls `body` with the entity, the key and the relationship's name for each many-to-many relationship whose pairs changed. Leaves out
    /// an end of a link that has no relationship.
    func forEachChangedList(of model: Model, _ body: (EntityIndex, ObjectKey, String) -> Void) {
        guard !links.isEmpty else { return }
        for entity in model.entities {
            for relationship in entity.relationships {
                guard case .toMany(.link(let number, let direction, _)) = relationship.kind,
                    let change = links.first(where: { $0.link == number })
                else { continue }
                for key in direction == .forward ? change.sources : change.destinations {
                    body(entity.number, key, relationship.name)
                }
            }
        }
    }

    private func ids(_ store: StoreIdentity, _ keys: KeyPath<EntityChange, [ObjectKey]>) -> [ObjectID] {
        entities.flatMap { change in
            change[keyPath: keys].map { ObjectID(store: store, entity: change.entity, key: $0) }
        }
    }
}
