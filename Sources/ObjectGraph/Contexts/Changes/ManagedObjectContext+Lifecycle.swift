import StoreInterface

/// Calls the hooks of models that have them; others cost one array look-up.
extension ManagedObjectContext {
    func awakeFromInsert(_ object: ManagedObject) {
        object.hasAwoken = true
        lifecycle(object)?.awakeFromInsert()
    }

    /// Whether a fault that is read for the first time has a hook for that.
    @inline(__always)
    func awakes(_ object: ManagedObject) -> Bool {
        object.hasAwoken = true
        return traits.hasLifecycle[object.entity] && object.row?.kind != .insert
    }

    /// Once, when a fault is first read (S021). What the hook sets of the object's stored properties is dropped.
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
        if object.model == nil, let type = model.type(of: model.entities[object.entity]) {
            let made = type.init(managedObject: object)
            object.model = made
            registry.didWrap(object)
            return made as? any ManagedObjectLifecycle
        }
        return object.model as? any ManagedObjectLifecycle
    }

    private static let maximumRounds = 1000

    /// `willSave` for each changed object until a round changes nothing more (S060).
    func runWillSave() throws {
        guard traits.hasAnyLifecycle else { return }
        for _ in 0..<Self.maximumRounds {
            let before = changeLog.count
            forEachChanged { object, _ in lifecycle(object)?.willSave() }
            if changeLog.count == before { return }
        }
        throw SaveError.willSaveDoesNotSettle(rounds: Self.maximumRounds)
    }

    /// Validation by state (S061 in its hooks) and the delete rule deny (S043). Throws one error for all failures.
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

    /// Deleted objects that the rule deny protects. The writer decides; this tells before anything is handed over.
    private func checkDenied() throws {
        guard traits.rules.canDeny, hasDeletes else { return }
        let changes = foldedChanges()
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
        let consequences = try traits.rules.consequences(of: entity, key, in: view) { column in
            lastValue(entity, key, column)?.referenceKey
        }
        for case .deny(let name, let blocker, let blocking) in consequences {
            throw SaveError.deleteDenied(
                object: ObjectID(store: storeIdentity, entity: entity, key: key), relationship: name,
                blocking: blocking.map { ObjectID(store: storeIdentity, entity: blocker, key: $0) })
        }
    }
}
