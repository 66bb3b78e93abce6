import StoreInterface
import StoreModel

/// Undoes the consequences of deletions that a merge policy drops (S106).
///
/// The context that deleted an object also deleted the objects of its cascades and cleared references to it. If the object is kept, because
/// another context has changed it, these are kept too. The base state tells what they were.
extension SaveCheck {
    /// Drops the consequences of the deletions of ``kept``, to the end of each cascade. O(objects related to them).
    mutating func keepConsequences() throws {
        let rules = request.rules
        let base = request.base.view
        var waiting = kept
        while let address = waiting.popLast() {
            let consequences = try rules.consequences(of: address.entity, address.key, in: base) { column in
                try base.value(address.entity, key: address.key, column: column)?.referenceKey
            }
            for consequence in consequences {
                switch consequence {
                case .delete(let entity, let key, _):
                    guard layer.row(entity, key)?.kind == .delete else { continue }
                    writable().remove(entity: entity, key: key)
                    waiting.append(.init(entity: entity, key: key))
                case .clear(let entity, let key, let column):
                    guard let row = layer.row(entity, key), row.kind == .update, row.isSet(column), row[column].isNull else {
                        continue
                    }
                    drop(column, entity: entity, key: key)
                case .deny:
                    continue
                }
            }
            keepPairs(of: address)
        }
    }

    /// Drops the removal of an object's pairs.
    private mutating func keepPairs(of address: ObjectAddress) {
        for (number, link) in writer.store.schema.links.enumerated(as: LinkIndex.self) {
            var removed: [(source: ObjectKey, destination: ObjectKey)] = []
            if link.source == address.entity {
                for case (let other, false) in layer.links[number].forward[address.key] ?? [:] {
                    removed.append((address.key, other))
                }
            }
            if link.destination == address.entity {
                for case (let other, false) in layer.links[number].backward[address.key] ?? [:] {
                    removed.append((other, address.key))
                }
            }
            for pair in removed { writable().forgetLink(number, from: pair.source, to: pair.destination) }
        }
    }
}
