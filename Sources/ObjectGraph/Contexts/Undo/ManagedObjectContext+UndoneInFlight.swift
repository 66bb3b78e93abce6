import StoreInterface
import StoreModel

/// The values and pairs that undos have set as they were before a running save. They are no changes any more if that save fails.
struct UndoneChanges {
    /// Per object, an update with these values.
    var objects: [ObjectAddress: Row] = [:]
    /// The pairs, each with whether it was linked.
    var links: [ChangeLog.ChangedPair: Bool] = [:]
}

/// Undoing what a running save has taken (S007, S062, S162).
extension ManagedObjectContext {
    /// Records what a step has set as it is below the layers that the running save has taken.
    func noteUndone(_ step: UndoStep) {
        let own = layerStack.notInFlight.count
        let newest = Array(layerStack.view.layers.prefix(own))
        let below = Array(layerStack.view.layers.dropFirst(own + layerStack.taken.count))
        for address in step.objects.keys {
            let rows = newest.compactMap { $0.row(address.entity, address.key) }
            let state = StateBelow(context: self, layers: below, entity: address.entity, key: address.key)
            guard let first = rows.first, first.kind != .delete, trapOnStoreError(state.exists) else { continue }
            let same = Row.make(kind: .update, layer: 0, columnCount: first.columnCount)
            for column in first.columnIndices {
                guard let row = rows.first(where: { $0.isSet(column) || $0.kind == .insert }),
                    Value.areSame(trapOnStoreError { try state.value(column) }, row[column])
                else { continue }
                same[column] = row[column]
            }
            // The context may have moved since an earlier undo.
            if let earlier = tracker.undoneInFlight.objects[address] {
                earlier.set.forEach { if !same.isSet($0) { same[$0] = earlier[$0] } }
            }
            tracker.undoneInFlight.objects[address] = same
        }
        let isLinkedBelow = linkedPairs(in: below)
        for pair in step.links.keys {
            let isLinked = isLinkedBelow(pair)
            let known = newest.lazy.compactMap { $0.links[pair.link].forward[pair.source]?[pair.destination] }.first
            if known == isLinked { tracker.undoneInFlight.links[pair] = isLinked }
        }
    }

    /// Removes what undos have set as it was before a save that has failed. Call it when its changes are unsaved again.
    func takeBackUndone() {
        let undone = tracker.undoneInFlight
        tracker.undoneInFlight = UndoneChanges()
        guard !undone.objects.isEmpty || !undone.links.isEmpty else { return }
        droppingValues {
            unseal()
            for (pair, isLinked) in undone.links
            where layerStack.top.links[pair.link].forward[pair.source]?[pair.destination] == isLinked {
                layerStack.top.forgetLink(pair.link, from: pair.source, to: pair.destination)
                guard layerStack.hasMovedInFlight else { continue }
                let ends = storedModel.storeSchema.links[pair.link]
                tracker.log.noteLink(pair.link, from: pair.source, to: pair.destination)
                tracker.log.note(ends.source, pair.source)
                tracker.log.note(ends.destination, pair.destination)
            }
            for (address, values) in undone.objects {
                guard let row = layerStack.top.row(address.entity, address.key), row.kind == .update else { continue }
                var same = ColumnSet()
                values.set.forEach { column in
                    if row.isSet(column), Value.areSame(values[column], row[column]) { same.insert(column) }
                }
                if let own = tracker.updatesOfDeleted.changed[address],
                    trapOnStoreError({ try !exists(address.entity, address.key) })
                {
                    // Others have deleted the object. A merge policy needs the whole row of another own change.
                    guard own.intersection(same).count == own.count else { continue }
                    same = row.set
                }
                remove(same, of: row, address)
                // Others may have changed or deleted the object meanwhile.
                if layerStack.hasMovedInFlight { tracker.log.note(address.entity, address.key) }
                if layerStack.top.row(address.entity, address.key) == nil { tracker.updatesOfDeleted.forget(address) }
                showOwnRow(of: address)
            }
            tracker.listEnds.removeAll()
        }
    }
}
