import StoreInterface
import StoreModel

/// Undoes the consequences of deletions that a merge policy drops (S106).
///
/// The context that deleted an object also deleted the objects of its cascades and cleared references to it. If the object is kept, because
/// another context has changed it, these are kept too. The base state tells what they were, and the deleted rows tell which objects the
/// context had related to it before. Those return to the objects that the store relates them to.
extension SaveCheck {
    /// Drops the consequences of the deletions of ``kept``, to the end of each cascade. O(objects related to them + deleted objects).
    mutating func keepConsequences() throws {
        let rules = request.rules
        let base = request.base.view
        let members = deletedMembers(rules)
        var waiting = kept
        while let address = waiting.popLast() {
            for member in members[address] ?? [] { keep(member, &waiting) }
            for target in deletedTargets(of: address, rules) { keep(target, &waiting) }
            let consequences = try rules.consequences(of: address.entity, address.key, in: base) { column in
                try base.value(address.entity, key: address.key, column: column)?.referenceKey
            }
            for consequence in consequences {
                switch consequence {
                case .delete(let entity, let key, _):
                    keep(.init(entity: entity, key: key), &waiting)
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

    /// Drops the deletion of an object, if the save has it, and adds the object to those whose consequences are dropped next.
    private mutating func keep(_ address: ObjectAddress, _ waiting: inout [ObjectAddress]) {
        guard layer.row(address.entity, address.key)?.kind == .delete else { return }
        writable().remove(entity: address.entity, key: address.key)
        waiting.append(address)
    }

    /// Returns the deleted objects that the context had moved to another object with a cascade to them, by that object. A deleted row keeps
    /// the values that were changed before the deletion. O(deleted objects).
    private func deletedMembers(_ rules: RelationshipRules) -> [ObjectAddress: [ObjectAddress]] {
        var members: [ObjectAddress: [ObjectAddress]] = [:]
        for (owner, referrers) in rules.incoming.enumerated(as: EntityIndex.self) {
            for referrer in referrers where referrer.rule == .cascade {
                folded.forEachRow(of: referrer.entity, \.deleted) { key, row in
                    guard row.isSet(referrer.column), let target = row[referrer.column].referenceKey else { return }
                    let member = ObjectAddress(entity: referrer.entity, key: key)
                    members[ObjectAddress(entity: owner, key: target), default: []].append(member)
                }
            }
        }
        return members
    }

    /// Returns the objects to which a deleted object referred with the rule cascade when it was deleted, if the context had changed the
    /// reference or the pair.
    private func deletedTargets(of address: ObjectAddress, _ rules: RelationshipRules) -> [ObjectAddress] {
        var targets: [ObjectAddress] = []
        for relationship in rules.outgoing[address.entity] where relationship.rule == .cascade {
            switch relationship.kind {
            case .toOne(let column):
                guard let row = folded.row(address.entity, address.key), row.isSet(column), let key = row[column].referenceKey
                else { continue }
                targets.append(ObjectAddress(entity: relationship.destination, key: key))
            case .toMany(.link(let link, let direction, _)):
                // A deletion removes the pairs that the context had added.
                let pairs = direction == .forward ? folded.links[link].forward : folded.links[link].backward
                for case (let key, false) in pairs[address.key] ?? [:] {
                    targets.append(ObjectAddress(entity: relationship.destination, key: key))
                }
            case .toMany(.referrers):
                continue
            }
        }
        return targets
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
