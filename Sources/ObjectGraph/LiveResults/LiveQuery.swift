import StoreInterface
import StoreModel

/// A query's result that can be advanced to newer views. It is a value owned by a worker and needs no context.
struct LiveQuery: Sendable {
    let query: StoreQuery
    /// The log of slow queries; nil for none.
    private let log: LiveFetchLog?
    private(set) var view: LayeredView
    /// Whether the view was released, so that old values cannot be compared with new ones.
    private var isDetached = false
    /// Every object that the query selects. ``window`` applies offset and limit.
    private(set) var list: ResultList
    /// The sort values of the objects in ``list``, if the view is not a snapshot in time and no longer has them; otherwise nil.
    private var remembered: [ObjectKey: SortCandidate]?
    /// The sections of the objects in ``list``; nil if the result has none.
    private(set) var sections: SectionList?

    /// Runs the query. O(result).
    init(_ query: StoreQuery, hasSections: Bool = false, log: LiveFetchLog? = nil, in view: LayeredView) throws {
        self.init(empty: query, hasSections: hasSections, log: log, in: view)
        adopt(try fetch(in: view), of: view)
    }

    /// Creates an empty result.
    ///
    /// - Parameters:
    ///   - query: The query.
    ///   - hasSections: Whether objects with the same value of the first sort are a section.
    ///   - log: The log of slow queries; nil for none.
    ///   - view: The view that the result is read from.
    init(empty query: StoreQuery, hasSections: Bool = false, log: LiveFetchLog? = nil, in view: LayeredView) {
        self.query = query
        self.log = log
        self.view = view
        list = ResultList(order: SortOrder(query.sort))
        sections = hasSections ? query.sort.first.map { SectionList($0, of: query.entity, view.schema) } : nil
    }

    /// The positions of ``list`` that remain after the query's offset and limit.
    var window: Range<Int> {
        let start = min(query.offset, list.count)
        return start..<min(list.count, start + min(query.limit ?? .max, list.count))
    }

    private func fetch(in view: LayeredView) throws -> [SortCandidate] {
        var whole = query
        whole.offset = 0
        whole.limit = nil
        guard let log else { return try candidates(whole, in: view) }
        return try log.timing(whole, view: view) { try candidates(whole, in: view) }
    }

    private func candidates(_ whole: StoreQuery, in view: LayeredView) throws -> [SortCandidate] {
        var candidates: [SortCandidate] = []
        let keys = try view.keys(whole)
        candidates.reserveCapacity(keys.count)
        for key in keys { candidates.append(try candidate(key, in: view)) }
        return candidates
    }

    /// Returns an object with its sort values, which a result with sections needs even if its prefix is exact.
    private func candidate(_ key: ObjectKey, in view: some ObjectReader) throws -> SortCandidate {
        var candidate = try list.order.candidate(query.entity, key, in: view)
        if sections != nil, candidate.values.isEmpty { candidate.values = try list.order.values(query.entity, key, in: view) }
        return candidate
    }

    /// Replaces the whole result.
    private mutating func adopt(_ candidates: [SortCandidate], of view: LayeredView) {
        self.view = view
        let order = SortOrder(query.sort)
        var candidates = candidates
        // Values may have changed after the keys were sorted.
        if !view.base.isFixed { candidates.sort { order.precedes($0, $1) } }
        list = ResultList(order: order, ContiguousArray(candidates.lazy.map(\.entry)))
        if sections != nil, let sort = query.sort.first {
            var next = SectionList(sort, of: query.entity, view.schema)
            for candidate in candidates { next.append(candidate.values[0]) }
            sections = next
        }
        remembered = nil
        if view.base.isFixed { return }
        remembered = Dictionary(uniqueKeysWithValues: candidates.map { ($0.entry.key, $0) })
    }

    /// Advances to a newer view and returns the changes in the window.
    ///
    /// - Parameters:
    ///   - changes: All differences between the two views; nil if they are unknown, which costs O(result).
    ///   - saved: Saved objects, which usually look the same in both views but must be checked.
    /// - Throws: The store's error. The query then stays at the old view.
    mutating func advance(
        to next: LayeredView, changes: [ChangeSet]?, saved: [ChangeSet] = []
    ) throws -> ResultDifference {
        if isDetached || isReplaced { return try reattach(to: next, changes, saved: saved) }
        let followsOthers = query.predicate.traversesRelationships || query.followedBySort != nil
        guard let changes = changes ?? view.changesWithin(next), remembered == nil || !followsOthers else {
            return try recompute(in: next)
        }
        let (before, after) = (PageKeepingView(view), PageKeepingView(next))
        var changed = changes
        changed += try saved.map { remembered == nil ? try before.differing($0, in: after) : $0 }
        let affected = try AffectedObjects(old: before, new: after, changes: changed).keys(for: query)
        guard !affected.isEmpty else {
            view = next
            return ResultDifference()
        }
        if affected.count > 1_000, affected.count > list.count {
            return try recompute(in: next, updated: Set(affected))
        }
        return try replace(affected, from: before, to: after)
    }

    /// Whether the view, from which the list was made as a snapshot in time, reads a newer state now: a suspension on another thread replaces
    /// what a confined context reads.
    private var isReplaced: Bool { remembered == nil && !view.base.isFixed }

    /// Releases the view. The next call of ``advance(to:changes:saved:)`` runs the query again.
    mutating func detach(_ empty: LayeredView) {
        view = empty
        remembered = nil
        isDetached = true
    }

    private mutating func reattach(
        to next: LayeredView, _ changes: [ChangeSet]?, saved: [ChangeSet]
    ) throws -> ResultDifference {
        var attached = self
        attached.isDetached = false
        let updated = changes.flatMap { changes -> Set<ObjectKey>? in
            // The former partners cannot be read any more, so that each object may have lost or gained one.
            if changes.contains(where: { mayRelate($0, next.schema) }) { return nil }
            return Set(
                (changes + saved).flatMap { change in
                    change.change(of: query.entity).map { $0.insertedKeys + $0.updatedKeys + $0.deletedKeys } ?? []
                })
        }
        let difference = try attached.recompute(in: next, updated: updated ?? Set(list.keys(window)))
        self = attached
        return difference
    }

    /// Whether changes may concern relationships of the query's objects, or objects that its condition or sort follows.
    private func mayRelate(_ changes: ChangeSet, _ schema: StoreSchema) -> Bool {
        let followsOthers = query.predicate.traversesRelationships || query.followedBySort != nil
        let hasPairs = changes.links.contains { change in
            let link = schema.links[change.link]
            return followsOthers || link.source == query.entity || link.destination == query.entity
        }
        return hasPairs
            || changes.entities.contains { change in
                if followsOthers, change.entity != query.entity { return true }
                if schema.mayDangle(query.entity, to: change.entity),
                    change.pages.contains(where: { $0.inserted | $0.deleted != 0 })
                {
                    return true
                }
                let definition = schema.entities[change.entity]
                return definition.columnIndices.contains { column in
                    guard definition.columns[column].destination == query.entity else { return false }
                    let position = definition.position(in: column)
                    return change.pages.contains { page in
                        page.inserted | page.deleted != 0 || page.columns.contains(column)
                            || position.map(page.columns.contains) ?? false
                    }
                }
            }
    }

    // MARK: Replacing a few objects

    /// The old and the new place of one object.
    private struct Transition {
        var from: ResultList.Location?
        var to: SortCandidate?
        var key: ObjectKey
    }

    private mutating func replace(
        _ keys: [ObjectKey], from before: PageKeepingView, to after: PageKeepingView
    ) throws -> ResultDifference {
        var leaving: [(place: ResultList.Location, key: ObjectKey)] = []
        var arriving: [SortCandidate] = []
        var inPlace: [Int] = []
        for key in keys {
            let transition = try transition(of: key, from: before, to: after)
            switch (transition.from, transition.to) {
            case (nil, nil): break
            case (let from?, nil): leaving.append((from, key))
            case (nil, let to?): arriving.append(to)
            case (let from?, let to?):
                if try isSameLocation(from, key: key, new: to, before) {
                    inPlace.append(from.position)
                } else {
                    leaving.append((from, key))
                    arriving.append(to)
                }
            }
        }
        leaving.sort { $0.place.position < $1.place.position }
        let order = list.order
        arriving.sort { order.precedes($0, $1) }
        let entering = try arriving.map {
            (place: try list.insertionLocation(of: $0) { try oldValues($0, before) }, entry: $0.entry)
        }
        let oldKeys = isWindowed ? list.keys(window) : []
        let leftSections = sections == nil ? [] : try leaving.map { try oldValues($0.key, before)[0] }
        // After all old values were read, and before one of them is relied on.
        if isReplaced { return try recompute(in: after.view, updated: Set(keys)) }
        let (replaced, positions) = list.replacing(leaving.map(\.place), with: entering)
        list = replaced
        for value in leftSections { sections?.remove(value) }
        for candidate in arriving { if let value = candidate.values.first { sections?.insert(value) } }
        view = after.view
        remember(arriving, forgetting: leaving.map(\.key))
        if isWindowed {
            let updated = Set(keys)
            return ResultDifference(from: oldKeys, to: list.keys(window)) { updated.contains($0) }
        }
        let arrivals = zip(arriving, positions).map { ($0.entry.key, $1) }
        return Positions(leaving: leaving.map { ($0.key, $0.place.position) }, arriving: arrivals).difference(updating: inPlace)
    }

    private var isWindowed: Bool { query.offset > 0 || query.limit != nil }

    /// Returns an object's old and new place. The old place is looked up in the list, by the sort values in the old view.
    private func transition(
        of key: ObjectKey, from before: PageKeepingView, to after: PageKeepingView
    ) throws -> Transition {
        var transition = Transition(key: key)
        if let remembered {
            if let old = remembered[key] { transition.from = try list.place(of: old) { try oldValues($0, before) } }
        } else if try before.exists(query.entity, key) {
            transition.from = try list.place(of: list.order.candidate(query.entity, key, in: before)) {
                try oldValues($0, before)
            }
        }
        if try after.exists(query.entity, key), try query.predicate.matches(query.entity, key: key, in: after) {
            transition.to = try candidate(key, in: after)
        }
        return transition
    }

    /// Returns the values by which an object is placed in the list.
    private func oldValues(_ key: ObjectKey, _ before: PageKeepingView) throws -> [Value] {
        if let remembered { return remembered[key]?.values ?? [] }
        return try list.order.values(query.entity, key, in: before)
    }

    private mutating func remember(_ arrived: [SortCandidate], forgetting left: [ObjectKey]) {
        guard remembered != nil else { return }
        for key in left { remembered?[key] = nil }
        for candidate in arrived { remembered?[candidate.entry.key] = candidate }
    }

    /// Whether an object's sort values are unchanged.
    private func isSameLocation(
        _ place: ResultList.Location, key: ObjectKey, new: SortCandidate, _ before: PageKeepingView
    ) throws -> Bool {
        guard list.entry(at: place).prefix == new.entry.prefix else { return false }
        if new.entry.prefix.isExact { return true }
        let old = try oldValues(key, before)
        return !list.order.precedes(old, key: key, new.values, key: key)
            && !list.order.precedes(new.values, key: key, old, key: key)
    }

    // MARK: Replacing everything

    /// Runs the query again and compares the results.
    ///
    /// - Parameter updated: The changed objects; nil if they are unknown.
    private mutating func recompute(in next: LayeredView, updated: Set<ObjectKey>? = nil) throws -> ResultDifference {
        let oldKeys = list.keys(window)
        let (old, new) = (PageKeepingView(view), PageKeepingView(next))
        let isRemembered = remembered != nil
        var after = self
        after.adopt(try fetch(in: next), of: next)
        let entity = query.entity
        let lists = updated == nil && !isRemembered ? old.memberLists(of: entity) : []
        var difference = try ResultDifference(from: oldKeys, to: after.list.keys(after.window)) { key in
            if let updated { return updated.contains(key) }
            // There are no old values to compare with, so count the object as updated.
            if isRemembered { return true }
            // Objects that gain or lose members count as updated, too.
            return try !old.looksTheSame(entity, key, in: new)
                || !lists.allSatisfy { try old.hasTheSameMembers(key, in: $0, of: new) }
        }
        if let sections, let newSections = after.sections {
            difference.noteChangedSections(
                from: sections.sections(in: window), to: newSections.sections(in: after.window), count: after.window.count)
        }
        self = after
        return difference
    }
}

/// The old positions of leaving objects and the new positions of arriving objects. An object that moves is in both lists.
private struct Positions {
    /// The leaving objects, ascending by position.
    let leaving: [(key: ObjectKey, position: Int)]
    /// The arriving objects, ascending by position.
    let arriving: [(key: ObjectKey, position: Int)]

    /// Returns the difference.
    ///
    /// - Parameter inPlace: Old positions of objects that changed but stay between the same neighbors.
    func difference(updating inPlace: [Int]) -> ResultDifference {
        var difference = ResultDifference()
        var sources: [ObjectKey: Int] = [:]
        for (index, object) in leaving.enumerated() { sources[object.key] = index }
        var both: [(from: Int, to: Int)] = []
        for (index, object) in arriving.enumerated() {
            if let source = sources.removeValue(forKey: object.key) {
                both.append((source, index))
            } else {
                difference.insertions.append(object.position)
            }
        }
        difference.deletions = sources.values.map { leaving[$0].position }.sorted()
        // An object between the same unchanged neighbors as before counts as updated instead of moved.
        both.sort { $0.from < $1.from }
        var last = -1
        for pair in both {
            let (from, to) = (leaving[pair.from].position, arriving[pair.to].position)
            if from - pair.from == to - pair.to, to > last {
                difference.updates.append(to)
                last = to
            } else {
                difference.moves.append(.init(from: from, to: to))
            }
        }
        difference.moves.sort { $0.to < $1.to }
        difference.updates.append(contentsOf: inPlace.map(newPosition))
        difference.updates.sort()
        return difference
    }

    /// Returns the new position of an object that neither leaves nor arrives. O(log changes).
    private func newPosition(_ old: Int) -> Int {
        let rank = old - Self.count(leaving.count) { leaving[$0].position < old }
        return rank + Self.count(arriving.count) { arriving[$0].position - $0 <= rank }
    }

    /// Returns the number of leading indices that satisfy a condition. Once false, the condition must stay false.
    private static func count(_ count: Int, where condition: (Int) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if condition(middle) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension LayeredView {
    /// Returns the changes from this view to another over the same base: those of all layers that only one view has. Returns nil for
    /// another base.
    fileprivate func changesWithin(_ next: LayeredView) -> [ChangeSet]? {
        guard base === next.base, base.isFixed else { return nil }
        let old = Set(layers.map(\.id))
        let new = Set(next.layers.map(\.id))
        return (layers.filter { !new.contains($0.id) } + next.layers.filter { !old.contains($0.id) }).map { $0.changeSet() }
    }
}
