import StoreInterface
import StoreModel

/// The places of inserted objects in ordered lists (S046).
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
        let list = ObjectAddress(entity: number, key: member)
        if let known = owners[list] { return known.contains(owner) }
        let places = try view.related(.referrers(entity: number, column: OrderEntity.member), to: member)
        let found = try places.compactMap { place in
            layer.row(number, place)?.kind == .delete
                ? nil : try view.value(number, key: place, column: OrderEntity.owner)?.referenceKey
        }
        owners[list] = Set(found)
        return found.contains(owner)
    }

    /// Returns the columns of positions in lists that an object with an unsaved deletion has left, because others have moved it.
    ///
    /// - Parameters:
    ///   - row: The object's values before the deletion.
    ///   - own: The object's rows in this context.
    ///   - below: The object below these rows.
    func stalePositions(of address: ObjectAddress, _ row: Row, own: [Row], below: StateBelow) throws -> ColumnSet {
        var stale = ColumnSet()
        for reference in context.capabilities.rules.ordered[address.entity]
        where !own.contains(where: { $0.isSet(reference.column) }) {
            var list = row[reference.column].referenceKey
            // An insertion of a deleted model has read the list after the merge, and the position from before.
            let place = UnsavedPositions.Place(object: address, reference: reference)
            if let noted = context.tracker.positions.all[place], noted.value == row[reference.position] { list = noted.list }
            if try below.value(reference.column)?.referenceKey != list { stale.insert(reference.position) }
        }
        return stale
    }
}
