import StoreInterface

/// Saving into a parent as Core Data does it, kept for comparison (routing `ancestors`). The parent creates an object for each
/// change on its own executor. A save to the store blocks the executor of each context on the way.
extension ManagedObjectContext {
    /// Applies a child's changes object by object. O(changed objects), each with an instance.
    func materialise(_ layer: Layer) {
        for entity in 0..<layer.entityCount {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    if let row = page[slot] { materialise(row, entity, PageAddress.key(page: number, slot: slot)) }
                }
            }
        }
        for (link, changes) in layer.links.enumerated() {
            for (source, pairs) in changes.forward {
                for (destination, linked) in pairs {
                    top.setLink(link, source, destination, linked: linked)
                    changeLog.noteLink(link, source, destination)
                }
            }
        }
    }

    private func materialise(_ pushes: [ChildChanges]) {
        for push in pushes {
            sealTop()
            let taken = push.parentViewRevision == viewRevision ? push : applicable(push)
            for layer in layersAbove(sealed, [taken.layer]) { materialise(layer) }
        }
        processPendingChanges()
    }

    private func materialise(_ row: Row, _ entity: Int, _ key: ObjectKey) {
        let object = object(entity, key)
        switch row.kind {
        case .insert:
            let own = row.copy(layer: top.id)
            object.row = own
            registry.retain(object)
            top.put(own, entity: entity, key: key)
            changeLog.note(entity, key)
        case .update:
            row.set.forEach { write(object, $0, row[$0]) }
        case .delete:
            object.isDeletedHere = true
            let tombstone = row.copy(layer: top.id)
            if let own = top.row(entity, key) { own.set.forEach { if !tombstone.isSet($0) { tombstone[$0] = own[$0] } } }
            object.row = tombstone
            registry.retain(object)
            top.put(tombstone, entity: entity, key: key)
            changeLog.note(entity, key)
        }
    }

    /// Applies pushed changes and saves them up to the store. This executor and each one above block until the save ends.
    func classicalSaveThrough(_ pushes: [ChildChanges], _ durability: Durability) throws -> ParentState {
        sealTop()
        let kept = sealed.count
        do {
            materialise(pushes)
            if try prepareSave() { try saveUpAndWait(durability) }
        } catch {
            dropLayers(above: kept)
            throw error
        }
        return ParentState(state: baseState.state, inherited: [], viewRevision: viewRevision, showsTheSame: false)
    }

    private func saveUpAndWait(_ durability: Durability) throws {
        if isRoot {
            try setup.coordinator.checkOpen()
            let outcome = try setup.writer.submitAndWait(saveRequest(sealed, durability), origin: number)
            didWrite(outcome)
            return
        }
        guard let parent = setup.parent?.host else { throw SaveError.parentGone(context: name) }
        let push = makePush()
        let place = try parent.wait { parent in try parent.saveClassically(push, durability) }
        didPush(push, place)
    }

    private func saveClassically(_ push: ChildChanges, _ durability: Durability) throws -> ParentState {
        try checkNotReset(push)
        sealTop()
        let kept = sealed.count
        do {
            materialise([push])
            if try prepareSave() { try saveUpAndWait(durability) }
        } catch {
            dropLayers(above: kept)
            throw error
        }
        return ParentState(state: baseState.state, inherited: [], viewRevision: viewRevision, showsTheSame: false)
    }

    /// Drops the changes that were added for a save that failed.
    private func dropLayers(above kept: Int) {
        inFlight = 0
        let dropped = Array(sealed.dropFirst(kept)) + [top]
        sealed.removeLast(max(0, sealed.count - kept))
        top = Layer(schema: model.storeSchema)
        viewRevision += 1
        rebuildView()
        for layer in dropped {
            forEachRegistered(in: layer) { object, _ in
                object.row = newestOwnRow(object.entity, object.key)
                object.isDeletedHere = object.row?.kind == .delete
                if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
            }
        }
    }
}
