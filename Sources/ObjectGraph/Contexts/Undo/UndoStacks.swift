import StoreModel

/// Recorded changes that are undone and redone together.
struct UndoGroup {
    /// Greater than that of each group that was closed before. Undo and redo keep it.
    /// 0 for a group that is still part of an open one.
    var id = 0
    var name: String?
    var step: UndoStep
    /// Whether the group was larger than the limit. Its step is then empty, because part of it must not be undone.
    var isTooLarge = false
}

/// The groups that can be undone and redone, oldest first, and the groups that are still open. Knows nothing of contexts.
///
/// The outermost open group is the group of the event: of a `perform` block, or of the time between two calls of
/// `processPendingChanges()`. It is opened by the first change and closed at the end of the event, unless the program has opened groups
/// in it.
struct UndoStacks {
    private struct OpenGroup {
        var name: String?
        var parts: [Part] = []
        var isTooLarge = false

        /// The bytes of the parts, which may change the same values.
        var byteCount: Int { parts.reduce(0) { $0 + $1.byteCount } }
    }

    private enum Part {
        case changes(UndoStep)
        case group(UndoGroup)

        var byteCount: Int {
            switch self {
            case .changes(let step): step.byteCount
            case .group(let group): group.step.byteCount
            }
        }
    }

    /// A closed group in an open one, and its place there.
    struct NestedGroup {
        let group: UndoGroup
        /// The number of the open group, from the outermost.
        fileprivate let level: Int
        /// The number of the group among the parts of the open group.
        fileprivate let part: Int
    }

    private(set) var undoable: [UndoGroup] = []
    private(set) var redoable: [UndoGroup] = []
    /// The open groups, outermost first. The first is the group of the event.
    private var open: [OpenGroup] = []
    /// The bytes of all closed and open groups.
    private(set) var byteCount = 0
    private var lastID = 0
    /// The maximum number of groups to undo; 0 for no maximum.
    var levels: Int { didSet { trim() } }
    var byteLimit: Int { didSet { trim() } }

    init(levels: Int, byteLimit: Int) {
        self.levels = levels
        self.byteLimit = byteLimit
    }

    /// The number of groups that the program has opened and not closed.
    var groupingLevel: Int { max(0, open.count - 1) }

    /// Whether the open group of the event contains changes that do not cancel each other. True if the program has opened groups in it.
    /// O(changes of the event).
    var hasOpenChanges: Bool {
        guard open.count == 1 else { return !open.isEmpty }
        return open[0].isTooLarge || !open[0].parts.isEmpty && !Self.closed(open[0]).step.isEmpty
    }

    /// Whether there is a group to undo. A group beyond the limit is none. O(changes of the event).
    var canUndo: Bool {
        guard groupingLevel == 0 else { return false }
        guard hasOpenChanges else { return undoable.last?.isTooLarge == false }
        return !open[0].isTooLarge && Self.closed(open[0]).step.byteCount <= byteLimit
    }

    /// Whether there is a group to redo, which the changes of the event do not replace. O(changes of the event).
    var canRedo: Bool { groupingLevel == 0 && !redoable.isEmpty && (isRedoOfEvent || !hasOpenChanges) }

    /// Whether the groups to redo were undone within the event that is open.
    private var isRedoOfEvent = false

    /// Whether the open groups are larger than the limit, so that their changes are not kept.
    var isOpenTooLarge: Bool { open.first?.isTooLarge ?? false }

    /// The bytes of the parts of the open groups.
    private var openByteCount = 0

    /// Whether the changes that are recorded complete an older group, so that a redo may still follow.
    var isCompleting = false

    // MARK: Recording

    /// Adds changes to the innermost open group. Several changes of one value count as one, unless they are in different groups.
    ///
    /// - Parameter step: The changes; nil if they are larger than the limit.
    mutating func record(_ step: UndoStep?) {
        guard step?.isEmpty != true else { return }
        if isRedoOfEvent, !isCompleting { dropRedoable() }
        if open.isEmpty { open.append(OpenGroup()) }
        guard var joined = step, !open[0].isTooLarge else { return dropOpenChanges() }
        let last = open.count - 1
        var replaced = 0
        if case .changes(var known)? = open[last].parts.last {
            // Removed first, because changes that the array still contains would be copied.
            open[last].parts.removeLast()
            replaced = known.byteCount
            known.append(joined)
            joined = known
        }
        let added = joined.byteCount - replaced
        guard openByteCount + added <= byteLimit else { return dropOpenChanges() }
        openByteCount += added
        byteCount += added
        open[last].parts.append(.changes(joined))
    }

    /// Marks the open groups as larger than the limit. Undoing a part of them would leave a state that never was.
    private mutating func dropOpenChanges() {
        byteCount -= openByteCount
        openByteCount = 0
        for number in open.indices {
            open[number].parts = []
            open[number].isTooLarge = true
        }
    }

    mutating func beginGroup(_ name: String?) {
        if open.isEmpty { open.append(OpenGroup()) }
        open.append(OpenGroup(name: name))
    }

    /// Closes the innermost group that the program has opened.
    ///
    /// - Precondition: ``groupingLevel`` is not 0.
    mutating func endGroup() {
        let ended = open.removeLast()
        let group = Self.closed(ended)
        // An empty group in a group of the program is one that an undo of nested groups finds.
        let isKept = !group.step.isEmpty || open.count > 1
        // As one step, the parts need less memory if they change the same values.
        let freed = ended.byteCount - (isKept ? group.step.byteCount : 0)
        openByteCount -= freed
        byteCount -= freed
        if isKept { return open[open.count - 1].parts.append(.group(group)) }
        // An event without changes is no group to which a name or the changes of hooks could belong.
        guard open.count == 1, !hasOpenChanges else { return }
        open = []
        byteCount -= openByteCount
        openByteCount = 0
    }

    /// Closes the group of the event, unless groups are open in it. Does nothing between events. A new group cannot be followed by a redo
    /// of older ones. Changes that cancel each other are none.
    ///
    /// - Returns: The new group to undo; nil if there is none.
    mutating func endEvent() -> UndoGroup? {
        guard open.count == 1, let event = open.popLast() else { return nil }
        byteCount -= openByteCount
        openByteCount = 0
        let keepsRedo = isRedoOfEvent
        isRedoOfEvent = false
        var group = Self.closed(event)
        group.id = makeID()
        if group.isTooLarge || group.step.byteCount > byteLimit {
            dropAll()
            undoable = [UndoGroup(id: group.id, name: group.name, step: UndoStep(), isTooLarge: true)]
            return undoable[0]
        }
        guard !group.step.isEmpty else { return nil }
        if !keepsRedo { dropRedoable() }
        pushUndoable(group)
        return group
    }

    /// Returns an id for a group that is closed now.
    mutating func makeID() -> Int {
        lastID += 1
        return lastID
    }

    /// Returns a group as one step. It is named after the last named group in it, if it has no name.
    private static func closed(_ group: OpenGroup) -> UndoGroup {
        var closed = UndoGroup(name: group.name, step: UndoStep(), isTooLarge: group.isTooLarge)
        for part in group.parts {
            switch part {
            case .changes(let step): closed.step.append(step)
            case .group(let inner):
                closed.step.append(inner.step)
                if group.name == nil, !inner.step.isEmpty, let name = inner.name { closed.name = name }
            }
        }
        return closed
    }

    /// Names the open group of the event, or the newest group if the event has no changes.
    mutating func setName(_ name: String?) {
        if hasOpenChanges { open[0].name = name } else if !undoable.isEmpty { undoable[undoable.count - 1].name = name }
    }

    /// The name of the newest group, open or closed.
    var undoName: String? { hasOpenChanges ? open[0].name ?? Self.closed(open[0]).name : undoable.last?.name }

    // MARK: Changes of hooks

    /// Removes and returns the changes of the event if it contains no groups of the program.
    mutating func takeEvent() -> UndoStep? {
        guard open.count == 1, !open[0].isTooLarge else { return nil }
        byteCount -= openByteCount
        openByteCount = 0
        return Self.closed(open.removeLast()).step
    }

    /// Adds changes that hooks made during a save to the group that they complete, so that they neither are undone alone nor
    /// conflict with it.
    mutating func absorb(_ step: UndoStep) {
        if redoable.isEmpty, let last = undoable.last, !last.isTooLarge {
            byteCount -= last.step.byteCount
            undoable[undoable.count - 1].step.append(step)
            byteCount += undoable[undoable.count - 1].step.byteCount
            return
        }
        let values = step.objects.compactMapValues(\.changedValues)
        adapt(\.undoable, to: values, isUndone: false)
        adapt(\.redoable, to: values, isUndone: true)
    }

    /// Adapts groups to new values. Each value concerns the group that is undone, or redone, first of those that have the column.
    private mutating func adapt(
        _ groups: WritableKeyPath<UndoStacks, [UndoGroup]>, to values: [ObjectAddress: Row], isUndone: Bool
    ) {
        var left = values
        for number in self[keyPath: groups].indices.reversed() where !left.isEmpty {
            byteCount -= self[keyPath: groups][number].step.byteCount
            left = self[keyPath: groups][number].step.adapt(to: left, isUndone: isUndone)
            byteCount += self[keyPath: groups][number].step.byteCount
        }
    }

    // MARK: Undoing

    mutating func pushUndoable(_ group: UndoGroup) {
        byteCount += group.step.byteCount
        undoable.append(group)
        trim()
    }

    mutating func pushRedoable(_ group: UndoGroup) {
        byteCount += group.step.byteCount
        redoable.append(group)
        trim()
    }

    /// Removes a group to undo. It need not be the newest, because observers of its undo may have made groups. Does nothing if it was
    /// dropped meanwhile.
    mutating func removeUndoable(id: Int) {
        guard let index = undoable.lastIndex(where: { $0.id == id }) else { return }
        byteCount -= undoable.remove(at: index).step.byteCount
    }

    /// Removes a group to redo. Does nothing if it was dropped meanwhile: a group that an observer of its redo made ends redo.
    mutating func removeRedoable(id: Int) {
        guard let index = redoable.lastIndex(where: { $0.id == id }) else { return }
        byteCount -= redoable.remove(at: index).step.byteCount
    }

    /// The newest part of the innermost open group, if that part is a closed group.
    var nestedGroup: NestedGroup? {
        guard let parts = open.last?.parts, case .group(let group)? = parts.last else { return nil }
        return NestedGroup(group: group, level: open.count - 1, part: parts.count - 1)
    }

    /// Removes a nested group. Observers of its undo may have added parts after it. Does nothing if it was dropped meanwhile.
    mutating func remove(_ nested: NestedGroup) {
        guard open.indices.contains(nested.level), open[nested.level].parts.indices.contains(nested.part),
            case .group(let group) = open[nested.level].parts[nested.part]
        else { return }
        open[nested.level].parts.remove(at: nested.part)
        openByteCount -= group.step.byteCount
        byteCount -= group.step.byteCount
    }

    /// Adds a nested group that was undone within the open event. It can be redone after the event, unless other changes follow.
    mutating func pushNestedRedoable(_ group: UndoGroup) {
        if !isRedoOfEvent { dropRedoable() }
        isRedoOfEvent = true
        pushRedoable(group)
    }

    private mutating func dropRedoable() {
        isRedoOfEvent = false
        byteCount -= redoable.reduce(0) { $0 + $1.step.byteCount }
        redoable = []
    }

    /// Drops all closed groups.
    private mutating func dropAll() {
        undoable = []
        redoable = []
        byteCount = openByteCount
    }

    /// Drops all groups, and the changes of open groups. The groups stay open.
    mutating func removeAll() {
        dropAll()
        byteCount = 0
        openByteCount = 0
        if open.count == 1 { open = [] }
        for number in open.indices { open[number] = OpenGroup(name: open[number].name) }
    }

    /// Drops the oldest groups until the limits hold.
    private mutating func trim() {
        var excess = levels > 0 ? max(0, undoable.count - levels) : 0
        var bytes = byteCount - undoable.prefix(excess).reduce(0) { $0 + $1.step.byteCount }
        while bytes > byteLimit, excess < undoable.count {
            bytes -= undoable[excess].step.byteCount
            excess += 1
        }
        if excess > 0 { undoable.removeFirst(excess) }
        byteCount = bytes
        // Groups that were undone last are redone first, so the farthest are dropped.
        while byteCount > byteLimit, !redoable.isEmpty { byteCount -= redoable.removeFirst().step.byteCount }
    }
}
