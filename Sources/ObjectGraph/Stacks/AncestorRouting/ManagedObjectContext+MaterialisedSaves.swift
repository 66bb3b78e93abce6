import StoreInterface
import StoreModel

/// Saves into a parent as Core Data makes them: the parent makes an object of everything that passes, on its own executor.
extension ManagedObjectContext {
    /// Makes a child's changes unsaved changes of this context.
    func takeMaterialised(_ push: ChildChanges) throws -> ParentState {
        try checkAccepts(push)
        let taken = materialise([push])
        return materialisedState(taken)
    }

    /// Saves children's changes, and this context's own, through to the store. A save of this context is running.
    ///
    /// A root blocks its executor until the store has them; any other context leaves its executor free meanwhile, as when each level
    /// is saved in a `perform` of its own.
    func saveMaterialised(
        _ pushes: [ChildChanges], durability: Durability, _ completion: @escaping (Result<ParentState, any Error>) -> Void
    ) {
        sealTop()
        let kept = layerStack.sealed.count
        let taken: ChangeSet
        do {
            let isSaving: Bool
            (taken, isSaving) = try withoutUndo { (materialise(pushes), try prepareSave()) }
            guard isSaving else { return completion(.success(materialisedState(taken))) }
        } catch {
            dropLayers(above: kept)
            return completion(.failure(error))
        }
        let passed = passedChanges(Array(layerStack.sealed.dropFirst(kept)), included: layerStack.sealed.count - kept)
        let origin = pushes[0].origin.orAuthor(transactionAuthor)
        if isRoot {
            completion(
                Result {
                    do {
                        let changes = try writeAndWait(origin, durability)
                        record(passed)
                        return materialisedState(taken.limited(to: changes))
                    } catch {
                        dropLayers(above: kept)
                        throw error
                    }
                })
            return
        }
        guard let parent = setup.parent?.host else {
            dropLayers(above: kept)
            return completion(.failure(SaveError.parentGone(context: name)))
        }
        var push = makePush()
        push.origin = origin
        pass(push, durability: durability, to: parent) { [self] result in
            if case .failure = result { dropLayers(above: kept) }
            completion(
                result.map { above in
                    didPush(push, above)
                    record(passed)
                    return materialisedState(taken.limited(to: above.taken(of: push)))
                })
        }
    }

    /// Asks the parent to save through; `then` runs once, on this context's executor.
    private func pass(
        _ push: ChildChanges, durability: Durability, to parent: any ContextExecutor,
        _ then: @escaping (Result<ParentState, any Error>) -> Void
    ) {
        let host = requiredHost
        // Called where it was made.
        nonisolated(unsafe) let then = then
        let isEnqueued = parent.enqueue { parent in
            parent.takeThrough(push, durability: durability) { result in
                host.enqueue { _ in then(result) }
            }
        }
        if !isEnqueued { then(.failure(SaveError.parentGone(context: name))) }
    }

    private func writeAndWait(_ origin: SaveOrigin, _ durability: Durability) throws -> ChangeSet {
        try setup.coordinator.checkOpen()
        var request = saveRequest(layerStack.taken, durability)
        request.origin = origin
        guard let route = layerStack.baseState.route else { throw setup.coordinator.closedError }
        let outcome = try route.write(request, origin: number, to: setup.writer)
        didWrite(outcome)
        return outcome.changes
    }

    private func materialisedState(_ taken: ChangeSet) -> ParentState {
        ParentState(
            state: layerStack.baseState.state, inherited: [], viewRevision: layerStack.revision, parentLayers: [],
            showsTheSame: false,
            taken: taken)
    }

    // MARK: Making objects

    /// Applies children's changes object by object, and returns the changes whose objects exist. O(changed objects), each with an
    /// instance.
    private func materialise(_ pushes: [ChildChanges]) -> ChangeSet {
        var taken: [ChangeSet] = []
        for push in pushes {
            sealTop()
            let isPresent = push.parentViewRevision == layerStack.revision && !hasDeletes && push.updatesOfDeleted.isEmpty
            let rest = isPresent ? push : applicable(push)
            for layer in layersAbove(layerStack.sealed, [rest.layer]) { materialise(layer) }
            taken.append(rest.changes)
            tracker.updatesOfDeleted.noteRestored(push.updatesOfDeleted.restored)
        }
        postPendingChanges()
        return ChangeSet.union(taken)
    }

    private func materialise(_ layer: Layer) {
        for entity in 0..<layer.entityCount {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    if let row = page[slot] { materialise(row, entity: entity, key: PageAddress.key(page: number, slot: slot)) }
                }
            }
        }
        for (link, changes) in layer.links.enumerated() {
            for (source, pairs) in changes.forward {
                for (destination, linked) in pairs {
                    layerStack.top.setLink(link, from: source, to: destination, linked: linked)
                    tracker.log.noteLink(link, from: source, to: destination)
                }
            }
        }
    }

    private func materialise(_ row: Row, entity: Int, key: ObjectKey) {
        let object = object(entity, key)
        switch row.kind {
        case .insert:
            let own = row.copy(layer: layerStack.top.id)
            object.row = own
            registry.retain(object)
            layerStack.top.put(own, entity: entity, key: key)
            tracker.log.note(entity, key)
        case .update:
            row.set.forEach { write(object, column: $0, value: row[$0]) }
        case .delete:
            object.isDeletedHere = true
            let tombstone = row.copy(layer: layerStack.top.id)
            if let own = layerStack.top.row(entity, key) {
                own.set.forEach { if !tombstone.isSet($0) { tombstone[$0] = own[$0] } }
            }
            object.row = tombstone
            registry.retain(object)
            layerStack.top.put(tombstone, entity: entity, key: key)
            tracker.log.note(entity, key)
        }
    }

    /// Drops the changes that were taken for a save that failed. Changes made while it ran stay.
    private func dropLayers(above kept: Int) {
        if !layerStack.hasTakenLayers { sealTop() }
        let dropped = withoutUndo { layerStack.dropTaken(above: kept) }
        guard !dropped.isEmpty else { return }
        for layer in dropped {
            forEachRegistered(in: layer) { object, _ in
                object.row = newestOwnRow(object.entity, object.key)
                object.isDeletedHere = object.row?.kind == .delete
                if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
            }
        }
        let changes = Layer.folding(dropped, schema: storedModel.storeSchema).changeSet(origin: origin).inverted
        notify(changes, refreshed: refreshRegistered(changes))
    }
}
