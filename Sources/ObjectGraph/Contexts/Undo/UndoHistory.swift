import StoreInterface
import StoreModel

/// The changes of a context that can be undone and redone (S162).
///
/// Undo is off until a context has a history. From then on, the changes of each `perform` block form one group. In a context on the main
/// actor, a group ends with the executor's job that made its changes, and with a call of `processPendingChanges()`. A save of a child
/// is a group of its parent.
///
/// ```swift
/// let history = UndoHistory(levels: 50)
/// context.undoHistory = history
/// track.title = "Baguette"
/// context.processPendingChanges()
/// try history.undo()
/// try history.redo()
/// ```
/// An undo makes unsaved changes, which observers and live results see like any others. So it also works after a save: save again to
/// store the undone values. Undoing an insertion deletes the object, and undoing a deletion brings it back with its id, its values and
/// its relationships. No lifecycle hooks are called.
///
/// A history belongs to one context and is used where that context is used. It can move to another context of the store. If a context of
/// another store or model takes it, it forgets its groups.
public final class UndoHistory {
    weak var context: ManagedObjectContext?
    var stacks: UndoStacks
    /// The number of running steps whose changes are not recorded.
    var suspensions = 0
    /// Whether a group is being undone or redone.
    private(set) var isReverting = false
    /// Whether hooks of a save are running, whose changes belong to one group.
    var isRunningHooks = false
    /// The store and the model of the groups; nil before the first context.
    private var origin: UndoOrigin?
    /// The undo manager of the user interface, in which groups are actions.
    var registration: UndoRegistration?
    /// Whether an action of the manager is undoing groups. A group that is registered meanwhile would become an action to redo.
    var isPerformingUndo = false
    /// The groups that were closed meanwhile. They become actions before the next group.
    var unregistered: Set<Int> = []

    /// Creates an empty history.
    ///
    /// - Parameters:
    ///   - levels: The maximum number of groups to undo; 0, the default, for no maximum.
    ///   - byteLimit: The maximum memory of the recorded changes, approximately. The default is 64 MiB.
    public init(levels: Int = 0, byteLimit: Int = 64 << 20) {
        stacks = UndoStacks(levels: levels, byteLimit: byteLimit)
    }

    /// The maximum number of groups to undo; 0 for no maximum. If there are more, the oldest are dropped.
    public var levels: Int {
        get { stacks.levels }
        set { stacks.levels = newValue }
    }

    /// The maximum memory of the recorded changes, approximately. If they need more, the oldest groups are dropped.
    ///
    /// A group that is larger than the limit is not kept, and neither are older ones: ``undo(onConflict:)`` throws
    /// ``UndoError/groupTooLarge(context:limit:)``. The changes themselves are not affected.
    public var byteLimit: Int {
        get { stacks.byteLimit }
        set { stacks.byteLimit = newValue }
    }

    /// The approximate memory of the recorded changes. Large values that the context shares are counted too.
    public var byteCount: Int { stacks.byteCount }

    // MARK: Undo and redo

    /// A Boolean value that indicates whether there is a group to undo. Changes that cancel each other are no group. Changes that are
    /// larger than ``byteLimit`` are none, either. O(changes since the last group).
    public var canUndo: Bool {
        closeSegment()
        return stacks.canUndo
    }

    /// A Boolean value that indicates whether there is a group to redo. New changes end that, unless they cancel each other within their
    /// group. O(changes since the last group).
    public var canRedo: Bool {
        closeSegment()
        return stacks.canRedo
    }

    /// The name of the group that ``undo(onConflict:)`` undoes; nil if it has none.
    public var undoActionName: String? { stacks.undoName }

    /// The name of the group that ``redo(onConflict:)`` redoes; nil if it has none.
    public var redoActionName: String? { stacks.redoable.last?.name }

    /// Undoes the newest group, after ending the present one. Does nothing if there is none. O(changes of the group).
    ///
    /// A property is undone if it still is as the group left it, or already is as it was before. Otherwise it was changed since, for example
    /// by a merged save of another context, and is a conflict.
    ///
    /// - Parameter policy: The treatment of conflicts. By default they are thrown, and nothing changes.
    /// - Returns: The conflicts that the policy has resolved.
    /// - Throws: ``UndoError``; `StoreError` `.closed` after the container was closed. Then nothing has changed.
    @discardableResult
    public func undo(onConflict policy: UndoPolicy = .error) throws -> [UndoConflict] { try undo(nil, onConflict: policy) }

    /// Undoes the group with an id, although observers may have made newer ones; the newest group if it is nil.
    @discardableResult
    func undo(_ id: Int?, onConflict policy: UndoPolicy) throws -> [UndoConflict] {
        let context = try prepared()
        guard let group = stacks.undoable.last(where: { id == nil || $0.id == id }) else { return [] }
        if group.isTooLarge { throw UndoError.groupTooLarge(context: context.name, limit: byteLimit) }
        let (conflicts, made) = try reverting { try context.revert(group.step, isRedo: false, policy) }
        // Observers may have made newer groups.
        stacks.removeUndoable(id: group.id)
        if !made.isEmpty { stacks.pushRedoable(UndoGroup(id: group.id, name: group.name, step: made)) }
        return conflicts
    }

    /// Redoes the group that was undone last. Does nothing if there is none, or if changes were made since. O(changes of the group).
    ///
    /// - Parameter policy: The treatment of conflicts. By default they are thrown, and nothing changes.
    /// - Returns: The conflicts that the policy has resolved.
    /// - Throws: ``UndoError``; `StoreError` `.closed` after the container was closed. Then nothing has changed.
    @discardableResult
    public func redo(onConflict policy: UndoPolicy = .error) throws -> [UndoConflict] {
        let context = try prepared()
        guard let group = stacks.redoable.last else { return [] }
        let (conflicts, made) = try reverting { try context.revert(group.step, isRedo: true, policy) }
        stacks.removeRedoable(id: group.id)
        // The step that the redo made is one to undo, like the one that the user made.
        if !made.isEmpty { stacks.pushUndoable(UndoGroup(id: group.id, name: group.name, step: made)) }
        return conflicts
    }

    /// Undoes the group that was closed last in an open group. Without an open group, undoes the newest group.
    ///
    /// ``redo(onConflict:)`` redoes it after all groups are closed, unless other changes were recorded meanwhile.
    ///
    /// - Precondition: No changes were made in the open group since the nested group was closed.
    /// - Returns: The conflicts that the policy has resolved.
    /// - Throws: The errors of ``undo(onConflict:)``. Then nothing has changed.
    @discardableResult
    public func undoNestedGroup(onConflict policy: UndoPolicy = .error) throws -> [UndoConflict] {
        guard let context else { throw UndoError.noContext }
        guard stacks.groupingLevel > 0 else { return try undo(onConflict: policy) }
        context.checkIsolation()
        try context.checkOpen()
        context.closeUndoSegment()
        if stacks.isOpenTooLarge { throw UndoError.groupTooLarge(context: context.name, limit: byteLimit) }
        guard let nested = stacks.nestedGroup else {
            preconditionFailure("cannot undo a nested group of \(context.name): the newest changes belong to no closed group")
        }
        let (conflicts, made) = try reverting { try context.revert(nested.group.step, isRedo: false, policy) }
        stacks.remove(nested)
        if !made.isEmpty { stacks.pushNestedRedoable(UndoGroup(id: stacks.makeID(), name: nested.group.name, step: made)) }
        return conflicts
    }

    private func prepared() throws -> ManagedObjectContext {
        guard let context else { throw UndoError.noContext }
        context.checkIsolation()
        context.prepareRequest()
        try context.checkOpen()
        context.closeUndoEvent()
        guard stacks.groupingLevel == 0 else {
            throw UndoError.groupIsOpen(context: context.name, levels: stacks.groupingLevel)
        }
        return context
    }

    private func reverting<R>(_ body: () throws -> R) rethrows -> R {
        precondition(!isReverting, "undo and redo cannot be called by an observer of an undo or redo")
        isReverting = true
        defer { isReverting = false }
        return try body()
    }

    /// Records the changes that were made until now.
    private func closeSegment() {
        context?.checkIsolation()
        context?.closeUndoSegment()
    }

    // MARK: Groups

    /// The number of open groups. Undo and redo need 0.
    public var groupingLevel: Int { stacks.groupingLevel }

    /// Opens a group inside the group of the present `perform` block, or in another open group.
    ///
    /// As long as a group is open, the changes of several `perform` blocks belong to it. Call ``endGroup()`` once per group.
    /// - Parameter name: The name of the group. The outermost group takes the name of the last named group in it.
    public func beginGroup(_ name: String? = nil) {
        closeSegment()
        stacks.beginGroup(name)
    }

    /// Closes the group that was opened last. Its changes become part of the enclosing group.
    ///
    /// - Precondition: A group is open.
    public func endGroup() {
        precondition(stacks.groupingLevel > 0, "endGroup() without beginGroup(_:): no group is open")
        closeSegment()
        stacks.endGroup()
    }

    /// Runs `body` in a group, which is closed in the end, also if `body` throws.
    ///
    /// ```swift
    /// history.group("Rename") {
    ///     for track in tracks { track.title = track.title.capitalized }
    /// }
    /// ```
    @discardableResult
    public func group<R>(_ name: String? = nil, _ body: () throws -> R) rethrows -> R {
        beginGroup(name)
        defer { endGroup() }
        return try body()
    }

    /// Names the present group, or the newest group if no changes were made since it ended.
    public func setActionName(_ name: String?) {
        closeSegment()
        stacks.setName(name)
        if !stacks.hasOpenChanges { registration?.registrar.setActionName(name) }
    }

    /// Runs `body` without recording its changes.
    ///
    /// If they change what a group has changed, undoing that group finds conflicts.
    @discardableResult
    public func withoutRegistration<R>(_ body: () throws -> R) rethrows -> R {
        guard let context else { return try body() }
        context.checkIsolation()
        return try context.withoutUndo(body)
    }

    /// Forgets all groups. The changes themselves stay. Groups that are open stay open.
    public func removeAllActions() {
        context?.skipUndoSegment()
        stacks.removeAll()
        unregistered = []
        registration?.registrar.removeActions()
    }

    /// Closes the group of the event, and registers it.
    func endEvent() {
        guard let group = stacks.endEvent(), let registration else { return }
        if isPerformingUndo, !group.isTooLarge {
            unregistered.insert(group.id)
            return
        }
        let late = stacks.undoable.filter { unregistered.contains($0.id) }
        unregistered = []
        // A group beyond the limit is not kept, and neither are older ones.
        if group.isTooLarge { return registration.registrar.removeActions() }
        for group in late { registration.register(group, of: self, isRedo: false) }
        registration.register(group, of: self, isRedo: false)
    }

    /// Makes this the history of a context. Groups of another store or model are forgotten, because their ids denote other objects there.
    ///
    /// - Precondition: The history belongs to no context.
    fileprivate func move(to context: ManagedObjectContext) {
        let new = UndoOrigin(context)
        if let origin, origin != new { removeAllActions() }
        origin = new
        self.context = context
    }
}

/// The store and the model whose objects the groups of a history concern.
private struct UndoOrigin: Equatable {
    let lineage: StoreLineage
    let schema: StoreSchema

    init(_ context: ManagedObjectContext) {
        let store = context.configuration.writer.store
        // A read-only store would read its incarnations from the file again.
        lineage = store.isReadOnly ? StoreLineage(store: store.identity.uuid) : store.lineage
        schema = context.storedModel.storeSchema.withoutHints
    }
}

extension ManagedObjectContext {
    /// The changes that can be undone; nil while undo is off, as it is at first.
    ///
    /// Changes made before this is set cannot be undone. Setting it to nil turns undo off. ``rollback()`` and ``reset()`` forget all groups.
    /// ``save(_:)`` keeps them. A history that comes from a context of another store or model forgets its groups. A restored copy counts as
    /// another store.
    ///
    /// - Precondition: The history belongs to no other context.
    public var undoHistory: UndoHistory? {
        get { tracker.undo }
        set {
            checkIsolation()
            precondition(newValue?.context == nil || newValue === tracker.undo, "an undo history belongs to one context")
            closeUndoEvent()
            tracker.undo?.context = nil
            tracker.undo = newValue
            newValue?.move(to: self)
            beginUndoSegment()
            switchLog()
            if endsUndoEventsAutomatically { processChangesAutomatically() }
        }
    }
}

extension UndoHistory: CustomStringConvertible, CustomReflectable {
    /// The numbers of groups to undo and to redo, and their memory.
    public var description: String {
        let context = context.map { " of \($0.name)" } ?? ""
        return "undo history\(context): \(stacks.undoable.count) to undo, \(stacks.redoable.count) to redo, \(byteCount) bytes"
    }

    /// No children: recorded rows are no content to print.
    public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}
