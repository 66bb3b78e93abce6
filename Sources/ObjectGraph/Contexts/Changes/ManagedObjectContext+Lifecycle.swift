import StoreInterface
import StoreModel

/// Calls the lifecycle hooks of models. For models without hooks, the cost is one array look-up.
extension ManagedObjectContext {
    func awakeFromInsert(_ object: ManagedObject) {
        // An observer, or the hook of another object, may have rolled back.
        guard isHere(object) else { return }
        object.hasAwoken = true
        // The hook runs once in the life of an object (S040), which may be inserted again after a rollback.
        guard !object.hasRunInsertHook else { return }
        object.hasRunInsertHook = true
        lifecycle(object)?.awakeFromInsert()
    }

    /// Marks the object as awoken and returns whether `awakeFromFetch` must be called for it.
    @inline(__always)
    func awakes(_ object: ManagedObject) -> Bool {
        object.hasAwoken = true
        return capabilities.hasLifecycle[object.entity]
    }

    /// Calls `awakeFromFetch` once, when a fault is first read (S021). Changes that the hook makes to stored properties are dropped.
    func awakeFromFetch(_ object: ManagedObject) {
        guard let model = lifecycle(object) else { return }
        object.isAwaking = true
        defer { object.isAwaking = false }
        model.awakeFromFetch()
    }

    func prepareForDeletion(_ object: ManagedObject) { lifecycle(object)?.prepareForDeletion() }

    func didSave(_ object: ManagedObject) { lifecycle(object)?.didSave() }

    /// Whether saved layers may have changed many-to-many relationships of objects with hooks.
    func mayChangeHookedLists(_ layers: [Layer]) -> Bool {
        guard capabilities.hasAnyLifecycle else { return false }
        let links = storedModel.storeSchema.links
        guard links.contains(where: { capabilities.hasLifecycle[$0.source] || capabilities.hasLifecycle[$0.destination] }) else {
            return false
        }
        let orders = capabilities.rules.orders.joined()
        return layers.contains { layer in
            layer.links.contains { !$0.isEmpty } || orders.contains { layer.entity($0.number) != nil }
        }
    }

    /// Returns the objects with hooks of which a saved layer has changed only many-to-many relationships. They have no row in it, and count
    /// as updated (S007). One look-up per object.
    func hookedObjectsWithChangedLists(in saved: Layer) -> [ManagedObject] {
        var found: [ManagedObject] = []
        for (entity, keys) in objectsWithChangedLists(in: saved) where capabilities.hasLifecycle[entity] {
            for key in keys.sorted() where saved.row(entity, key) == nil {
                if trapOnStoreError({ try exists(entity, key) }) { found.append(object(entity, key)) }
            }
        }
        return found
    }

    func lifecycle(_ object: ManagedObject) -> (any ManagedObjectLifecycle)? {
        guard capabilities.hasLifecycle[object.entity] else { return nil }
        if object.model == nil, let type = storedModel.type(of: definition(of: object)) {
            let made = type.init(managedObject: object)
            object.claim(made)
            registry.didWrap(object)
            return made as? any ManagedObjectLifecycle
        }
        return object.model as? any ManagedObjectLifecycle
    }

    private static let maximumRounds = 1000

    /// Calls `willSave` on each changed object, in rounds, until a round changes nothing (S060).
    func runWillSave() throws {
        guard capabilities.hasAnyLifecycle else { return }
        for _ in 0..<Self.maximumRounds {
            let before = tracker.log.count
            forEachChanged { object, _ in lifecycle(object)?.willSave() }
            admitArrivals()
            if tracker.log.count == before { return }
        }
        throw SaveError.willSaveDoesNotSettle(rounds: Self.maximumRounds)
    }

    private func forEachChanged(_ body: (ManagedObject, RowKind) -> Void) {
        forEachPending(of: { capabilities.hasLifecycle[$0] }) { entity, key, known in
            // The hook of another object may have deleted a new object, or dropped changes.
            guard let kind = known == .update ? changeKind(entity, key) : layerStack.pendingKind(entity, key) else { return }
            body(object(entity, key), kind)
        }
    }
}
