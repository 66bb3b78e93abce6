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

    /// Reverts an object as ``dropChanges(of:gone:)`` does, and notifies the observers of the properties that differ.
    ///
    /// Which objects are reverted with the object is known only afterwards, so observers are called when the values are new.
    ///
    /// - Parameters:
    ///   - members: Whether the object's to-many relationships are reverted at their other ends, too.
    ///   - gone: The objects that were deleted in the store and are still in the base state.
    func dropObservedChanges(of object: ManagedObject, members: Bool = false, gone: Set<ObjectAddress> = []) {
        guard !observed.isEmpty else { return dropAllChanges(of: object, members: members, gone: gone) }
        // Sealed layers do not change any more, so the view before can be compared with the view after.
        sealTop()
        let before = layerStack.view
        dropAllChanges(of: object, members: members, gone: gone)
        changingObserved { willShow(from: before, to: layerStack.view, nil) }
    }

    private func dropAllChanges(of object: ManagedObject, members: Bool, gone: Set<ObjectAddress>) {
        dropChanges(of: ObjectAddress(entity: object.entity, key: object.key), gone: gone)
        if members { dropMembers(of: object) }
    }

    /// Reverts an object to its state in the base state. A change that a running save has taken stays.
    func dropChanges(of place: ObjectAddress, gone: Set<ObjectAddress>) {
        let (entity, key) = (place.entity, place.key)
        // For an object that a running save inserts, a newer change is an update or a deletion of it.
        let (newer, all) = (layerStack.pendingKind(entity, key, inFlight: false), changeKind(entity, key))
        guard let kind = newer ?? all, kind != .insert || all != .insert else { return }
        tracker.listEnds.removeAll()
        unseal()
        for end in pairedEnds(entity, key, gone: gone) where !(end.entity == entity && end.key == key) { dropPair(end) }
        layerStack.top.remove(entity: entity, key: key)
        dropLinks(entity, key)
        dropOrders(entity, key)
        tracker.checks.unmerged[place] = nil
        show(entity, key)
    }

    /// Returns the ends of one-to-one relationships whose changes depend on an object's: its former and new partners, their partners,
    /// and so on.
    ///
    /// Dropping only some of these changes would leave the two ends of a relationship inconsistent. A deleted object cannot take its former
    /// partner back, so that one keeps a new partner.
    private func pairedEnds(_ entity: EntityIndex, _ key: ObjectKey, gone: Set<ObjectAddress>) -> Set<End> {
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
            if let new { waiting.append(End(entity: pair.destination, key: new, pair: back)) }
            let former = old.map { End(entity: pair.destination, key: $0, pair: back) }
            let isGone = gone.contains(ObjectAddress(entity: end.entity, key: end.key))
            if let former, !isGone || !hasPartner(former, outside: gone) { waiting.append(former) }
        }
        return found
    }

    /// Returns whether an unsaved change relates an end to an object that is not in the set.
    private func hasPartner(_ end: End, outside gone: Set<ObjectAddress>) -> Bool {
        let pair = capabilities.rules.pairs[end.entity][end.pair]
        guard let row = layerStack.top.row(end.entity, end.key), row.isSet(pair.column) else { return false }
        return row[pair.column].referenceKey.map { !gone.contains(ObjectAddress(entity: pair.destination, key: $0)) } ?? false
    }

    private func dropPair(_ end: End) {
        drop([capabilities.rules.pairs[end.entity][end.pair].column], of: end.entity, end.key)
    }

    /// Drops the changes of columns of an object. In a new object, the columns become null. They do, too, in an updated object that is gone
    /// below and has other changes, because a merge policy needs its whole row.
    private func drop(_ columns: [ColumnIndex], of entity: EntityIndex, _ key: ObjectKey) {
        guard let known = layerStack.top.row(entity, key), known.kind != .delete else { return }
        var others = tracker.updatesOfDeleted.changed[ObjectAddress(entity: entity, key: key)] ?? ColumnSet()
        for column in columns { others.remove(column) }
        if known.kind == .insert || !others.isEmpty {
            for column in columns { write(entity, key: key, column: column, value: .null) }
            return
        }
        let row = makeWritableRow(entity, key)
        for column in columns { row.clear(column) }
        if row.set.isEmpty {
            layerStack.top.remove(entity: entity, key: key)
            let id = ObjectID(store: storeIdentity, entity: entity, key: key)
            // A watched object is checked without changes, too.
            if !tracker.checks.watched.contains(id) {
                tracker.checks.unmerged[ObjectAddress(entity: entity, key: key)] = nil
            }
        }
        show(entity, key)
    }

    /// Drops the changes by which other objects have joined or left the to-many relationships of an object, or have moved in them. Members
    /// that were deleted stay deleted. O(changed objects of the members' entities).
    private func dropMembers(of object: ManagedObject) {
        let (entity, key) = (object.entity, object.key)
        // For an object that a running save inserts, the newer changes of its members are dropped, too.
        guard layerStack.pendingKind(entity, key, inFlight: false) != .insert else { return }
        for relationship in storedModel.entities[entity].relationships {
            guard case .toMany(.referrers(let far, let column)) = relationship.kind,
                layerStack.notInFlight.contains(where: { $0.entity(far) != nil })
            else { continue }
            tracker.listEnds.removeAll()
            unseal()
            let columns = [column] + [relationship.position].compactMap(\.self)
            for member in changedMembers(of: key, far, columns) {
                let former = readBelow(far, key: member, column: column)?.referenceKey
                drop(columns, of: far, member)
                let owner = readBelow(far, key: member, column: column)?.referenceKey
                for place in [former, owner].compactMap(\.self) { tracker.log.note(entity, place) }
                // The object to which the member returns may be deleted here.
                if let owner, newestOwnRow(entity, owner)?.kind == .delete {
                    write(far, key: member, column: column, value: .null)
                }
            }
        }
    }

    /// Returns the objects that refer or referred to an object by the first column, and whose values in the columns have changed.
    private func changedMembers(of owner: ObjectKey, _ entity: EntityIndex, _ columns: [ColumnIndex]) -> [ObjectKey] {
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst()))
        var found: [ObjectKey] = []
        for mask in [\LayerPage.inserted, \.updated] {
            layerStack.top.forEachRow(of: entity, mask) { key, row in
                // An update of an object that is gone below is whole, for the merge policy.
                guard columns.contains(where: row.isSet),
                    tracker.updatesOfDeleted.changed[ObjectAddress(entity: entity, key: key)] == nil
                else { return }
                if row.isSet(columns[0]), row[columns[0]].referenceKey == owner { return found.append(key) }
                guard row.kind == .update else { return }
                let old = trapOnStoreError { try below.value(entity, key: key, column: columns[0]) }?.referenceKey
                if old == owner { found.append(key) }
            }
        }
        return found
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
                guard isOwner || isMember && row.kind != .update else { continue }
                layerStack.top.remove(entity: order.number, key: place)
                // A deletion of the list has registered its positions, which would still count as deleted.
                show(order.number, place)
            }
        }
    }

    /// Sets a registered object to the remainder of its changes.
    private func show(_ entity: EntityIndex, _ key: ObjectKey) {
        tracker.log.note(entity, key)
        if changeKind(entity, key) == nil { tracker.updatesOfDeleted.forget(ObjectAddress(entity: entity, key: key)) }
        guard let object = registry.object(entity, key) else { return }
        object.row = newestOwnRow(entity, key)
        object.isDeletedHere = object.row?.kind == .delete
        if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
    }
}
