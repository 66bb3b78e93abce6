/// The groups of a context's history, as plain values (S162).
struct UndoModel {
    /// The change of one object, with nil for the state without the object and for attributes that are not part of the change.
    ///
    /// A change of the list also has the position. An object that leaves its list keeps the position, and returns to the list at it (S046).
    struct Difference: Equatable {
        var before: [Int?]?
        var after: [Int?]?
    }

    typealias Group = [Int: Difference]

    enum Policy: CaseIterable { case error, skip, force }

    private(set) var undoable: [Group] = []
    private(set) var redoable: [Group] = []

    mutating func removeAll() { (undoable, redoable) = ([], []) }

    /// Adds the difference between two states as a group. Equal states are no group.
    mutating func record(from before: [Int: ContextModel.Values], to after: [Int: ContextModel.Values]) {
        let group = Self.difference(from: before, to: after)
        guard !group.isEmpty else { return }
        redoable = []
        undoable.append(group)
    }

    static func difference(from before: [Int: ContextModel.Values], to after: [Int: ContextModel.Values]) -> Group {
        var group: Group = [:]
        for object in Set(before.keys).union(after.keys) where before[object] != after[object] {
            var change = Difference(before: before[object], after: after[object])
            if let old = before[object], let new = after[object] {
                change.before = zip(old, new).map { $0 == $1 ? nil : $0 }
                change.after = zip(old, new).map { $0 == $1 ? nil : $1 }
                if old[ContextModel.list] != new[ContextModel.list] {
                    change.before?[ContextModel.position] = old[ContextModel.position]
                    change.after?[ContextModel.position] = new[ContextModel.position]
                }
            }
            group[object] = change
        }
        return group
    }

    func newest(isRedo: Bool) -> Group? { isRedo ? redoable.last : undoable.last }

    /// Replaces the newest group by the difference that undoing or redoing it has made, for the next redo or undo.
    mutating func didRevert(isRedo: Bool, _ before: [Int: ContextModel.Values], _ after: [Int: ContextModel.Values]) {
        let made = isRedo ? Self.difference(from: before, to: after) : Self.difference(from: after, to: before)
        if isRedo { redoable.removeLast() } else { undoable.removeLast() }
        guard !made.isEmpty else { return }
        if isRedo { undoable.append(made) } else { redoable.append(made) }
    }
}

extension ContextModel {
    /// Undoes or redoes the newest group of a context by a three-way merge.
    ///
    /// - Returns: Whether there were conflicts. With the policy `error`, nothing has changed then.
    mutating func revert(_ context: Int, isRedo: Bool, _ policy: UndoModel.Policy) -> Bool {
        guard let group = contexts[context].undo?.newest(isRedo: isRedo) else { return false }
        let before = contexts[context].shown
        var copy = contexts[context]
        var hasConflicts = false
        for (object, change) in group {
            let (expected, wanted) = isRedo ? (change.before, change.after) : (change.after, change.before)
            if copy.revert(object, from: expected, to: wanted, policy) { hasConflicts = true }
        }
        if hasConflicts, policy == .error { return true }
        let after = copy.shown
        for object in group.keys where before[object] != after[object] { copy.dropRedundantChanges(object) }
        copy.undo?.didRevert(isRedo: isRedo, before, after)
        contexts[context] = copy
        return hasConflicts
    }
}

extension ContextModel.Context {
    /// Reverts the change of one object. Returns whether there is a conflict.
    fileprivate mutating func revert(_ object: Int, from expected: [Int?]?, to wanted: [Int?]?, _ policy: UndoModel.Policy)
        -> Bool
    {
        guard let present = shown[object] else {
            guard let wanted else { return false }
            // An object to change was deleted since.
            if expected != nil { return true }
            var values = wanted.map { $0 ?? 0 }
            // The deletion has changed no attribute, so that values of others stay.
            if pending[object] == .delete, let below = base[object]?.values {
                for column in values.indices where valuesOfDeleted[object]?[column] == nil { values[column] = below[column] }
            }
            insert(object, values)
            return false
        }
        guard let wanted else {
            let isChanged = zip(present, expected ?? []).contains { $1 != nil && $0 != $1 }
            if !isChanged || policy != .skip { delete(object) }
            return isChanged
        }
        var hasConflicts = false
        var values = present
        for column in present.indices {
            guard let new = wanted[column], new != present[column] else { continue }
            if let expected, expected[column] == new { continue }
            // An object to insert exists again, or an attribute was changed since.
            let isConflict = expected.map { $0[column] != present[column] } ?? true
            if isConflict { hasConflicts = true }
            if !isConflict || policy == .force { values[column] = new }
        }
        let (list, position) = (ContextModel.list, ContextModel.position)
        // A position belongs to a list: it returns with the object, and stays with an object that stays (S046).
        if let wantedList = wanted[list] {
            if values[list] != wantedList {
                values[position] = present[position]
            } else if values[list] != present[list], let old = wanted[position], !hasPosition(object, in: wantedList) {
                values[position] = old
            }
        }
        for column in present.indices { update(object, column, values[column]) }
        return hasConflicts
    }

    /// Returns whether the position of an object is one in a list, although its unsaved changes have taken it out of the list.
    private func hasPosition(_ object: Int, in list: Int) -> Bool {
        guard case .update(let new)? = pending[object] else { return false }
        return new[ContextModel.position] == nil && base[object]?.values[ContextModel.list] == list
    }

    /// Removes unsaved changes that equal the state below, so that nothing is left to save after undoing everything (S007).
    fileprivate mutating func dropRedundantChanges(_ object: Int) {
        guard case .update(let new)? = pending[object], let below = base[object]?.values else { return }
        let rest = zip(new, below).map { $0 == $1 ? nil : $0 }
        pending[object] = rest.contains { $0 != nil } ? .update(rest) : nil
    }
}
