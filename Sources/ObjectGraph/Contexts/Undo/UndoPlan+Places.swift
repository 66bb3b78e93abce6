import StoreInterface
import StoreModel

/// The places of objects in ordered lists (S046).
extension UndoPlan {
    /// Returns whether a pair has a position already, although not that of the step: others have removed the pair and added it again. A
    /// second position could hide the first one.
    ///
    /// - Parameter wanted: The position of the step.
    mutating func hasPlace(_ wanted: Row, _ number: EntityIndex) throws -> Bool {
        let rules = context.capabilities.rules
        guard let owner = wanted[OrderEntity.owner].referenceKey, let member = wanted[OrderEntity.member].referenceKey,
            let order = rules.orders.joined().first(where: { $0.number == number })
        else { return false }
        // Without a pair there is no place.
        let pair = order.pair(owner: owner, member: member)
        guard isLinked(pair) || isLinkedBelow(pair) else { return false }
        return try places(of: member, in: owner, order: number).contains { layer.row(number, $0)?.kind != .delete }
    }

    /// Deletes the places of a pair that the plan unlinks. Others may have given it another place than that of the step. A redo, or an undo
    /// of a redo, restores the place only if the plan has deleted it.
    mutating func deletePlaces(of pair: ChangeLog.ChangedPair) throws {
        for order in context.capabilities.rules.orders[pair.link] {
            let isForward = order.direction == .forward
            let (owner, member) = isForward ? (pair.source, pair.destination) : (pair.destination, pair.source)
            for place in try places(of: member, in: owner, order: order.number)
            where layer.row(order.number, place)?.kind != .delete {
                let address = ObjectAddress(entity: order.number, key: place)
                layer.put(deletion(of: address, layer.id), entity: order.number, key: place)
            }
        }
    }

    /// Returns the objects that have the places of a member in a list at present. Reads the places of each member once.
    private mutating func places(of member: ObjectKey, in owner: ObjectKey, order: EntityIndex) throws -> [ObjectKey] {
        let address = ObjectAddress(entity: order, key: member)
        if let known = knownPlaces[address] { return known[owner] ?? [] }
        var found: [ObjectKey: [ObjectKey]] = [:]
        for place in try view.related(.referrers(entity: order, column: OrderEntity.member), to: member) {
            guard let list = try view.value(order, key: place, column: OrderEntity.owner)?.referenceKey else { continue }
            found[list, default: []].append(place)
        }
        knownPlaces[address] = found
        return found[owner] ?? []
    }

    /// Whether a column is a position that goes with a reference beside it: see ``settlePositions(of:_:)``. It may be the same before and after.
    func isBesideReference(_ column: ColumnIndex, of address: ObjectAddress, from expected: Row, to wanted: Row) -> Bool {
        context.capabilities.rules.ordered[address.entity].contains { reference in
            reference.position == column && wanted.isSet(reference.column)
                && !Value.areSame(expected[reference.column], wanted[reference.column])
        }
    }

    /// Drops the positions of an object in lists to which the plan does not return it, and adds those in lists to which it does.
    func settlePositions(of address: ObjectAddress, _ row: Row) throws {
        guard row.kind == .update, let change = step.objects[address], let wanted = isRedo ? change.after : change.before else {
            return
        }
        for reference in context.capabilities.rules.ordered[address.entity] where wanted.isSet(reference.column) {
            let list = row.isSet(reference.column) ? row[reference.column] : present(address, reference.column)
            guard Value.areSame(list, wanted[reference.column]) else {
                row.clear(reference.position)
                continue
            }
            let position = wanted[reference.position]
            guard row.isSet(reference.column), wanted.isSet(reference.position),
                !Value.areSame(present(address, reference.position), position),
                try !hasPosition(address, in: wanted[reference.column], reference)
            else { continue }
            // The object returns to this list. The position that it has now belongs to another one.
            row[reference.position] = position
        }
    }

    /// Returns whether the position of an object is one in a list, although its unsaved changes have taken it out of the list. Others may
    /// have moved it in that list meanwhile.
    private func hasPosition(_ address: ObjectAddress, in list: Value, _ reference: OrderedReference) throws -> Bool {
        let count = context.layerStack.sealed.count + 1
        let own = view.layers.prefix(count).compactMap { $0.row(address.entity, address.key) }
        if own.contains(where: { $0.isSet(reference.position) }) { return false }
        let below = StateBelow(
            context: context, layers: Array(view.layers.dropFirst(count)), entity: address.entity, key: address.key)
        return try Value.areSame(below.value(reference.column), list)
    }

    /// Whether an object has the position of a pair that the plan removes. The save of the removal deletes such an object anyway.
    func isPlaceOfRemovedPair(_ address: ObjectAddress, _ row: Row) -> Bool {
        step.links.contains { pair, isLinkedAfter in
            isLinkedAfter != isRedo
                && context.capabilities.rules.orders[pair.link].contains { order in
                    guard order.number == address.entity, let owner = row[OrderEntity.owner].referenceKey,
                        let member = row[OrderEntity.member].referenceKey
                    else { return false }
                    return order.pair(owner: owner, member: member) == pair
                }
        }
    }
}
