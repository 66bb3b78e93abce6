import ObjectGraph
import StoreInterface
import StoreModel

/// A child's save as Core Data makes it: the parent creates an object for each change, on its own executor.
extension ManagedObjectContext {
    /// Makes a child's changes unsaved changes of this context.
    func takeMaterialised(_ push: ChildChanges) throws -> ParentState {
        try checkAccepts(push)
        return parentState(taken: materialise([push]))
    }

    /// Saves children's changes, and this context's own, through to the store. A save of this context is running.
    ///
    /// A root blocks its executor until the store has them. Any other context leaves its executor free meanwhile, as in a program that
    /// saves each context in a separate call of `perform`.
    func saveMaterialised(
        _ pushes: [ChildChanges], durability: Durability, _ completion: @escaping (Result<ParentState, any Error>) -> Void
    ) {
        sealTop()
        let kept = sealedLayers.count
        let taken: ChangeSet
        do {
            let isSaving: Bool
            (taken, isSaving) = try withoutUndo { (materialise(pushes), try prepareSave()) }
            guard isSaving else { return completion(.success(parentState(taken: taken))) }
        } catch {
            dropLayers(above: kept)
            return completion(.failure(error))
        }
        let passed = passedChanges(Array(sealedLayers.dropFirst(kept)), included: sealedLayers.count - kept)
        saveTaken(durability, metadata: pushes[0].metadata) { [self] result in
            if case .failure = result { dropLayers(above: kept) }
            completion(
                result.map { saved in
                    record(passed)
                    return parentState(taken: taken.limited(to: saved))
                })
        }
    }

    // MARK: Making objects

    /// Applies children's changes object by object, and returns the changes whose objects exist. O(changed objects), each with an
    /// instance.
    private func materialise(_ pushes: [ChildChanges]) -> ChangeSet {
        var taken: [ChangeSet] = []
        for push in pushes {
            let (layers, changes) = layersToTake(of: push)
            for layer in layers { materialise(layer) }
            taken.append(changes)
            noteRestored(by: push)
        }
        postPendingChanges()
        return ChangeSet.union(taken)
    }

    private func materialise(_ layer: Layer) {
        for entity in layer.entityIndices {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    if let row = page[slot] { materialise(row, entity: entity, key: PageAddress.key(page: number, slot: slot)) }
                }
            }
        }
        for (link, changes) in layer.links.enumerated(as: LinkIndex.self) {
            for (source, pairs) in changes.forward {
                for (destination, linked) in pairs {
                    putLink(link, from: source, to: destination, linked: linked)
                }
            }
        }
    }

    private func materialise(_ row: Row, entity: EntityIndex, key: ObjectKey) {
        let object = instance(entity, key)
        switch row.kind {
        case .insert: put(row.copy(layer: topLayer.id), of: object)
        case .update: row.set.forEach { put(row[$0], column: $0, of: object) }
        case .delete:
            let tombstone = row.copy(layer: topLayer.id)
            if let own = topLayer.row(entity, key) {
                own.set.forEach { if !tombstone.isSet($0) { tombstone[$0] = own[$0] } }
            }
            put(tombstone, of: object)
        }
    }
}
