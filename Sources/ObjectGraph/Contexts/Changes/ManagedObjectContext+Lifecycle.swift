import StoreInterface

/// Calls the lifecycle hooks of models. For models without hooks, the cost is one array look-up.
extension ManagedObjectContext {
    func awakeFromInsert(_ object: ManagedObject) {
        object.hasAwoken = true
        lifecycle(object)?.awakeFromInsert()
    }

    /// Marks the object as awoken and returns whether `awakeFromFetch` must be called for it.
    @inline(__always)
    func awakes(_ object: ManagedObject) -> Bool {
        object.hasAwoken = true
        return traits.hasLifecycle[object.entity] && object.row?.kind != .insert
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

    func lifecycle(_ object: ManagedObject) -> (any ManagedObjectLifecycle)? {
        guard traits.hasLifecycle[object.entity] else { return nil }
        if object.model == nil, let type = storedModel.type(of: storedModel.entities[object.entity]) {
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
        guard traits.hasAnyLifecycle else { return }
        for _ in 0..<Self.maximumRounds {
            let before = tracker.log.count
            forEachChanged { object, _ in lifecycle(object)?.willSave() }
            admitArrivals()
            if tracker.log.count == before { return }
        }
        throw SaveError.willSaveDoesNotSettle(rounds: Self.maximumRounds)
    }

    /// Validates each changed object by the kind of its change (S061) and checks the delete rule deny (S043).
    ///
    /// - Throws: One error that lists all validation failures.
    func validate() throws {
        try checkDenied()
        guard traits.hasAnyLifecycle else { return }
        var failures: [(ObjectID, any Error)] = []
        forEachChanged { object, kind in
            guard let model = lifecycle(object) else { return }
            do {
                switch kind {
                case .insert: try model.validateForInsert()
                case .update: try model.validateForUpdate()
                case .delete: try model.validateForDelete()
                }
            } catch {
                failures.append((object.objectID, error))
            }
        }
        if !failures.isEmpty { throw SaveError.validation(failures) }
    }

    private func forEachChanged(_ body: (ManagedObject, RowKind) -> Void) {
        forEachPending(of: { traits.hasLifecycle[$0] }, { body(object($0, $1), $2) })
    }

    /// Checks the delete rule deny for the deleted objects. The writer makes the final decision; this check fails earlier.
    private func checkDenied() throws {
        guard traits.rules.canDeny, hasDeletes else { return }
        let changes = layerStack.folded()
        for entity in 0..<changes.entityCount {
            guard traits.rules.canDeny(entity), let layer = changes.entity(entity) else { continue }
            for number in layer.sortedPageNumbers {
                guard let page = layer.page(number) else { continue }
                for slot in SlotIterator(page.deleted) {
                    try checkDenied(entity, PageAddress.key(page: number, slot: slot))
                }
            }
        }
    }

    private func checkDenied(_ entity: Int, _ key: ObjectKey) throws {
        let consequences = try traits.rules.consequences(of: entity, key, in: layerStack.view) { column in
            lastValue(entity, key, column)?.referenceKey
        }
        for case .deny(let name, let blocker, let blocking) in consequences {
            throw SaveError.deleteDenied(
                object: ObjectID(store: storeIdentity, entity: entity, key: key), relationship: name,
                blocking: blocking.map { ObjectID(store: storeIdentity, entity: blocker, key: $0) })
        }
    }
}
