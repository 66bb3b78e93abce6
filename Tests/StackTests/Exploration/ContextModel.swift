import TestSupport

/// The promises of contexts and their store about plain values, on dictionaries (S046 to S048, S070 to S075, S090, S100 to S107).
///
/// The first objects are lists, the others are things. A thing is in one list or in none.
struct ContextModel {
    /// The attributes of an object. For a list, only the first has a meaning: its title.
    ///
    /// For a thing, these are three numbers, the number of its list or -1, and the number of its position in the list. Only objects with
    /// the same number have the same position.
    typealias Values = [Int]

    /// The index of a thing's list in ``Values``.
    static let list = 3
    /// The index of a thing's position in ``Values``.
    static let position = 4

    struct Stored: Equatable {
        var values: Values
        /// The number of the save that last wrote the object.
        var version: Int
    }

    enum Change: Equatable {
        case insert(Values)
        /// The new values, with nil for unchanged attributes.
        case update([Int?])
        case delete

        var kind: Kind {
            switch self {
            case .insert: .insert
            case .update: .update
            case .delete: .delete
            }
        }

        /// Returns the change without a position in a list that others have taken the object out of; nil if nothing else changes.
        func withoutPosition(movingFrom old: Stored?, to new: Stored?) -> Change? {
            guard case .update(var values) = self, let old, let new, values[list] == nil, old.values[list] != new.values[list]
            else { return self }
            values[position] = nil
            return values.contains { $0 != nil } ? .update(values) : nil
        }
    }

    enum Kind: String { case insert, update, delete }

    struct Context {
        var parent: Int?
        var policy = PolicyKind.error
        /// The state below the context's own changes.
        var base: [Int: Stored]
        var pending: [Int: Change] = [:]
        var resets = 0
        /// The number of the parent's resets that the context knows of.
        var resetsOfParent = 0
        /// Objects that others have changed, and that a save of the root has passed since this child last read its parent's state.
        var unseen: Set<Int> = []
        /// Updated objects that were gone below at some merge, with the values that the context showed before.
        var updatesOfDeleted: [Int: Values] = [:]
        /// The unsaved values of deleted objects before their deletion, with nil for unchanged attributes.
        var valuesOfDeleted: [Int: [Int?]] = [:]
        /// The groups to undo and to redo; nil if the context has no history.
        var undo: UndoModel?

        var shown: [Int: Values] {
            var shown = base.mapValues(\.values)
            for (object, change) in pending {
                switch change {
                case .insert(let values): shown[object] = values
                case .update(let new): shown[object] = shown[object].map { ContextModel.overlaid($0, new) }
                case .delete: shown[object] = nil
                }
            }
            return shown
        }

        /// Changes the state below. The context's own changes stay, property by property.
        mutating func move(to new: [Int: Stored]) {
            let before = shown
            for (object, change) in pending {
                pending[object] = change.withoutPosition(movingFrom: base[object], to: new[object])
            }
            base = new
            for (object, change) in pending {
                if case .update = change, new[object] == nil, updatesOfDeleted[object] == nil {
                    updatesOfDeleted[object] = before[object]
                }
            }
        }

        mutating func update(_ object: Int, _ column: Int, _ value: Int) {
            guard let shown = shown[object], shown[column] != value else { return }
            switch pending[object] {
            case .insert(var values):
                values[column] = value
                pending[object] = .insert(values)
            case .update(var new):
                new[column] = value
                pending[object] = .update(new)
            default:
                var new: [Int?] = Array(repeating: nil, count: shown.count)
                new[column] = value
                pending[object] = .update(new)
            }
        }

        mutating func delete(_ object: Int) {
            guard shown[object] != nil else { return }
            if case .update(let new) = pending[object] { valuesOfDeleted[object] = new } else { valuesOfDeleted[object] = nil }
            if case .insert = pending[object] {
                pending[object] = nil
            } else {
                pending[object] = .delete
            }
        }

        /// Drops the changes by which things have joined or left a list, or have moved in it (S055).
        mutating func dropMembers(of list: Int) {
            let (place, position) = (ContextModel.list, ContextModel.position)
            // An update of an object that is gone below stays whole.
            for (object, change) in pending where updatesOfDeleted[object] == nil {
                switch change {
                case .insert(var values) where values[place] == list:
                    (values[place], values[position]) = (-1, 0)
                    pending[object] = .insert(values)
                case .update(var new) where new[place] == list || base[object]?.values[place] == list:
                    (new[place], new[position]) = (nil, nil)
                    pending[object] = new.contains { $0 != nil } ? .update(new) : nil
                default: continue
                }
            }
        }

        /// Drops the unsaved changes, and with them what can be undone (S048).
        mutating func rollback() {
            pending = [:]
            updatesOfDeleted = [:]
            undo?.removeAll()
        }
    }

    enum Failure: Equatable { case conflicts, parentGone }

    var store: [Int: Stored] = [:]
    var saves = 0
    var contexts: [Context] = []
    /// True if the promises do not determine what happens next. The sequence ends there.
    var isUndecided = false

    static func overlaid(_ values: Values, _ new: [Int?]) -> Values { zip(values, new).map { $1 ?? $0 } }

    /// Makes changes that form one group of the context's history (S162).
    mutating func recording(_ context: Int, _ body: (inout ContextModel) -> Void) {
        let before = contexts[context].shown
        body(&self)
        let after = contexts[context].shown
        contexts[context].undo?.record(from: before, to: after)
    }

    // MARK: Contexts

    mutating func reset(_ context: Int) {
        contexts[context].rollback()
        contexts[context].resets += 1
        if contexts[context].parent == nil { contexts[context].base = store }
    }

    /// Moves a root to the store's state, or a child to its parent's.
    mutating func refresh(_ context: Int) {
        for other in contexts.indices where other == context || ancestors(other).contains(context) { contexts[other].unseen = [] }
        guard let parent = contexts[context].parent else { return contexts[context].move(to: store) }
        contexts[context].resetsOfParent = contexts[parent].resets
        contexts[context].move(to: contexts[parent].shown.mapValues { Stored(values: $0, version: 0) })
    }

    mutating func drop(_ context: Int, _ object: Int, isList: Bool) {
        if case .insert = contexts[context].pending[object] { return }
        contexts[context].pending[object] = nil
        contexts[context].updatesOfDeleted[object] = nil
        if isList { contexts[context].dropMembers(of: object) }
    }

    mutating func newContext(parent: Int?, policy: PolicyKind, hasUndo: Bool) {
        var new = Context(policy: policy, base: store)
        if let parent {
            new.parent = parent
            new.base = contexts[parent].shown.mapValues { Stored(values: $0, version: 0) }
            new.resetsOfParent = contexts[parent].resets
            new.unseen = contexts[parent].unseen
        }
        if hasUndo { new.undo = UndoModel() }
        contexts.append(new)
    }

    private func ancestors(_ context: Int) -> [Int] {
        Array(sequence(first: context) { contexts[$0].parent }.dropFirst())
    }

    // MARK: Saving

    /// Saves one level. A failure changes nothing.
    mutating func save(_ context: Int) -> Failure? {
        guard !contexts[context].pending.isEmpty else { return nil }
        guard let parent = contexts[context].parent else { return saveRoot(context) }
        guard contexts[context].resetsOfParent == contexts[parent].resets else { return .parentGone }
        push(context, to: parent)
        return nil
    }

    /// Saves a child, its parents and the root.
    mutating func saveThrough(_ context: Int) -> Failure? {
        var copy = self
        var level = context
        while let parent = copy.contexts[level].parent {
            guard copy.contexts[level].resetsOfParent == copy.contexts[parent].resets else { return .parentGone }
            let shown = copy.contexts[parent].shown
            // The root's policy decides about objects that the parent has dropped. Another test covers the result.
            if copy.contexts[level].pending.contains(where: { object, change in
                if case .insert = change { false } else { shown[object] == nil }
            }) {
                isUndecided = true
                return nil
            }
            copy.push(level, to: parent)
            level = parent
        }
        if copy.isUndecided {
            isUndecided = true
            return nil
        }
        if let failure = copy.save(level) { return failure }
        self = copy
        return nil
    }

    private mutating func push(_ context: Int, to parent: Int) {
        let own = contexts[context]
        // The root has not merged the other change, but its state has it. The next save of the root may be a conflict, as the explorer of
        // increments by children checks.
        if !own.unseen.isDisjoint(with: own.pending.keys) { isUndecided = true }
        let shown = contexts[parent].shown.mapValues { Stored(values: $0, version: 0) }
        var changes = own.pending
        for (object, change) in own.pending {
            changes[object] = change.withoutPosition(movingFrom: own.base[object], to: shown[object])
        }
        recording(parent) { [changes] in $0.contexts[parent].take(changes) }
        contexts[context].base = own.shown.mapValues { Stored(values: $0, version: 0) }
        contexts[context].didSave()
    }

    private mutating func saveRoot(_ context: Int) -> Failure? {
        let own = contexts[context]
        var next = store
        for (object, change) in own.pending {
            let (before, theirs) = (own.base[object], store[object])
            let isConflict = theirs?.version != before?.version
            switch change {
            case .insert(let values):
                var written: Values? = values
                // Two contexts have undone the object's deletion.
                if let theirs, isConflict {
                    if own.policy == .error { return .conflicts }
                    if own.policy != .overwrite { written = own.resolved(object, values, theirs.values) }
                }
                if let written { next[object] = Stored(values: written, version: saves + 1) }
            case .delete:
                guard theirs != nil else { continue }
                if isConflict {
                    if own.policy == .error { return .conflicts }
                    if [.storeTrump, .rollback].contains(own.policy) { continue }
                }
                next[object] = nil
            case .update(let new):
                guard isConflict || theirs == nil else {
                    next[object] = theirs.map { Stored(values: Self.overlaid($0.values, new), version: saves + 1) }
                    continue
                }
                if own.policy == .error { return .conflicts }
                guard let values = own.resolved(object, new, theirs?.values) else { continue }
                next[object] = Stored(values: values, version: saves + 1)
            }
        }
        let passed = Set(store.keys).union(own.base.keys).filter { store[$0]?.version != own.base[$0]?.version }
        for other in contexts.indices where ancestors(other).contains(context) { contexts[other].unseen.formUnion(passed) }
        saves += 1
        store = next
        contexts[context].base = next
        contexts[context].didSave()
        return nil
    }

    // MARK: Batches

    /// Sets an attribute in all things whose first attribute has a value. nil deletes these things.
    mutating func batch(where first: Int, _ column: Int, _ value: Int?, isList: (Int) -> Bool) {
        saves += 1
        for (object, stored) in store where stored.values[0] == first && !isList(object) {
            store[object]?.values[column] = value ?? 0
            store[object]?.version = saves
            if value == nil { store[object] = nil }
        }
    }
}

extension ContextModel.Context {
    fileprivate mutating func didSave() {
        pending = [:]
        updatesOfDeleted = [:]
    }

    /// Takes the changes of a child (S074, S075).
    fileprivate mutating func take(_ changes: [Int: ContextModel.Change]) {
        let shownBefore = shown
        for (object, change) in changes {
            switch change {
            case .insert(let values): insert(object, values)
            case .update(let new):
                // Objects that the parent no longer has are left out.
                guard shownBefore[object] != nil else { continue }
                switch pending[object] {
                case .insert(let values): pending[object] = .insert(ContextModel.overlaid(values, new))
                case .update(let old): pending[object] = .update(zip(old, new).map { $1 ?? $0 })
                default: pending[object] = .update(new)
                }
            case .delete: delete(object)
            }
        }
    }

    /// Inserts an object, which an undo may do under the key of a deleted one.
    mutating func insert(_ object: Int, _ values: ContextModel.Values) {
        if base[object] != nil, pending[object]?.kind != .insert {
            pending[object] = .update(values)
        } else {
            pending[object] = .insert(values)
        }
    }

    /// Returns the values to write of an object that another save has changed or deleted, or nil to write none.
    fileprivate func resolved(_ object: Int, _ new: [Int?], _ theirs: ContextModel.Values?) -> ContextModel.Values? {
        let before = base[object]?.values
        guard let theirs else {
            guard [.objectTrump, .overwrite].contains(policy) else { return nil }
            return (updatesOfDeleted[object] ?? before).map { ContextModel.overlaid($0, new) }
        }
        let (list, position) = (ContextModel.list, ContextModel.position)
        // A position belongs to a list. If only the store has moved the object to another list, ours has no meaning any more.
        let isInAnotherList = before?[list] != theirs[list]
        switch policy {
        case .objectTrump:
            var new = new
            if new[list] == nil, isInAnotherList { new[position] = nil }
            return ContextModel.overlaid(theirs, new)
        case .overwrite: return before.map { ContextModel.overlaid($0, new) }
        case .storeTrump:
            var kept = new.enumerated().map { column, value in before?[column] == theirs[column] ? value : nil }
            if isInAnotherList {
                kept[position] = nil
            } else if new[list] != nil {
                kept[position] = new[position]
            }
            return kept.contains { $0 != nil } ? ContextModel.overlaid(theirs, kept) : nil
        case .rollback, .error: return nil
        }
    }
}
