import StoreInterface
import StoreModel

/// Applying the inverse of recorded changes, as new unsaved changes.
extension ManagedObjectContext {
    /// Undoes or redoes a step. Returns the conflicts that the policy resolved, and the changes that were made as a step of the same
    /// direction as `step`, from which the next undo or redo continues.
    ///
    /// - Throws: ``UndoError/conflicts(_:)``. Then nothing has changed.
    func revert(_ step: UndoStep, isRedo: Bool, _ policy: UndoPolicy) throws -> ([UndoConflict], UndoStep) {
        sealTop()
        var plan = try UndoPlan(self, step: step, isRedo: isRedo, policy: policy)
        guard !plan.sealedLayers.isEmpty else { return (plan.conflicts, UndoStep()) }
        let isObserved = !observed.isEmpty
        if isObserved { observed.begin() }
        defer { if isObserved { observed.end() } }
        if isObserved {
            let revision = layerStack.revision
            willShow(from: layerStack.view, to: layerStack.view(appending: plan.sealedLayers), changes(of: plan))
            // Observers may have changed objects, or rolled back.
            if !layerStack.top.isEmpty || layerStack.revision != revision {
                sealTop()
                plan = try UndoPlan(self, step: step, isRedo: isRedo, policy: policy)
            }
        }
        return (plan.conflicts, apply(plan, isRedo: isRedo))
    }

    private func changes(of plan: UndoPlan) -> ChangeSet {
        ChangeSet.union(plan.sealedLayers.map { $0.changeSet(metadata: metadata) })
    }

    private func apply(_ plan: UndoPlan, isRedo: Bool) -> UndoStep {
        let below = Array(layerStack.view.layers.dropFirst())
        let count = layerStack.sealed.count
        var made: UndoStep?
        withoutUndo {
            layerStack.append(plan.sealedLayers)
            tracker.log.noteUnsavedChange()
            for layer in plan.sealedLayers {
                _ = showPushed(layer)
                note(layer)
                notePositions(of: layer)
            }
            settlePairs(of: plan.sealedLayers)
            _ = layerStack.seal()
            made = undoStep(of: Array(layerStack.sealed.dropFirst(count)), over: below, .max)
            // Collections may no longer have the record of their types.
            tracker.keyed.recorded = [:]
            for name in plan.retyped {
                // The step has values of the former types, which are not those that the collection has now.
                if let former = plan.step.types[name] { made?.note(types: former, of: name) }
            }
            guard let made else { return }
            removeRedundantChanges(made)
            if layerStack.hasTakenLayers { noteUndone(made) }
            // A running save may have taken the deletion. Once it is written, the insertion is one of an object that is gone.
            tracker.updatesOfDeleted.noteRestored(
                made.objects.keys.filter { layerStack.pendingKind($0.entity, $0.key, inFlight: false) == .insert })
        }
        guard let made else { return UndoStep() }
        if isRedo { return made }
        var inverse = made.inverted
        inverse.denied = trapOnStoreError { try deniedDeletions(of: inverse) }
        return inverse
    }

    /// Returns the objects that a redo of the step would delete although a rule denies it in the present state.
    private func deniedDeletions(of step: UndoStep) throws -> Set<ObjectAddress> {
        let rules = capabilities.rules
        var denied: Set<ObjectAddress> = []
        guard rules.canDeny else { return denied }
        for (address, change) in step.objects where change.after == nil && rules.canDeny(address.entity) {
            let known = try rules.consequences(of: address.entity, address.key, in: layerStack.view) { column in
                change.before?[column].referenceKey
            }
            for case .deny(_, let entity, let blocking) in known {
                let isBlocked = blocking.contains { key in
                    step.objects[ObjectAddress(entity: entity, key: key)].map { $0.after != nil } ?? true
                }
                if isBlocked { denied.insert(address) }
            }
        }
        return denied
    }

    /// Records a layer's changes for notices and live results.
    private func note(_ layer: Layer) {
        guard tracker.log.isOn else { return tracker.log.note(0, 0) }
        for change in layer.changeSet().entities {
            for key in change.insertedKeys + change.updatedKeys + change.deletedKeys { tracker.log.note(change.entity, key) }
        }
        for (number, link) in layer.links.enumerated(as: LinkIndex.self) {
            let ends = storedModel.storeSchema.links[number]
            for (source, pairs) in link.forward {
                tracker.log.note(ends.source, source)
                for destination in pairs.keys {
                    tracker.log.noteLink(number, from: source, to: destination)
                    tracker.log.note(ends.destination, destination)
                }
            }
        }
    }

    // MARK: Redundant changes

    /// Removes unsaved changes that equal the state below, so that undoing everything leaves the context without changes (S007).
    private func removeRedundantChanges(_ step: UndoStep) {
        let own = layerStack.notInFlight.count
        let below = Array(layerStack.view.layers.dropFirst(own))
        let newest = Array(layerStack.view.layers.prefix(own))
        let objects = step.objects.keys.filter { isRedundant($0, in: newest, below: below) }
        let isLinkedBelow = linkedPairs(in: below)
        let pairs = step.links.keys.filter { pair in
            let isLinked = isLinkedBelow(pair)
            for layer in newest {
                if let known = layer.links[pair.link].forward[pair.source]?[pair.destination] { return known == isLinked }
            }
            return false
        }
        guard !objects.isEmpty || !pairs.isEmpty else { return }
        unseal()
        for pair in pairs { layerStack.top.forgetLink(pair.link, from: pair.source, to: pair.destination) }
        for address in objects { removeRedundantColumns(address, below) }
    }

    /// Returns whether an object's unsaved changes contain a value that the state below has too.
    private func isRedundant(_ address: ObjectAddress, in layers: [Layer], below: [Layer]) -> Bool {
        let rows = layers.compactMap { $0.row(address.entity, address.key) }
        guard let newest = rows.first, let oldest = rows.last, tracker.updatesOfDeleted.changed[address] == nil else {
            return false
        }
        if oldest.kind == .insert { return newest.kind == .delete }
        guard newest.kind != .delete else { return false }
        let state = StateBelow(context: self, layers: below, entity: address.entity, key: address.key)
        if newest.kind == .insert, !trapOnStoreError(state.exists) { return true }
        return newest.columnIndices.contains { column in
            guard let row = rows.first(where: { $0.isSet(column) || $0.kind == .insert }) else { return false }
            return Value.areSame(trapOnStoreError { try state.value(column) }, row[column])
        }
    }

    /// Removes the values of an object in ``LayerStack/top`` that equal those in the state below.
    ///
    /// - Parameter below: The layers of that state, newest first.
    func removeRedundantColumns(_ address: ObjectAddress, _ below: [Layer]) {
        let (entity, key) = (address.entity, address.key)
        let state = StateBelow(context: self, layers: below, entity: entity, key: key)
        if let row = layerStack.top.row(entity, key), row.kind == .update, row.set.count == row.columnCount,
            !trapOnStoreError(state.exists)
        {
            // The deletion that was undone deleted nothing: another context had deleted the object meanwhile.
            let inserted = row.copy(layer: layerStack.top.id)
            inserted.kind = .insert
            layerStack.top.put(inserted, entity: entity, key: key)
        } else if let row = layerStack.top.row(entity, key), row.kind == .update {
            // Others may have saved objects from which values are derived, so these always follow the state below.
            var same = capabilities.derivedColumns(of: entity).intersection(row.set)
            row.set.forEach { column in
                if Value.areSame(trapOnStoreError { try state.value(column) }, row[column]) { same.insert(column) }
            }
            remove(same, of: row, address)
        }
        showOwnRow(of: address)
    }

    /// Removes values from an update in ``LayerStack/top``.
    func remove(_ same: ColumnSet, of row: Row, _ address: ObjectAddress) {
        let (entity, key) = (address.entity, address.key)
        if same.count == row.set.count {
            layerStack.top.remove(entity: entity, key: key)
        } else if entity != capabilities.keyedValues {
            // A changed row of a keyed value keeps its key.
            let rest = makeWritableRow(entity, key)
            // A position that stays without its reference is one in the list that the object has below these changes.
            for reference in capabilities.rules.ordered[entity]
            where same.contains(reference.column) && rest.isSet(reference.position) && !same.contains(reference.position) {
                tracker.positions.note(
                    .init(object: address, reference: reference),
                    .init(list: rest[reference.column].referenceKey, value: rest[reference.position]))
            }
            same.forEach { rest.clear($0) }
        }
    }

    /// Sets the row of a registered object after values were removed from ``LayerStack/top``.
    func showOwnRow(of address: ObjectAddress) {
        let (entity, key) = (address.entity, address.key)
        guard let object = registry.object(entity, key) else { return }
        if let row = newestOwnRow(entity, key) {
            object.row = row
            return
        }
        // An object whose insertion was undone keeps its row with the last values, and a redo brings it back.
        if !object.isDeletedHere { object.row = nil }
        if !retainsRegisteredObjects { registry.release(object) }
    }
}

extension UndoStep {
    /// The step that leads from the state after to the state before.
    var inverted: UndoStep {
        var inverse = UndoStep()
        for (address, change) in objects {
            inverse.set(.init(before: change.after, after: change.before, positions: change.positions), at: address)
        }
        for (pair, linked) in links { inverse.set(pair, linked: !linked) }
        for (object, key) in keys { inverse.note(key: key, of: object) }
        for (address, pair) in places { inverse.note(place: pair, at: address) }
        for (collection, recorded) in types { inverse.note(types: recorded, of: collection) }
        return inverse
    }
}
