import StoreInterface
import StoreModel

/// Dropping the unsaved changes of one object, with the inverse ends of its relationships (S055).
extension ManagedObjectContext {
    /// One end of a one-to-one relationship.
    private struct End: Hashable {
        var entity: EntityIndex
        var key: ObjectKey
        var pair: Int
    }

    /// Reverts an object as ``dropChanges(of:)`` does, and notifies the observers of the properties that differ.
    ///
    /// Which objects are reverted with the object is known only afterwards, so observers are called when the values are new.
    func dropObservedChanges(of object: ManagedObject) {
        guard !observed.isEmpty else { return dropChanges(of: object) }
        // Sealed layers do not change any more, so the view before can be compared with the view after.
        sealTop()
        let before = layerStack.view
        dropChanges(of: object)
        changingObserved { willShow(from: before, to: layerStack.view, nil) }
    }

    /// Reverts an object to its state in the base state. A change that a running save has taken stays.
    func dropChanges(of object: ManagedObject) {
        let (entity, key) = (object.entity, object.key)
        // For an object that a running save inserts, a newer change is an update or a deletion of it.
        let (newer, all) = (layerStack.pendingKind(entity, key, inFlight: false), changeKind(entity, key))
        guard let kind = newer ?? all, kind != .insert || all != .insert else { return }
        tracker.listEnds.removeAll()
        unseal()
        for end in pairedEnds(entity, key) where !(end.entity == entity && end.key == key) { dropPair(end) }
        layerStack.top.remove(entity: entity, key: key)
        dropLinks(entity, key)
        dropOrders(entity, key)
        tracker.checks.unmerged[ObjectAddress(entity: entity, key: key)] = nil
        show(entity, key)
    }

    /// Returns the ends of one-to-one relationships whose changes depend on an object's: its former and new partners, their partners,
    /// and so on.
    ///
    /// Dropping only some of these changes would leave the two ends of a relationship inconsistent.
    private func pairedEnds(_ entity: EntityIndex, _ key: ObjectKey) -> Set<End> {
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst()))
        let isDeleted = layerStack.top.row(entity, key)?.kind == .delete
        var found: Set<End> = []
        var waiting = capabilities.rules.pairs[entity].indices.map { End(entity: entity, key: key, pair: $0) }
        while let end = waiting.popLast() {
            let pair = capabilities.rules.pairs[end.entity][end.pair]
            let isFirst = end.entity == entity && end.key == key
            let row = layerStack.top.row(end.entity, end.key)
            guard row?.isSet(pair.column) == true || isFirst && isDeleted, found.insert(end).inserted else { continue }
            let new = row?[pair.column].referenceKey
            let old = trapOnStoreError { try below.value(end.entity, key: end.key, column: pair.column) }?.referenceKey
            guard let back = capabilities.rules.pairs[pair.destination].firstIndex(where: { $0.column == pair.back }) else {
                continue
            }
            for partner in Set([new, old].compactMap(\.self)) {
                waiting.append(End(entity: pair.destination, key: partner, pair: back))
            }
        }
        return found
    }

    private func dropPair(_ end: End) {
        let column = capabilities.rules.pairs[end.entity][end.pair].column
        guard let known = layerStack.top.row(end.entity, end.key), known.kind != .delete else { return }
        if known.kind == .insert { return write(end.entity, key: end.key, column: column, value: .null) }
        let row = makeWritableRow(end.entity, end.key)
        row.clear(column)
        if row.set.isEmpty {
            layerStack.top.remove(entity: end.entity, key: end.key)
            let id = ObjectID(store: storeIdentity, entity: end.entity, key: end.key)
            // A watched object is checked without changes, too.
            if !tracker.checks.watched.contains(id) {
                tracker.checks.unmerged[ObjectAddress(entity: end.entity, key: end.key)] = nil
            }
        }
        show(end.entity, end.key)
    }

    private func dropLinks(_ entity: EntityIndex, _ key: ObjectKey) {
        for (number, link) in storedModel.storeSchema.links.enumerated(as: LinkIndex.self) {
            var pairs: [(ObjectKey, ObjectKey)] = []
            if link.source == entity { pairs += (layerStack.top.links[number].forward[key] ?? [:]).keys.map { (key, $0) } }
            if link.destination == entity { pairs += (layerStack.top.links[number].backward[key] ?? [:]).keys.map { ($0, key) } }
            for (source, destination) in pairs {
                layerStack.top.forgetLink(number, from: source, to: destination)
                tracker.log.noteLink(number, from: source, to: destination)
                tracker.log.note(link.source, source)
                tracker.log.note(link.destination, destination)
            }
        }
    }

    /// Drops the unsaved positions in the lists of an object, and those of its pairs in the lists of others.
    private func dropOrders(_ entity: EntityIndex, _ key: ObjectKey) {
        for order in capabilities.rules.orders.joined() where order.ownerEntity == entity || order.memberEntity == entity {
            for (place, row) in rows(of: order, in: layerStack.top) {
                let isOwner = order.ownerEntity == entity && value(OrderEntity.owner, order: order, key: place, row: row) == key
                let isMember =
                    order.memberEntity == entity && value(OrderEntity.member, order: order, key: place, row: row) == key
                if isOwner || isMember && row.kind != .update { layerStack.top.remove(entity: order.number, key: place) }
            }
        }
    }

    /// Sets a registered object to the remainder of its changes.
    private func show(_ entity: EntityIndex, _ key: ObjectKey) {
        tracker.log.note(entity, key)
        guard let object = registry.object(entity, key) else { return }
        object.row = newestOwnRow(entity, key)
        object.isDeletedHere = object.row?.kind == .delete
        if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
    }
}
