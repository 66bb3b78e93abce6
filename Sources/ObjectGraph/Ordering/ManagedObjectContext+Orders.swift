import StoreInterface
import StoreModel

/// Ordered many-to-many relationships (S046). Each pair has a position beside it, in an object of a hidden entity.
extension ManagedObjectContext {
    /// Gives a pair that is being linked the last position in its list, or removes the positions of a pair that is being unlinked.
    func place(_ order: OrderEntity, source: ObjectKey, target: ObjectKey, linked: Bool) {
        let (owner, member) = order.direction == .forward ? (source, target) : (target, source)
        guard linked else { return removePlaces(of: member, order, owner) }
        let position = trapOnStoreError {
            try tracker.listEnds.append(
                member, of: order.number, to: owner, OrderEntity.reference, in: layerStack.view, revision: layerStack.revision)
        }
        insertPosition(of: member, order: order.number, owner: owner, position: position)
    }

    private func insertPosition(of member: ObjectKey, order: EntityIndex, owner: ObjectKey, position: Position?) {
        let key = nextKey(order)
        let row = Row.make(kind: .insert, layer: layerStack.topID, columnCount: storedModel.entities[order].columns.count)
        row[OrderEntity.owner] = .reference(owner)
        row[OrderEntity.member] = .reference(member)
        row[OrderEntity.position] = position?.value ?? .null
        layerStack.top.put(row, entity: order, key: key)
        tracker.log.note(order, key)
    }

    private func removePlaces(of member: ObjectKey, _ order: OrderEntity, _ owner: ObjectKey) {
        // The shorter of two ways: a track is in few playlists, and a playlist has many tracks.
        let places = trapOnStoreError {
            try layerStack.view.related(.referrers(entity: order.number, column: OrderEntity.member), to: member)
        }
        for key in places where readBelow(order.number, key: key, column: OrderEntity.owner)?.referenceKey == owner {
            _ = putTombstone(order.number, key)
        }
    }

    /// Gives the members of an ordered many-to-many relationship the order of a list: see ``arrange(_:_:as:old:)``.
    func arrangePairs(
        of object: ManagedObject, relationship: Relationship, relation: Relation, order: EntityIndex, as wanted: [ObjectKey],
        old: Set<ObjectKey>?
    ) {
        let view = layerStack.view
        let pairs = trapOnStoreError {
            try view.orderedPairs(of: object.key, members: view.related(relation, to: object.key), order)
        }
        let changes = pairs.arrangement.changes(as: wanted, old: old) { member in
            pairs.places[member].map { layerStack.top.row(order, $0)?.isSet(OrderEntity.position) ?? false } ?? false
        }
        changeOrder(of: object, relationship: relationship, changes: changes) { change in
            if let place = pairs.places[change.key] {
                write(order, key: place, column: OrderEntity.position, value: change.position?.value ?? .null)
            } else {
                insertPosition(of: change.key, order: order, owner: object.key, position: change.position)
            }
        }
    }

    // MARK: Unsaved positions

    /// The unsaved objects of an order in one layer.
    func rows(of order: OrderEntity, in layer: Layer) -> [(key: ObjectKey, row: Row)] {
        var rows: [(ObjectKey, Row)] = []
        for (number, page) in layer.entity(order.number)?.pages ?? [:] {
            for slot in SlotIterator(page.touched) {
                if let row = page[slot] { rows.append((PageAddress.key(page: number, slot: slot), row)) }
            }
        }
        return rows
    }

    /// Returns the owner or the member of a position, which may be deleted.
    func value(_ column: ColumnIndex, order: OrderEntity, key: ObjectKey, row: Row) -> ObjectKey? {
        if row.isSet(column) { return row[column].referenceKey }
        return (readBelow(order.number, key: key, column: column) ?? lastValue(order.number, key: key, column: column))?
            .referenceKey
    }

    /// Calls `body` with each object whose list has unsaved positions in a layer.
    func forEachListChanged(in layer: Layer, _ order: OrderEntity, _ body: (ObjectKey) -> Void) {
        for (key, row) in rows(of: order, in: layer) {
            if let owner = value(OrderEntity.owner, order: order, key: key, row: row) { body(owner) }
        }
    }
}
