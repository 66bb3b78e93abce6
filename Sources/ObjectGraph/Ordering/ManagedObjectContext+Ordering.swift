import StoreInterface

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
        write(object, reference.position, position.value)
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
        guard let column = relationship.position, case .toMany(let relation) = relationship.kind, !object.isDeletedHere else {
            return
        }
        let arrangement = trapOnStoreError {
            try layerStack.view.arrangement(of: layerStack.view.related(relation, to: object.key), relation.entity, column)
        }
        var left = Set(arrangement.keys)
        var order = wanted.filter { left.remove($0) != nil }
        if !left.isEmpty { order += arrangement.keys.filter(left.contains) }
        let new = old.map { Set(order).subtracting($0) } ?? []
        let changes = arrangement.changes(for: order, placing: new) {
            layerStack.top.row(relation.entity, $0)?.isSet(column) ?? false
        }
        guard !changes.isEmpty else { return }
        let write = {
            for change in changes { self.write(relation.entity, change.key, column, change.position?.value ?? .null) }
            self.tracker.log.note(object.entity, object.key)
            self.tracker.listEnds.removeAll()
        }
        guard !observed.isEmpty else { return write() }
        changingObserved {
            observed.willChange(object, .toMany(relationship.number))
            write()
        }
    }
}
