import StoreInterface
import StoreModel

/// Makes the two ends of each one-to-one relationship agree after the save (S052).
///
/// A context writes both ends, but conflicts are resolved per object, so one end may be written and the other dropped.
/// The pair then follows the end at which the conflict was resolved. An end that neither side has written since the context read it
/// follows the save.
///
/// If a policy drops our value of an end, the pairs that we gave to this end and took from it are dropped at their other ends too. This can
/// go on from partner to partner. A dropped end is never written again, so this ends.
extension SaveCheck {
    /// One end of a one-to-one relationship: an object, and its side of the relationship.
    private struct PairEnd {
        var entity: EntityIndex
        var key: ObjectKey
        var pair: RelationshipRules.Pair

        var address: ObjectAddress { ObjectAddress(entity: entity, key: key) }

        /// Returns the other end, at an object.
        func partner(_ key: ObjectKey) -> PairEnd {
            PairEnd(
                entity: pair.destination, key: key, pair: .init(column: pair.back, destination: entity, back: pair.column))
        }
    }

    /// Makes pairs agree. Returns whether the layer changed.
    ///
    /// O(one-to-one columns that the layer sets or that change), with two reads of the state per column.
    mutating func settlePairs(_ rules: RelationshipRules) throws -> Bool {
        var changes = 0
        // The ends that are still to be settled.
        var open: [PairEnd] = []
        for entity in rules.pairs.indices(as: EntityIndex.self) where !rules.pairs[entity].isEmpty {
            guard let rows = layer.entity(entity) else { continue }
            for number in rows.sortedPageNumbers {
                guard let page = rows.page(number) else { continue }
                for slot in SlotIterator(page.inserted | page.updated) {
                    let key = PageAddress.key(page: number, slot: slot)
                    for pair in rules.pairs[entity] { open.append(PairEnd(entity: entity, key: key, pair: pair)) }
                    while let end = open.popLast() {
                        let concerned = try settle(end)
                        if concerned.isEmpty { continue }
                        open += concerned
                        changes += 1
                        try checkSettling(changes)
                    }
                }
            }
        }
        return changes > 0
    }

    /// An end changes three times at most: it follows its partner, is cleared, and is dropped.
    private func checkSettling(_ changes: Int) throws {
        if changes / 1000 <= layer.weight { return }
        throw StoreError(.internalInconsistency, "checking a save failed: its pairs do not settle. Report this as a bug.")
    }

    /// Makes an end that the layer sets agree with its partners before and after the save.
    ///
    /// - Returns: The ends to settle because of a change; empty if nothing changed.
    private mutating func settle(_ end: PairEnd) throws -> [PairEnd] {
        guard let row = layer.row(end.entity, end.key), row.kind != .delete, row.isSet(end.pair.column) else { return [] }
        let partner = row[end.pair.column].referenceKey.map(end.partner)
        if let partner {
            let concerned = try settle(end, with: partner)
            if !concerned.isEmpty { return concerned }
        }
        return try release(from: end, unless: partner)
    }

    /// Makes the partner of an object refer back to it, or gives up the object's reference.
    private mutating func settle(_ end: PairEnd, with partner: PairEnd) throws -> [PairEnd] {
        let after = after
        guard try after.exists(partner.entity, partner.key) else { return [] }
        let back = try after.value(partner.entity, key: partner.key, column: partner.pair.column)?.referenceKey
        // The partner's previous partner must release it.
        if back == end.key { return try release(from: partner, unless: end) }
        if decides(partner) || dropsChanges && isLost(partner) { return try lose(end) }
        let isNew = layer.row(partner.entity, partner.key)?.kind == .insert
        guard try isNew || isUnchanged(partner) else {
            if case .error = request.policy { throw try conflict(at: partner) }
            return try lose(end)
        }
        // An update of an object that no longer exists gives it no partner: the reference to it would be dropped again.
        guard try after.exists(end.entity, end.key) else { return [] }
        return try change(partner) { $0.add(.reference(end.key), at: partner) }
    }

    /// Clears the reference of the former partner after an object has left it. If our change of the former partner was dropped, the object
    /// returns to it instead.
    private mutating func release(from end: PairEnd, unless partner: PairEnd?) throws -> [PairEnd] {
        guard let key = try state.view.value(end.entity, key: end.key, column: end.pair.column)?.referenceKey,
            key != partner?.key
        else { return [] }
        let former = end.partner(key)
        guard
            try after.value(former.entity, key: former.key, column: former.pair.column)?.referenceKey == end.key,
            !decides(former)
        else { return [] }
        if case .error = request.policy, try !isUnchanged(former) { throw try conflict(at: former) }
        if dropsChanges, isLost(former) { return try lose(end) }
        return try change(former) { $0.add(.null, at: former) }
    }

    /// Whether the save itself sets this end. A new object that was never related does not.
    private func decides(_ end: PairEnd) -> Bool {
        guard hasSet(end.pair.column, entity: end.entity, key: end.key), let row = layer.row(end.entity, end.key) else {
            return false
        }
        return row.kind == .update || !row[end.pair.column].isNull
    }

    /// Whether the store has the same partner as when the context read it.
    private func isUnchanged(_ end: PairEnd) throws -> Bool {
        if request.base.sequence == state.sequence { return true }
        return try request.base.view.value(end.entity, key: end.key, column: end.pair.column)
            == state.view.value(end.entity, key: end.key, column: end.pair.column)
    }

    /// Whether the request's value of this end, or the value that this check gave it, is not written.
    private func isLost(_ end: PairEnd) -> Bool {
        if lost[end.address]?.contains(end.pair.column) == true { return true }
        // The context has not set this value. The object had it before it was deleted.
        if completed[end.address] != nil, request.changedOfDeleted[end.address]?.contains(end.pair.column) != true {
            return false
        }
        return folded.row(end.entity, end.key)?.isSet(end.pair.column) == true
            && layer.row(end.entity, end.key)?.isSet(end.pair.column) != true
    }

    /// Whether the policy can drop changes of objects, so that those have the store's values.
    private var dropsChanges: Bool {
        switch request.policy {
        case .storeTrump, .rollback, .custom: true
        case .error, .objectTrump, .overwrite: false
        }
    }

    /// Gives up our value of an end: drops it, or clears it if the policy drops nothing.
    private mutating func lose(_ end: PairEnd) throws -> [PairEnd] {
        try change(end) { check in
            let isRestored = check.restored[end.address]?.contains(end.pair.column) == true
            if check.dropsChanges || isRestored {
                check.drop(end.pair.column, entity: end.entity, key: end.key)
            } else {
                check.put(.null, at: end)
            }
            check.lost[end.address, default: ColumnSet()].insert(end.pair.column)
        }
    }

    /// Whether a save that clears references to missing objects changed nothing of an object but its one-to-one relationships (S050).
    ///
    /// A context that relates an object to a partner, or takes it away, writes the partner too. This alone does not bring a partner back
    /// that another context has deleted.
    func isOnlyRelated(_ row: Row, entity: EntityIndex, key: ObjectKey) -> Bool {
        guard request.clearsMissingReferences, row.kind == .update else { return false }
        // The row of an object that is deleted in the base has all values.
        var others = request.changedOfDeleted[.init(entity: entity, key: key)] ?? row.set
        for pair in request.rules.pairs[entity] { others.remove(pair.column) }
        return others.isEmpty
    }

    private mutating func put(_ value: Value, at end: PairEnd) {
        put(value, entity: end.entity, key: end.key, column: end.pair.column)
    }

    /// Writes an end that the save itself does not set.
    private mutating func add(_ value: Value, at end: PairEnd) {
        put(value, at: end)
        noteAdded(end.pair.column, entity: end.entity, key: end.key)
    }

    /// Changes one end. Returns the ends that this concerns: itself, and its partners before and after.
    private mutating func change(_ end: PairEnd, _ body: (inout SaveCheck) -> Void) throws -> [PairEnd] {
        func partner(_ check: SaveCheck) throws -> PairEnd? {
            try check.after.value(end.entity, key: end.key, column: end.pair.column)?.referenceKey.map(end.partner)
        }
        let before = try partner(self)
        body(&self)
        return [end] + [before, try partner(self)].compactMap { $0 }
    }

    private func conflict(at end: PairEnd) throws -> SaveError {
        .conflicts([try conflict(layer.row(end.entity, end.key), entity: end.entity, key: end.key, isInStore: true)])
    }
}

extension SaveCheck {
    /// Forgets the changes of pairs that are as in the state that the context has read: the pair was added and removed again, or removed and
    /// added again. Otherwise they would take back what others have saved of the pair (S107). O(changed pairs), with one read of the base
    /// for each source.
    mutating func forgetRepeatedPairs() throws {
        let (changed, base) = (layer, request.base.view)
        var repeated: [ChangeLog.ChangedPair] = []
        for (number, link) in writer.store.schema.links.enumerated(as: LinkIndex.self) {
            for (source, partners) in changed.links[number].forward {
                let known = Set(try base.related(.link(number, .forward, destination: link.destination), to: source))
                for (destination, linked) in partners where known.contains(destination) == linked {
                    repeated.append(.init(link: number, source: source, destination: destination))
                }
            }
        }
        guard !repeated.isEmpty else { return }
        let layer = writable()
        for pair in repeated { layer.forgetLink(pair.link, from: pair.source, to: pair.destination) }
    }
}
