import StoreInterface
import StoreModel

/// Removes the pairs of deleted objects in the layer itself (S106).
///
/// A store removes an object's pairs together with the object. A deferred deletion is not in the store yet, and the object may be inserted
/// again before it is. The layer must therefore say which pairs the deletion removes. The context that deleted the object knows only the
/// pairs that it read, and a batch knows none.
extension SaveCheck {
    /// Writes the removal of each pair that a deleted object has in the state. O(deleted objects · links of their entities), with one read
    /// of the state each.
    mutating func unlinkDeleted() throws {
        for (number, link) in writer.store.schema.links.enumerated(as: LinkIndex.self) {
            try unlinkDeleted(link.source, from: number, .forward, far: link.destination)
            try unlinkDeleted(link.destination, from: number, .backward, far: link.source)
        }
    }

    private mutating func unlinkDeleted(_ entity: EntityIndex, from link: LinkIndex, _ direction: LinkDirection, far: EntityIndex)
        throws
    {
        let (checked, view) = (layer, state.view)
        let changes = checked.links[link]
        let relation = Relation.link(link, direction, destination: far)
        var pairs: [(source: ObjectKey, destination: ObjectKey)] = []
        try checked.forEachRow(of: entity, \.deleted) { key, _ in
            let known = direction == .forward ? changes.forward[key] : changes.backward[key]
            for other in try view.related(relation, to: key) where known?[other] != false {
                pairs.append(direction == .forward ? (key, other) : (other, key))
            }
        }
        guard !pairs.isEmpty else { return }
        let layer = writable()
        for pair in pairs {
            layer.setLink(link, from: pair.source, to: pair.destination, linked: false)
            noteAddedRemoval(from: pair.source, to: pair.destination, link)
        }
    }
}
