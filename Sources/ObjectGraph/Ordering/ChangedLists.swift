import StoreInterface
import StoreModel

/// The many-to-many relationships whose pairs or order a save has changed, by the entity and the key of the object that has the list.
typealias ChangedLists = [EntityIndex: [ObjectKey: Set<String>]]

extension Model {
    /// Returns the ordered many-to-many relationships whose positions a save has changed.
    ///
    /// The history has only the keys of positions, so their lists are read from a state. One read per position.
    ///
    /// - Parameter state: A state after the save. Positions that have been deleted since are left out.
    func listsWithChangedOrder(_ changes: ChangeSet, in state: any StoreSnapshot) throws -> ChangedLists {
        var found: ChangedLists = [:]
        for order in orders {
            guard let change = changes.change(of: order.number),
                let list = entities[order.ownerEntity].relationships.first(where: { $0.order == order.number })
            else { continue }
            for page in change.pages {
                for slot in SlotIterator(page.inserted | page.updated) {
                    let position = PageAddress.key(page: page.number, slot: slot)
                    guard let owner = try state.value(order.number, key: position, column: OrderEntity.owner)?.referenceKey
                    else { continue }
                    found[order.ownerEntity, default: [:]][owner, default: []].insert(list.name)
                }
            }
        }
        return found
    }
}
