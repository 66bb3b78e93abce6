import StoreInterface
import StoreModel

/// Positions in ordered many-to-many relationships (S107). The link decides which objects are related, as a set difference of each side, so
/// a position goes with its pair: adding, removing and moving are no conflict with each other. Two moves of one member are.
extension SaveCheck {
    /// Settles a changed position that another save has changed too. Returns false if the object is no position, or if the merge policy
    /// decides.
    mutating func settlePosition(_ row: Row, entity: EntityIndex, key: ObjectKey, isInStore: Bool) -> Bool {
        guard request.rules.isOrder(entity) else { return false }
        if !isInStore { writable().remove(entity: entity, key: key) }
        return !isInStore || row.kind == .delete
    }

    /// Drops and deletes positions of pairs that the save does not leave. Returns whether there were any.
    mutating func settleOrders(_ rules: RelationshipRules) throws -> Bool {
        var hasDropped = false
        for order in rules.orders.joined() {
            if try deletePositions(of: order) { hasDropped = true }
            guard let changes = layer.entity(order.number) else { continue }
            var members: [ObjectKey: Set<ObjectKey>] = [:]
            var lost: [ObjectKey] = []
            for page in changes.sortedPageNumbers {
                for slot in SlotIterator(changes.page(page)?.inserted ?? 0) {
                    let key = PageAddress.key(page: page, slot: slot)
                    if try !isPaired(key, order: order, members: &members) { lost.append(key) }
                }
            }
            for key in lost { writable().remove(entity: order.number, key: key) }
            if !lost.isEmpty { hasDropped = true }
        }
        return hasDropped
    }

    /// Deletes all positions of the pairs that the save removes. The context has deleted the positions that it has read, but another context
    /// may have added one since. Returns whether there were any. One look-up per member of removed pairs.
    private mutating func deletePositions(of order: OrderEntity) throws -> Bool {
        var owners: [ObjectKey: Set<ObjectKey>] = [:]
        for (source, pairs) in layer.links[order.link].forward {
            for (destination, isLinked) in pairs where !isLinked {
                let (owner, member) = order.direction == .forward ? (source, destination) : (destination, source)
                owners[member, default: []].insert(owner)
            }
        }
        var found: [ObjectKey] = []
        let view = after
        for (member, owners) in owners {
            for key in try view.related(.referrers(entity: order.number, column: OrderEntity.member), to: member) {
                let owner = try view.value(order.number, key: key, column: OrderEntity.owner)?.referenceKey
                if let owner, owners.contains(owner) { found.append(key) }
            }
        }
        guard !found.isEmpty else { return false }
        let layer = writable()
        for key in found {
            let row = Row.make(kind: .delete, layer: layer.id, columnCount: order.schema.columns.count)
            if layer.row(order.number, key)?.kind == .insert {
                layer.remove(entity: order.number, key: key)
            } else {
                layer.put(row, entity: order.number, key: key)
            }
        }
        return true
    }

    /// - Parameter members: The members of the lists that were read.
    private func isPaired(_ key: ObjectKey, order: OrderEntity, members: inout [ObjectKey: Set<ObjectKey>]) throws -> Bool {
        guard let row = layer.row(order.number, key), let owner = row[OrderEntity.owner].referenceKey,
            let member = row[OrderEntity.member].referenceKey
        else { return false }
        let pair = order.pair(owner: owner, member: member)
        if let isLinked = layer.links[order.link].forward[pair.source]?[pair.destination] { return isLinked }
        if members[owner] == nil {
            members[owner] = Set(
                try after.related(.link(order.link, order.direction, destination: order.memberEntity), to: owner))
        }
        return members[owner]?.contains(member) ?? false
    }

    /// Returns the conflict of two moves of one member, as a conflict of the list.
    func placeConflict(_ row: Row?, entity: EntityIndex, key: ObjectKey) throws -> MergeConflict? {
        guard request.rules.isOrder(entity), let pair = try state.view.placedPair(of: key, entity),
            let place = NamedPlace(pair, order: entity, in: writer.store.schema)
        else { return nil }
        let base = try request.base.view.value(entity, key: key, column: OrderEntity.position)
        let position = MergeConflict.Property(
            name: place.relationship, base: base, ours: row?[OrderEntity.position],
            theirs: try state.view.value(entity, key: key, column: OrderEntity.position), form: place.form)
        return MergeConflict(
            objectID: ObjectID(store: writer.store.identity, entity: place.list.entity, key: place.list.key),
            entityName: place.entityName, properties: [position], isDeletedHere: false, isDeletedInStore: false)
    }
}
