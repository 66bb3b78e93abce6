import StoreInterface

/// Referential integrity (S050, S051), decided against the state that the save follows: whatever the context has seen of it.
///
/// Deletions take along what their delete rules ask for. Then each reference and each pair that the save writes must lead to an object.
/// A reference that does not is an error, or is left out under the policies that prefer the store. Cost without deletions: one look-up
/// for each page of objects that the save refers to.
extension SaveCheck {
    /// What the state will hold after the save, as far as the check has come.
    var after: LayeredView { LayeredView(base: state.base, layers: [layer] + state.deferred) }

    /// Returns whether the layer has changed. Throws ``SaveError``.
    mutating func settleRelationships() throws -> Bool {
        let rules = request.rules
        var hasChanged = layer.mayDelete ? try forgetGhosts() : false
        // Each round takes references or objects away, or completes a pair. More rounds than this mean a defect.
        for _ in 0..<1000 {
            if layer.mayDelete {
                if try followDeletions(rules) { hasChanged = true }
                try checkDenied(rules)
            }
            let hasDropped = try settleReferences(rules)
            let hasPaired = rules.hasPairs ? try settlePairs(rules) : false
            if !hasDropped && !hasPaired { return hasChanged }
            hasChanged = true
        }
        throw StoreError(.internalInconsistency, "checking a save failed: its relationships do not settle. Report this as a bug.")
    }

    // MARK: Deletions

    /// Leaves out deletions of objects that the state does not have, and their pairs (S056). One look-up for each page.
    private mutating func forgetGhosts() throws -> Bool {
        var targets = ReferenceTargets(entityCount: layer.entityCount)
        for entity in 0..<layer.entityCount {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages where page.deleted != 0 {
                targets.insert(entity, page: number, slots: page.deleted)
            }
        }
        let ghosts = try targets.missing(in: state.view)
        guard !ghosts.isEmpty else { return false }
        let layer = writable()
        for ghost in ghosts {
            layer.remove(entity: ghost.entity, key: ghost.key)
            layer.forgetLinks(of: ghost.entity, ghost.key, writer.store.schema)
        }
        return true
    }

    /// Returns the deleted objects whose deletion can change or protect other objects.
    private func deletedPlaces(_ rules: RelationshipRules) -> [ChangeLog.Place] {
        places(\.deleted) { rules.hasConsequences($0) }
    }

    /// The objects that the layer changes in a way, by entity and key.
    private func places(
        _ mask: KeyPath<LayerPage, UInt64>, where isWanted: (Int) -> Bool = { _ in true }
    ) -> [ChangeLog.Place] {
        var places: [ChangeLog.Place] = []
        let layer = layer
        for entity in 0..<layer.entityCount where isWanted(entity) {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                for slot in SlotIterator(changes.page(number)?[keyPath: mask] ?? 0) {
                    places.append(.init(entity: entity, key: PageAddress.key(page: number, slot: slot)))
                }
            }
        }
        return places
    }

    private func consequences(of place: ChangeLog.Place, _ rules: RelationshipRules) throws -> [DeletionConsequence] {
        let row = layer.row(place.entity, place.key)
        return try rules.consequences(of: place.entity, place.key, in: after) { column in
            // A deletion keeps what was changed before it.
            if let row, row.isSet(column) { return row[column].referenceKey }
            return try state.view.value(place.entity, place.key, column)?.referenceKey
        }
    }

    /// Deletes and clears what the rules ask for, to the end of each cascade. Returns whether there was any.
    private mutating func followDeletions(_ rules: RelationshipRules) throws -> Bool {
        var waiting = deletedPlaces(rules)
        var hasChanged = false
        while let place = waiting.popLast() {
            for consequence in try consequences(of: place, rules) {
                switch consequence {
                case .clear(let entity, let key, let column):
                    // Related after the deletion: the object is missing, not to be forgotten.
                    if hasSet(column, entity, key) { continue }
                    put(.null, entity, key, column)
                case .delete(let entity, let key, let column):
                    if let column, hasSet(column, entity, key) { continue }
                    guard layer.row(entity, key)?.kind != .delete else { continue }
                    markDeleted(entity, key)
                    waiting.append(.init(entity: entity, key: key))
                case .deny:
                    continue
                }
                hasChanged = true
            }
        }
        return hasChanged
    }

    /// Precondition: nothing more follows from the deletions.
    private func checkDenied(_ rules: RelationshipRules) throws {
        guard rules.canDeny else { return }
        let store = writer.store.identity
        for place in deletedPlaces(rules) {
            for case .deny(let name, let entity, let blocking) in try consequences(of: place, rules) {
                throw SaveError.deleteDenied(
                    object: ObjectID(store: store, entity: place.entity, key: place.key), relationship: name,
                    blocking: blocking.map { ObjectID(store: store, entity: entity, key: $0) })
            }
        }
    }

    private mutating func markDeleted(_ entity: Int, _ key: ObjectKey) {
        let layer = writable()
        let known = layer.row(entity, key)
        if known?.kind == .insert { return layer.remove(entity: entity, key: key) }
        let row =
            known?.copy(layer: layer.id)
            ?? Row.make(kind: .delete, layer: layer.id, columnCount: writer.store.schema.entities[entity].columns.count)
        row.kind = .delete
        layer.put(row, entity: entity, key: key)
    }

    // MARK: References

    /// Whether the save itself gave the column its value, rather than a policy that wrote a whole object.
    func hasSet(_ column: Int, _ entity: Int, _ key: ObjectKey) -> Bool {
        guard let row = layer.row(entity, key), row.kind != .delete, row.isSet(column) else { return false }
        return restored[.init(entity: entity, key: key)]?.contains(column) != true
    }

    mutating func put(_ value: Value, _ entity: Int, _ key: ObjectKey, _ column: Int) {
        let layer = writable()
        let known = layer.row(entity, key)
        if known?.kind == .delete { return }
        let row =
            known?.copy(layer: layer.id)
            ?? Row.make(kind: .update, layer: layer.id, columnCount: writer.store.schema.entities[entity].columns.count)
        row[column] = value
        layer.put(row, entity: entity, key: key)
        restored[.init(entity: entity, key: key)]?.remove(column)
    }

    /// Takes our value of a column away: the store's shows again, or nil where the store has no such object.
    mutating func drop(_ column: Int, _ entity: Int, _ key: ObjectKey) {
        guard let known = layer.row(entity, key) else { return }
        if known.kind == .insert { return put(.null, entity, key, column) }
        let layer = writable()
        let row = known.copy(layer: layer.id)
        row.clear(column)
        restored[.init(entity: entity, key: key)]?.remove(column)
        if row.set.isEmpty {
            layer.remove(entity: entity, key: key)
        } else {
            layer.put(row, entity: entity, key: key)
        }
    }

    /// Whether the policy prefers the store's side of what cannot be written.
    var prefersStore: Bool {
        switch request.policy {
        case .storeTrump, .rollback: true
        default: false
        }
    }

    private mutating func settleReferences(_ rules: RelationshipRules) throws -> Bool {
        let missing = try missingTargets(rules)
        guard !missing.isEmpty else { return false }
        let schema = writer.store.schema
        for place in places(\.inserted) + places(\.updated) {
            guard let row = layer.row(place.entity, place.key) else { continue }
            let columns = row.set.intersection(rules.references[place.entity])
            try columns.forEach { column in
                let definition = schema.entities[place.entity].columns[column]
                guard let target = row[column].referenceKey, let destination = definition.destination,
                    missing.contains(.init(entity: destination, key: target))
                else { return }
                if restored[place]?.contains(column) == true {
                    put(.null, place.entity, place.key, column)
                } else if prefersStore {
                    drop(column, place.entity, place.key)
                } else {
                    let name = "\(schema.entities[place.entity].name).\(definition.name)"
                    throw dangling(place, name, .init(entity: destination, key: target))
                }
            }
        }
        for (number, link) in layer.links.enumerated() where !link.isEmpty { try settlePairs(of: number, missing, rules) }
        return true
    }

    private mutating func settlePairs(
        of number: Int, _ missing: Set<ChangeLog.Place>, _ rules: RelationshipRules
    ) throws {
        let schema = writer.store.schema.links[number]
        for (source, pairs) in layer.links[number].forward.sorted(by: { $0.key < $1.key }) {
            for case (let destination, true) in pairs.sorted(by: { $0.key < $1.key }) {
                let ends = [
                    ChangeLog.Place(entity: schema.source, key: source),
                    ChangeLog.Place(entity: schema.destination, key: destination),
                ]
                guard let lost = ends.firstIndex(where: missing.contains) else { continue }
                if !prefersStore, !rules.links[number].mayDangle {
                    let names = rules.links[number]
                    let name = lost == 0 ? names.destination ?? names.source : names.source ?? names.destination
                    throw dangling(ends[1 - lost], name ?? schema.name, ends[lost])
                }
                writable().forgetLink(number, source, destination)
            }
        }
    }

    private func dangling(_ object: ChangeLog.Place, _ property: String, _ target: ChangeLog.Place) -> SaveError {
        let store = writer.store.identity
        return .danglingReference(
            object: ObjectID(store: store, entity: object.entity, key: object.key), property: property,
            target: ObjectID(store: store, entity: target.entity, key: target.key))
    }

    /// The objects to which the layer's references and pairs lead, and which will not exist after the save.
    private func missingTargets(_ rules: RelationshipRules) throws -> Set<ChangeLog.Place> {
        var targets = ReferenceTargets(entityCount: layer.entityCount)
        let schema = writer.store.schema
        for entity in 0..<layer.entityCount {
            let wanted = rules.references[entity]
            guard !wanted.isEmpty, let changes = layer.entity(entity) else { continue }
            let destinations = schema.entities[entity].columns.map { $0.destination ?? 0 }
            for page in changes.pages.values {
                for slot in SlotIterator(page.inserted | page.updated) {
                    guard let row = page[slot] else { continue }
                    row.set.intersection(wanted).forEach { column in
                        if let key = row[column].referenceKey { targets.insert(destinations[column], key) }
                    }
                }
            }
        }
        for (number, link) in layer.links.enumerated() {
            for (source, pairs) in link.forward {
                var isLinked = false
                for case (let destination, true) in pairs {
                    targets.insert(schema.links[number].destination, destination)
                    isLinked = true
                }
                if isLinked { targets.insert(schema.links[number].source, source) }
            }
        }
        return try targets.missing(in: after)
    }
}

/// Objects to be looked for, gathered by page: most saves refer to few.
private struct ReferenceTargets {
    /// By entity.
    private var entities: [Pages]

    /// Runs of keys on one page cost one look-up.
    private struct Pages {
        private var slots: [UInt64: UInt64] = [:]
        private var lastPage: UInt64 = 0
        private var lastSlots: UInt64 = 0

        mutating func insert(_ page: UInt64, _ added: UInt64) {
            if page != lastPage {
                settle()
                lastPage = page
            }
            lastSlots |= added
        }

        private mutating func settle() {
            if lastSlots != 0 { slots[lastPage, default: 0] |= lastSlots }
            lastSlots = 0
        }

        /// The slots to look for, by page.
        mutating func all() -> [UInt64: UInt64] {
            settle()
            return slots
        }
    }

    init(entityCount: Int) { entities = Array(repeating: Pages(), count: entityCount) }

    mutating func insert(_ entity: Int, _ key: ObjectKey) {
        entities[entity].insert(PageAddress.page(of: key), 1 << UInt64(PageAddress.slot(of: key)))
    }

    mutating func insert(_ entity: Int, page number: UInt64, slots: UInt64) { entities[entity].insert(number, slots) }

    mutating func missing(in view: LayeredView) throws -> Set<ChangeLog.Place> {
        var missing: Set<ChangeLog.Place> = []
        for entity in entities.indices {
            for (number, wanted) in entities[entity].all() {
                var open = wanted
                var found: UInt64 = 0
                for layer in view.layers {
                    guard let page = layer.entity(entity)?.page(number) else { continue }
                    found |= page.inserted & open
                    open &= ~(page.inserted | page.deleted)
                    if open == 0 { break }
                }
                if open != 0, let page = try view.base.page(entity, number) { found |= try page.present(among: open) }
                for slot in SlotIterator(wanted & ~found) {
                    missing.insert(.init(entity: entity, key: PageAddress.key(page: number, slot: slot)))
                }
            }
        }
        return missing
    }
}
