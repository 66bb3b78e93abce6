import ObjectGraph

/// The promises of contexts and their store about plain values, on dictionaries (S047, S048, S070 to S075, S090, S100 to S106).
struct ContextModel {
    /// The three attributes of an object.
    typealias Values = [Int]

    enum Policy: String, CaseIterable {
        case error, storeTrump, objectTrump, overwrite, rollback
    }

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
    }

    enum Kind: String { case insert, update, delete }

    struct Context {
        var parent: Int?
        var policy = Policy.error
        /// The state below the context's own changes.
        var base: [Int: Stored]
        var pending: [Int: Change] = [:]
        var resets = 0
        /// The number of the parent's resets that the context knows of.
        var resetsOfParent = 0
        /// Updated objects that were gone below at some merge, with the values that the context showed before.
        var orphans: [Int: Values] = [:]

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
            base = new
            for (object, change) in pending {
                if case .update = change, new[object] == nil, orphans[object] == nil { orphans[object] = before[object] }
            }
        }
    }

    enum Failure: Equatable { case conflicts, parentGone }

    var store: [Int: Stored] = [:]
    var saves = 0
    var contexts: [Context] = []
    /// True if the promises do not determine what happens next. The sequence ends there.
    var isUndecided = false

    static func overlaid(_ values: Values, _ new: [Int?]) -> Values { zip(values, new).map { $1 ?? $0 } }

    // MARK: Changes

    mutating func insert(_ context: Int, _ object: Int, _ values: Values) { contexts[context].pending[object] = .insert(values) }

    mutating func update(_ context: Int, _ object: Int, _ column: Int, _ value: Int) {
        guard let shown = contexts[context].shown[object], shown[column] != value else { return }
        switch contexts[context].pending[object] {
        case .insert(var values):
            values[column] = value
            contexts[context].pending[object] = .insert(values)
        case .update(var new):
            new[column] = value
            contexts[context].pending[object] = .update(new)
        default:
            var new: [Int?] = [nil, nil, nil]
            new[column] = value
            contexts[context].pending[object] = .update(new)
        }
    }

    mutating func delete(_ context: Int, _ object: Int) {
        guard contexts[context].shown[object] != nil else { return }
        if case .insert = contexts[context].pending[object] {
            contexts[context].pending[object] = nil
        } else {
            contexts[context].pending[object] = .delete
        }
    }

    mutating func rollback(_ context: Int) {
        contexts[context].pending = [:]
        contexts[context].orphans = [:]
    }

    mutating func reset(_ context: Int) {
        rollback(context)
        contexts[context].resets += 1
        if contexts[context].parent == nil { contexts[context].base = store }
    }

    /// Moves a root to the store's state, or a child to its parent's.
    mutating func refresh(_ context: Int) {
        guard let parent = contexts[context].parent else { return contexts[context].move(to: store) }
        contexts[context].resetsOfParent = contexts[parent].resets
        contexts[context].move(to: contexts[parent].shown.mapValues { Stored(values: $0, version: 0) })
    }

    mutating func drop(_ context: Int, _ object: Int) {
        if case .insert = contexts[context].pending[object] { return }
        contexts[context].pending[object] = nil
        contexts[context].orphans[object] = nil
    }

    mutating func newContext(parent: Int?, policy: Policy) {
        guard let parent else { return contexts.append(Context(policy: policy, base: store)) }
        let shown = contexts[parent].shown.mapValues { Stored(values: $0, version: 0) }
        contexts.append(Context(parent: parent, policy: policy, base: shown, resetsOfParent: contexts[parent].resets))
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
        if let failure = copy.save(level) { return failure }
        self = copy
        return nil
    }

    private mutating func push(_ context: Int, to parent: Int) {
        let shownAbove = contexts[parent].shown
        for (object, change) in contexts[context].pending {
            switch change {
            case .insert(let values): contexts[parent].pending[object] = .insert(values)
            case .update(let new):
                // Objects that the parent no longer has are left out.
                guard shownAbove[object] != nil else { continue }
                switch contexts[parent].pending[object] {
                case .insert(let values): contexts[parent].pending[object] = .insert(Self.overlaid(values, new))
                case .update(let old):
                    contexts[parent].pending[object] = .update(zip(old, new).map { $1 ?? $0 })
                default: contexts[parent].pending[object] = .update(new)
                }
            case .delete:
                delete(parent, object)
            }
        }
        let shown = contexts[context].shown
        contexts[context].base = shown.mapValues { Stored(values: $0, version: 0) }
        rollback(context)
    }

    private mutating func saveRoot(_ context: Int) -> Failure? {
        let own = contexts[context]
        var next = store
        for (object, change) in own.pending {
            let (before, theirs) = (own.base[object], store[object])
            let isConflict = theirs?.version != before?.version
            switch change {
            case .insert(let values): next[object] = Stored(values: values, version: saves + 1)
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
                guard let values = resolved(own, object, new, theirs?.values) else { continue }
                next[object] = Stored(values: values, version: saves + 1)
            }
        }
        saves += 1
        store = next
        contexts[context].base = next
        rollback(context)
        return nil
    }

    /// Returns the values to write of an object that another save has changed or deleted, or nil to write none.
    private func resolved(_ own: Context, _ object: Int, _ new: [Int?], _ theirs: Values?) -> Values? {
        let before = own.base[object]?.values
        guard let theirs else {
            guard [.objectTrump, .overwrite].contains(own.policy) else { return nil }
            return (own.orphans[object] ?? before).map { Self.overlaid($0, new) }
        }
        switch own.policy {
        case .objectTrump: return Self.overlaid(theirs, new)
        case .overwrite: return before.map { Self.overlaid($0, new) }
        case .storeTrump:
            let kept = new.enumerated().map { column, value in before?[column] == theirs[column] ? value : nil }
            return kept.contains { $0 != nil } ? Self.overlaid(theirs, kept) : nil
        case .rollback, .error: return nil
        }
    }

    // MARK: Batches

    /// Sets an attribute in all objects whose first attribute has a value. nil deletes these objects.
    mutating func batch(where first: Int, _ column: Int, _ value: Int?) {
        saves += 1
        for (object, stored) in store where stored.values[0] == first {
            store[object]?.values[column] = value ?? 0
            store[object]?.version = saves
            if value == nil { store[object] = nil }
        }
    }
}
