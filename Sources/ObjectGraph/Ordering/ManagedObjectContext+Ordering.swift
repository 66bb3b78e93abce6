import StoreInterface
import StoreModel

/// Ordered relationships (S046). The position of a member is a column of the member, beside its reference to the object that has the
/// list, so that it is saved, merged, undone and recorded like any attribute.
extension ManagedObjectContext {
    /// Returns the keys of an ordered relationship's members, in their order.
    func orderedKeys(_ object: ManagedObject, _ relationship: Relationship) -> [ObjectKey] {
        object.isDeletedHere ? [] : trapOnStoreError { try layerStack.view.members(of: relationship, object.key) }
    }

    /// Gives an object the last position in the list that its new reference leads to. Call this before the reference is written.
    func append(_ object: ManagedObject, to owner: ObjectKey, _ reference: OrderedReference) {
        let position = trapOnStoreError {
            try tracker.listEnds.append(
                object.key, of: object.entity, to: owner, reference, in: layerStack.view, revision: layerStack.revision)
        }
        write(object, column: reference.position, value: position.value)
    }

    /// Appends a new object to the lists that its references lead to.
    func appendToLists(_ object: ManagedObject) {
        for reference in storedModel.entities[object.entity].orderedReferences {
            guard let owner = object.row?[reference.column].referenceKey, object.row?[reference.position].isNull == true else {
                continue
            }
            append(object, to: owner, reference)
        }
    }

    /// Gives the members of an ordered relationship the order of a list. An equal order is no change (S032).
    ///
    /// Members that are not in the list come last, and keys in the list that are no members have no effect.
    ///
    /// - Parameter old: The keys of the members before objects were added.
    func arrange(_ object: ManagedObject, _ relationship: Relationship, as wanted: [ObjectKey], old: Set<ObjectKey>? = nil) {
        guard case .toMany(let relation) = relationship.kind, !object.isDeletedHere else { return }
        if let order = relationship.order {
            return arrangePairs(of: object, relationship: relationship, relation: relation, order: order, as: wanted, old: old)
        }
        guard let column = relationship.position else { return }
        let arrangement = trapOnStoreError {
            try layerStack.view.arrangement(of: layerStack.view.related(relation, to: object.key), relation.entity, column)
        }
        let changes = arrangement.changes(as: wanted, old: old) {
            layerStack.top.row(relation.entity, $0)?.isSet(column) ?? false
        }
        changeOrder(of: object, relationship: relationship, changes: changes) {
            let value = $0.position?.value ?? .null
            write(relation.entity, key: $0.key, column: column, value: value)
            guard case .referrers(let entity, let reference) = relation else { return }
            tracker.positions.note(
                .init(
                    object: ObjectAddress(entity: entity, key: $0.key),
                    reference: OrderedReference(column: reference, position: column)), .init(list: object.key, value: value))
        }
    }

    /// Writes new positions in a list, and notifies the observers of the list.
    func changeOrder(
        of object: ManagedObject, relationship: Relationship, changes: [Arrangement.Member],
        _ write: (Arrangement.Member) -> Void
    ) {
        guard !changes.isEmpty else { return }
        func writeAll(_ changes: [Arrangement.Member]) {
            for change in changes { write(change) }
            tracker.log.note(object.entity, object.key)
            tracker.listEnds.removeAll()
        }
        guard !observed.isEmpty else { return writeAll(changes) }
        changingObserved {
            observed.willChange(object, .toMany(relationship.number))
            // An observer may have deleted the object, rolled its insertion back, or moved members to other lists.
            guard isHere(object), !object.isDeletedHere, case .toMany(let relation) = relationship.kind else { return }
            let members = Set(toManyKeys(object, relation))
            let changes = changes.filter { members.contains($0.key) }
            if !changes.isEmpty { writeAll(changes) }
        }
    }
}
