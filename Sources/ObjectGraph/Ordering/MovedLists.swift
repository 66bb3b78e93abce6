import StoreInterface

/// The ordered many-to-many relationships whose members were moved, by the entity and the key of the object that has the list.
typealias MovedLists = [Int: [ObjectKey: Set<String>]]

extension Model {
    /// Returns the lists whose order a save has changed.
    ///
    /// - Parameter state: A later state. Positions that it does not have are left out: their list is not known any more.
    func movedLists(_ changes: ChangeSet, in state: any StoreSnapshot) throws -> MovedLists {
        var found: MovedLists = [:]
        for order in orders {
            guard let change = changes.change(of: order.number),
                let list = entities[order.ownerEntity].relationships.first(where: { $0.order == order.number })
            else { continue }
            for page in change.pages {
                for slot in SlotIterator(page.inserted | page.updated) {
                    let place = PageAddress.key(page: page.number, slot: slot)
                    guard let owner = try state.value(order.number, key: place, column: OrderEntity.owner)?.referenceKey
                    else { continue }
                    found[order.ownerEntity, default: [:]][owner, default: []].insert(list.name)
                }
            }
        }
        return found
    }
}
