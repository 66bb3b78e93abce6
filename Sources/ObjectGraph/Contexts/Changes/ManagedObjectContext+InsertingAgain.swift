import Logging
import StoreInterface
import StoreModel

/// Inserting objects that were deleted in this context (S048).
extension ManagedObjectContext {
    private static let log = Logger(label: "strata.contexts")

    /// Makes an object of this context exist again if it is deleted and its deletion is unsaved.
    func insertAgain(_ object: ManagedObject) {
        guard isHere(object), object.isDeletedHere else { return }
        if isNewAndDeleted(object) {
            insertAnew(object)
        } else if let step = insertion(of: object) {
            takeBackDeletion(step)
        } else {
            let entity = storedModel.entities[object.entity].name
            Self.log.warning(
                "cannot insert \(entity)(id: \(object.key)) into \(name) again: its deletion is saved. Create a new object"
            )
        }
    }

    // MARK: New objects

    /// Returns whether a new object was deleted again, so that it is in no layer and not in the store. It keeps its row.
    private func isNewAndDeleted(_ object: ManagedObject) -> Bool {
        guard isHere(object), object.isDeletedHere, let row = object.row, row.kind != .update else { return false }
        return newestOwnRow(object.entity, object.key) == nil
            && trapOnStoreError { try !layerStack.view.exists(object.entity, object.key) }
    }

    /// Inserts an object that was new and deleted again, with another key.
    private func insertAnew(_ object: ManagedObject) {
        changingObserved {
            observed.willChangeAll(of: object)
            guard isNewAndDeleted(object), let row = object.row else { return }
            registry.forget(object)
            observed.remove(object)
            detach(object, row)
            registry.release(object)
            insertGraph(of: object)
        }
    }

    // MARK: Saved objects

    /// Takes back the unsaved deletion of an object, as the redo of an insertion with the object's last values. O(columns), with one read
    /// of the state each, and O(unsaved positions) if the object has ordered many-to-many relationships.
    ///
    /// The changes that the deletion made to other objects are not recorded, so they stay.
    private func takeBackDeletion(_ step: UndoStep) {
        // Nothing is in conflict: references to missing objects are left out.
        let (_, made) = trapOnStoreError { try revert(step, isRedo: true, .skip) }
        recordForUndo(made)
    }

    /// Returns the step that inserts an object with an unsaved deletion, with its last values; nil for any other object, and for one whose
    /// values another context has deleted, too.
    private func insertion(of object: ManagedObject) -> UndoStep? {
        let (entity, key) = (object.entity, object.key)
        guard let row = lastRow(entity, key) else { return nil }
        // The deletion has cleared the other end of a pair. Both ends must agree (S052).
        for pair in capabilities.rules.pairs[entity] {
            guard let partner = row[pair.column].referenceKey else { continue }
            let back = readBelow(pair.destination, key: partner, column: pair.back)?.referenceKey
            if back != key { row[pair.column] = .null }
        }
        var step = UndoStep()
        step.set(.init(before: nil, after: row), at: ObjectAddress(entity: entity, key: key))
        addPositions(of: object, to: &step)
        return step
    }

    /// Returns the last values of an object that has an unsaved deletion here; nil for any other object.
    private func lastRow(_ entity: EntityIndex, _ key: ObjectKey) -> Row? {
        let row = Row.make(kind: .insert, layer: 0, columnCount: storedModel.entities[entity].columns.count)
        for column in row.columnIndices {
            guard let value = lastValue(entity, key: key, column: column) else { return nil }
            row[column] = value
        }
        return row
    }

    /// Adds the positions that went with the deletion of an object although a rule has kept their pairs (S046). O(unsaved positions).
    private func addPositions(of object: ManagedObject, to step: inout UndoStep) {
        func isEnd(_ entity: EntityIndex, _ key: ObjectKey) -> Bool { entity == object.entity && key == object.key }
        func willExist(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
            isEnd(entity, key) || trapOnStoreError { try exists(entity, key) }
        }
        let isLinked = linkedPairs(in: layerStack.view.layers)
        for order in capabilities.rules.orders.joined()
        where order.ownerEntity == object.entity || order.memberEntity == object.entity {
            var places: [ChangeLog.ChangedPair: (key: ObjectKey, row: Row)] = [:]
            for key in deletedKeys(order.number) {
                guard let row = lastRow(order.number, key), let owner = row[OrderEntity.owner].referenceKey,
                    let member = row[OrderEntity.member].referenceKey,
                    isEnd(order.ownerEntity, owner) || isEnd(order.memberEntity, member),
                    willExist(order.ownerEntity, owner), willExist(order.memberEntity, member)
                else { continue }
                let pair = order.pair(owner: owner, member: member)
                // A pair that was removed and added again had two positions. The newer one has the higher key.
                if isLinked(pair) { places[pair] = (key, row) }
            }
            for place in places.values {
                step.set(.init(before: nil, after: place.row), at: ObjectAddress(entity: order.number, key: place.key))
            }
        }
    }

    /// Returns the keys of an entity's objects that an unsaved layer deletes, ascending.
    private func deletedKeys(_ entity: EntityIndex) -> [ObjectKey] {
        var keys: Set<ObjectKey> = []
        for layer in layerStack.sealed + [layerStack.top] {
            layer.forEachRow(of: entity, \.deleted) { key, _ in keys.insert(key) }
        }
        return keys.sorted()
    }
}
