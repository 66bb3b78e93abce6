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

    func prepareForDeletion(_ object: ManagedObject) {
        lifecycle(object)?.prepareForDeletion()
        if traits.hasDenyRules, !object.isDeletedHere { noteDenied(object) }
    }

    /// Notes what an object that is deleted now refers to with the rule deny: a save looks at that, not at the committed value.
    private func noteDenied(_ object: ManagedObject) {
        var denied: [Int: ObjectKey] = [:]
        for relationship in model.entities[object.entity].relationships where relationship.deleteRule == .deny {
            guard case .toOne(let column) = relationship.kind else { continue }
            denied[column] = read(object, column)?.referenceKey
        }
        deniedReferences[.init(entity: object.entity, key: object.key)] = denied.isEmpty ? nil : denied
    }

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

    /// Deleted objects whose deny relationships still lead to living ones. What a child deleted was judged there as far as its
    /// to-one relationships go.
    private func checkDenied() throws {
        guard traits.hasDenyRules, hasDeletes else { return }
        let changes = foldedChanges()
        for entity in model.entities {
            let denying = entity.relationships.filter { $0.deleteRule == .deny }
            guard !denying.isEmpty, let layer = changes.entity(entity.number) else { continue }
            for number in layer.sortedPageNumbers {
                guard let page = layer.page(number) else { continue }
                for slot in SlotIterator(page.deleted) {
                    try checkDenied(denying, entity, PageAddress.key(page: number, slot: slot))
                }
            }
        }
    }

    private func checkDenied(_ denying: [Relationship], _ entity: Entity, _ key: ObjectKey) throws {
        for relationship in denying {
            let far: [ObjectKey]
            switch relationship.kind {
            case .toMany(let relation):
                far = try view.related(relation, to: key)
            case .toOne(let column):
                let old = deniedReferences[.init(entity: entity.number, key: key)]?[column]
                far = try old.map { try exists(relationship.destination, $0) ? [$0] : [] } ?? []
            }
            guard !far.isEmpty else { continue }
            throw SaveError.deleteDenied(
                object: ObjectID(store: storeIdentity, entity: entity.number, key: key),
                relationship: "\(entity.name).\(relationship.name)",
                blocking: far.map { ObjectID(store: storeIdentity, entity: relationship.destination, key: $0) })
        }
    }
}
