import StoreInterface
import StoreModel

/// Validation before a save (S060, S061).
extension ManagedObjectContext {
    /// Checks the delete rule deny (S043), and validates each changed object: by the hook for the kind of its change, and by the rules of
    /// its properties.
    ///
    /// - Throws: One error that lists all validation failures.
    func validate() throws {
        try checkDenied()
        guard capabilities.hasAnyLifecycle || capabilities.validation != nil || !tracker.replacements.isEmpty else { return }
        let hooks = hookErrors()
        var errors = ValidationErrors()
        // After the hooks, which may change objects.
        if let rules = capabilities.validation { try check(rules, &errors) }
        for (id, error) in hooks { errors.append(id, error) }
        for error in try refusedReplacements() { errors.append(error.objectID, error) }
        if errors.isEmpty { return }
        errors.sort()
        throw SaveError.validation(errors)
    }

    private func hookErrors() -> [(ObjectID, any Error)] {
        guard capabilities.hasAnyLifecycle else { return [] }
        var errors: [(ObjectID, any Error)] = []
        forEachPending(of: { capabilities.hasLifecycle[$0] }) { entity, key, known in
            // An earlier hook may have deleted the object, or dropped its changes. The end of a changed pair is pending without a row.
            guard let kind = known == .update ? changeKind(entity, key) : layerStack.pendingKind(entity, key) else { return }
            let object = object(entity, key)
            if let error = hookError(object, kind) { errors.append((object.objectID, error)) }
        }
        // A hook may have related a new object.
        admitArrivals()
        return errors
    }

    /// Returns the error of the hook that validates an object; nil if it has none.
    func hookError(_ object: ManagedObject, _ kind: RowKind) -> (any Error)? {
        guard let model = lifecycle(object) else { return nil }
        do {
            switch kind {
            case .insert: try model.validateForInsert()
            case .update: try model.validateForUpdate()
            case .delete: try model.validateForDelete()
            }
            return nil
        } catch {
            return error
        }
    }

    // MARK: Rules of properties

    /// The state below the unsaved changes of this context.
    var viewBelow: LayeredView {
        let view = layerStack.view
        return LayeredView(base: view.base, layers: Array(view.layers.dropFirst(layerStack.sealed.count + 1)))
    }

    private func check(_ rules: ValidationRules, _ errors: inout ValidationErrors) throws {
        let changes = layerStack.folded()
        var reader = PagedReader(layerStack.view)
        for (entity, entityRules) in rules.entities.enumerated(as: EntityIndex.self) {
            guard let entityRules, !entityRules.columns.isEmpty else { continue }
            try changes.forEachRow(of: entity, \.inserted) { key, row in
                try check(entityRules, entity: entity, key: key, row: row, in: &reader, errors: &errors)
            }
            try changes.forEachRow(of: entity, \.updated) { key, row in
                // The record of an updated object may be gone (S022).
                if try exists(entity, key) {
                    try check(entityRules, entity: entity, key: key, row: row, in: &reader, errors: &errors)
                }
            }
            for key in relinked(entity, changes) where try exists(entity, key) {
                try check(entityRules, entity: entity, key: key, row: nil, in: &reader, errors: &errors)
            }
        }
        let view = layerStack.view
        for open in try rules.countsToCheck(changes, before: viewBelow) {
            if let violation = try rules.violation(open, in: view, storeIdentity) { errors.append(violation) }
        }
    }

    private func check(
        _ rules: EntityRules, entity: EntityIndex, key: ObjectKey, row: Row?, in reader: inout PagedReader,
        errors: inout ValidationErrors
    ) throws {
        try ValidationRules.check(rules.columns, row: row, other: { try reader.value(entity, key: key, column: $0) }) {
            rule, value in
            let violation = rule.violation(
                value, entity: rules.entity, id: ObjectID(store: storeIdentity, entity: entity, key: key))
            if let violation { errors.append(violation) }
        }
    }

    /// Returns the unchanged objects of an entity among the ends of changed pairs, which count as updated.
    private func relinked(_ entity: EntityIndex, _ changes: Layer) -> [ObjectKey] {
        var ends: Set<ObjectKey> = []
        for (link, pairs) in changes.links.enumerated(as: LinkIndex.self) where !pairs.isEmpty {
            let schema = storedModel.storeSchema.links[link]
            if schema.source == entity { ends.formUnion(pairs.forward.keys) }
            if schema.destination == entity { ends.formUnion(pairs.backward.keys) }
        }
        return ends.filter { changes.row(entity, $0) == nil }.sorted()
    }

    /// Returns the broken rules of one object's properties.
    func ruleViolations(of object: ManagedObject) throws -> [RuleViolation] {
        let (entity, key) = (object.entity, object.key)
        guard let rules = capabilities.validation, let entityRules = rules.entities[entity], try exists(entity, key) else {
            return []
        }
        var errors = ValidationErrors()
        var reader = PagedReader(layerStack.view)
        try check(entityRules, entity: entity, key: key, row: nil, in: &reader, errors: &errors)
        try rules.checkCounts(of: entity, key: key, in: layerStack.view, store: storeIdentity) { errors.append($0) }
        return errors.ruleViolations
    }

    // MARK: Delete rules

    /// Checks the delete rule deny for the deleted objects. The writer makes the final decision; this check fails earlier.
    private func checkDenied() throws {
        guard capabilities.rules.canDeny, hasDeletes else { return }
        let changes = layerStack.folded()
        for entity in changes.entityIndices where capabilities.rules.canDeny(entity) {
            try changes.forEachRow(of: entity, \.deleted) { key, _ in try checkDenied(entity, key) }
        }
    }

    private func checkDenied(_ entity: EntityIndex, _ key: ObjectKey) throws {
        let consequences = try capabilities.rules.consequences(of: entity, key, in: layerStack.view) { column in
            lastValue(entity, key: key, column: column)?.referenceKey
        }
        for case .deny(let name, let blocker, let blocking) in consequences {
            let object = ObjectID(store: storeIdentity, entity: entity, key: key)
            let blocking = blocking.map { ObjectID(store: storeIdentity, entity: blocker, key: $0) }
            EntityNames.note([object] + blocking.prefix(1), in: layerStack.view.schema)
            throw SaveError.deleteDenied(object: object, relationship: name, blocking: blocking)
        }
    }
}
