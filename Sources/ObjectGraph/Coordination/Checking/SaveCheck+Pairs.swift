import StoreInterface
import StoreModel

/// Makes the two ends of each one-to-one relationship agree after the save (S052).
///
/// A context writes both ends, but conflicts are resolved per object, so one end may be written and the other dropped.
/// The pair then follows the end at which the conflict was resolved. An end that neither side has written since the context read it
/// follows the save.
extension SaveCheck {
    /// Makes pairs agree. Returns whether the layer changed.
    ///
    /// O(one-to-one columns that the layer sets), with two reads of the state per column.
    mutating func settlePairs(_ rules: RelationshipRules) throws -> Bool {
        var hasChanged = false
        for entity in rules.pairs.indices where !rules.pairs[entity].isEmpty {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.inserted | page.updated) {
                    let end = PairEnd(entity: entity, key: PageAddress.key(page: number, slot: slot))
                    for pair in rules.pairs[entity] where try settle(end, pair) { hasChanged = true }
                }
            }
        }
        return hasChanged
    }

    private struct PairEnd: Hashable {
        var entity: Int
        var key: ObjectKey
    }

    private mutating func settle(_ end: PairEnd, _ pair: RelationshipRules.Pair) throws -> Bool {
        guard let row = layer.row(end.entity, end.key), row.kind != .delete, row.isSet(pair.column) else { return false }
        let partner = row[pair.column].referenceKey
        if let partner, try settle(end, pair, with: PairEnd(entity: pair.destination, key: partner)) { return true }
        return try release(end, pair, from: partner)
    }

    /// Makes the partner of an object refer back to it, or clears the object's reference.
    private mutating func settle(_ end: PairEnd, _ pair: RelationshipRules.Pair, with partner: PairEnd) throws -> Bool {
        let after = after
        guard try after.exists(partner.entity, partner.key) else { return false }
        let back = try after.value(partner.entity, key: partner.key, column: pair.back)?.referenceKey
        if back == end.key {
            // The partner's previous partner must release it.
            guard let former = try state.view.value(partner.entity, key: partner.key, column: pair.back)?.referenceKey,
                former != end.key
            else {
                return false
            }
            return try release(
                PairEnd(entity: end.entity, key: former), column: pair.column, pointingAt: partner.key, for: partner,
                winning: pair.back)
        }
        if decides(pair.back, partner) {
            lose(pair.column, end)
            return true
        }
        let isNew = layer.row(partner.entity, partner.key)?.kind == .insert
        guard try isNew || isUnchanged(pair.back, partner) else {
            if case .error = request.policy { throw try conflict(at: partner) }
            lose(pair.column, end)
            return true
        }
        put(.reference(end.key), entity: partner.entity, key: partner.key, column: pair.back)
        return true
    }

    /// Clears the reference of the former partner after an object has left it.
    private mutating func release(
        _ end: PairEnd, _ pair: RelationshipRules.Pair, from partner: ObjectKey?
    ) throws -> Bool {
        guard let former = try state.view.value(end.entity, key: end.key, column: pair.column)?.referenceKey, former != partner
        else {
            return false
        }
        return try release(
            PairEnd(entity: pair.destination, key: former), column: pair.back, pointingAt: end.key, for: end, winning: pair.column
        )
    }

    /// Clears the reference of an object whose partner this save gave to another object.
    private mutating func release(
        _ former: PairEnd, column: Int, pointingAt key: ObjectKey, for winner: PairEnd, winning: Int
    ) throws -> Bool {
        guard try after.value(former.entity, key: former.key, column: column)?.referenceKey == key, !decides(column, former)
        else {
            return false
        }
        if case .error = request.policy, try !isUnchanged(column, former) { throw try conflict(at: former) }
        if prefersStore, isLost(column, former) {
            lose(winning, winner)
        } else {
            put(.null, entity: former.entity, key: former.key, column: column)
        }
        return true
    }

    /// Whether the save itself sets this end. A new object that was never related does not.
    private func decides(_ column: Int, _ end: PairEnd) -> Bool {
        guard hasSet(column, entity: end.entity, key: end.key), let row = layer.row(end.entity, end.key) else { return false }
        return row.kind == .update || !row[column].isNull
    }

    /// Whether the store has the same partner as when the context read it.
    private func isUnchanged(_ column: Int, _ end: PairEnd) throws -> Bool {
        if request.base.sequence == state.sequence { return true }
        return try request.base.view.value(end.entity, key: end.key, column: column)
            == state.view.value(end.entity, key: end.key, column: column)
    }

    /// Whether the request's value of the column is not written.
    private func isLost(_ column: Int, _ end: PairEnd) -> Bool {
        folded.row(end.entity, end.key)?.isSet(column) == true && layer.row(end.entity, end.key)?.isSet(column) != true
    }

    private mutating func lose(_ column: Int, _ end: PairEnd) {
        let isRestored = restored[.init(entity: end.entity, key: end.key)]?.contains(column) == true
        switch request.policy {
        case .storeTrump, .rollback, .custom: drop(column, entity: end.entity, key: end.key)
        case .error, .objectTrump, .overwrite:
            if isRestored {
                drop(column, entity: end.entity, key: end.key)
            } else {
                put(.null, entity: end.entity, key: end.key, column: column)
            }
        }
    }

    private func conflict(at end: PairEnd) throws -> SaveError {
        .conflicts([try conflict(layer.row(end.entity, end.key), entity: end.entity, key: end.key, isInStore: true)])
    }
}
