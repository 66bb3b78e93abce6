import StoreInterface
import StoreModel

/// Checks referential integrity (S050, S051) against the state that the save follows, even if the context has not read that state.
///
/// Deletions are extended by their delete rules. Then each reference and each pair that the save writes must lead to an existing
/// object. A reference to a missing object is an error. Policies that prefer the store drop it instead, and contexts that ask for it
/// clear it. Cost without deletions: one look-up per page of objects that the save refers to.
extension SaveCheck {
    /// The state after the save, as far as it has been checked.
    var after: LayeredView { LayeredView(base: state.base, layers: [layer] + state.deferred) }

    /// Follows delete rules and checks references. Returns whether the layer changed. Throws ``SaveError``.
    mutating func settleRelationships() throws -> Bool {
        let rules = request.rules
        var hasChanged = layer.mayDelete ? try forgetGhosts() : false
        // Each round removes references or objects, or completes a pair. More rounds than this indicate a bug.
        for _ in 0..<1000 {
            if layer.mayDelete {
                if try followDeletions(rules) { hasChanged = true }
                try checkDenied(rules)
            }
            let hasDropped = try settleReferences(rules)
            let hasPaired = rules.hasPairs ? try settlePairs(rules) : false
            let hasUnplaced = rules.hasOrders ? try settleOrders(rules) : false
            if !hasDropped && !hasPaired && !hasUnplaced { return hasChanged }
            hasChanged = true
        }
        throw StoreError(.internalInconsistency, "checking a save failed: its relationships do not settle. Report this as a bug.")
    }

    // MARK: Deletions

    /// Applies the delete rules before unique values are compared.
    mutating func deleteDependents() throws {
        _ = try forgetGhosts()
        _ = try followDeletions(request.rules)
    }

    /// Drops deletions of objects that are not in the state, with their pairs (S056). One look-up per page.
    private mutating func forgetGhosts() throws -> Bool {
        var ghosts: [ObjectAddress] = []
        let view = state.view
        for entity in layer.entityIndices {
            guard let changes = layer.entity(entity) else { continue }
            for (number, page) in changes.pages where page.deleted != 0 {
                for slot in SlotIterator(try view.missing(page.deleted, entity, page: number)) {
                    ghosts.append(.init(entity: entity, key: PageAddress.key(page: number, slot: slot)))
                }
            }
        }
        guard !ghosts.isEmpty else { return false }
        let layer = writable()
        for ghost in ghosts {
            layer.remove(entity: ghost.entity, key: ghost.key)
            layer.forgetLinks(of: ghost.entity, ghost.key, writer.store.schema)
        }
        return true
    }

    /// Returns the deleted objects whose deletion can change or protect other objects.
    private func deletedObjects(_ rules: RelationshipRules) -> [ObjectAddress] {
        addresses(\.deleted) { rules.hasConsequences($0) }
    }

    /// Returns the objects that the layer inserts, updates or deletes, as `mask` selects, by entity and key.
    func addresses(
        _ mask: KeyPath<LayerPage, UInt64>, where isWanted: (EntityIndex) -> Bool = { _ in true }
    ) -> [ObjectAddress] {
        var addresses: [ObjectAddress] = []
        let layer = layer
        for entity in layer.entityIndices where isWanted(entity) {
            guard let changes = layer.entity(entity) else { continue }
            for number in changes.sortedPageNumbers {
                for slot in SlotIterator(changes.page(number)?[keyPath: mask] ?? 0) {
                    addresses.append(.init(entity: entity, key: PageAddress.key(page: number, slot: slot)))
                }
            }
        }
        return addresses
    }

    private func consequences(of address: ObjectAddress, _ rules: RelationshipRules) throws -> [DeletionConsequence] {
        let row = layer.row(address.entity, address.key)
        return try rules.consequences(of: address.entity, address.key, in: after) { column in
            // A deletion keeps the values that were changed before it.
            if let row, row.isSet(column) { return row[column].referenceKey }
            return try state.view.value(address.entity, key: address.key, column: column)?.referenceKey
        }
    }

    /// Deletes objects and clears references as the rules require, to the end of each cascade. Returns whether there were any.
    private mutating func followDeletions(_ rules: RelationshipRules) throws -> Bool {
        var waiting = deletedObjects(rules)
        var hasChanged = false
        while let address = waiting.popLast() {
            for consequence in try consequences(of: address, rules) {
                switch consequence {
                case .clear(let entity, let key, let column):
                    // The reference was set after the deletion, so it is an error to report instead of a reference to clear.
                    if hasSet(column, entity: entity, key: key) { continue }
                    put(.null, entity: entity, key: key, column: column)
                    noteAdded(column, entity: entity, key: key)
                case .delete(let entity, let key, let column):
                    if let column, hasSet(column, entity: entity, key: key) { continue }
                    guard layer.row(entity, key)?.kind != .delete else { continue }
                    let dependent = ObjectAddress(entity: entity, key: key)
                    markDeleted(entity, key)
                    noteAddedDeletion(of: dependent)
                    waiting.append(dependent)
                case .deny:
                    continue
                }
                hasChanged = true
            }
        }
        return hasChanged
    }

    /// Checks the delete rule deny.
    ///
    /// - Precondition: All consequences of the deletions are in the layer.
    private func checkDenied(_ rules: RelationshipRules) throws {
        guard rules.canDeny else { return }
        let store = writer.store.identity
        for address in deletedObjects(rules) {
            for case .deny(let name, let entity, let blocking) in try consequences(of: address, rules) {
                let object = ObjectID(store: store, entity: address.entity, key: address.key)
                let blocking = blocking.map { ObjectID(store: store, entity: entity, key: $0) }
                EntityNames.note([object] + blocking.prefix(1), in: writer.store.schema)
                throw SaveError.deleteDenied(object: object, relationship: name, blocking: blocking)
            }
        }
    }

    private mutating func markDeleted(_ entity: EntityIndex, _ key: ObjectKey) {
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

    /// Whether the save itself set the column, not a policy that wrote a whole object.
    func hasSet(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey) -> Bool {
        guard let row = layer.row(entity, key), row.kind != .delete, row.isSet(column) else { return false }
        return restored[.init(entity: entity, key: key)]?.contains(column) != true
    }

    mutating func put(_ value: Value, entity: EntityIndex, key: ObjectKey, column: ColumnIndex) {
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

    /// Removes our value of a column, so that the store's value applies, or null for a new object.
    mutating func drop(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey) {
        guard let known = layer.row(entity, key) else { return }
        if known.kind == .insert { return put(.null, entity: entity, key: key, column: column) }
        let layer = writable()
        let row = known.copy(layer: layer.id)
        row.clear(column)
        for reference in request.rules.ordered[entity] where reference.column == column { row.clear(reference.position) }
        restored[.init(entity: entity, key: key)]?.remove(column)
        if row.set.isEmpty {
            layer.remove(entity: entity, key: key)
        } else {
            layer.put(row, entity: entity, key: key)
        }
    }

    /// Whether references to a missing object are dropped instead of reported: the policy prefers the store's version, at least of this
    /// object.
    private func isDroppable(_ target: ObjectAddress) -> Bool {
        switch request.policy {
        case .storeTrump, .rollback: true
        default: abandoned.contains(target)
        }
    }

    /// Whether references to a missing object become nil: the context asks for it, and has not deleted the object itself.
    private func isClearable(_ target: ObjectAddress) -> Bool {
        request.clearsMissingReferences && folded.row(target.entity, target.key)?.kind != .delete
    }

    private mutating func settleReferences(_ rules: RelationshipRules) throws -> Bool {
        let missing = try missingTargets(rules)
        guard !missing.isEmpty else { return false }
        let schema = writer.store.schema
        for address in addresses(\.inserted) + addresses(\.updated) {
            guard let row = layer.row(address.entity, address.key) else { continue }
            let columns = row.set.intersection(rules.references[address.entity])
            if isLost(row, at: address, columns: columns, missing: missing) {
                writable().remove(entity: address.entity, key: address.key)
                writable().forgetLinks(of: address.entity, address.key, schema)
                restored[address] = nil
                continue
            }
            try columns.forEach { column in
                let definition = schema.entities[address.entity].columns[column]
                guard let key = row[column].referenceKey, let destination = definition.destination else { return }
                let target = ObjectAddress(entity: destination, key: key)
                guard missing.contains(target) else { return }
                let isRequired = request.validation?.requires(column, of: address.entity) ?? false
                if restored[address]?.contains(column) == true || isClearable(target) && !isRequired {
                    put(.null, entity: address.entity, key: address.key, column: column)
                } else if isDroppable(target) {
                    drop(column, entity: address.entity, key: address.key)
                } else {
                    let name = "\(schema.entities[address.entity].name).\(definition.name)"
                    throw dangling(address, property: name, target: target)
                }
            }
        }
        for (index, link) in layer.links.enumerated(as: LinkIndex.self) where !link.isEmpty {
            try settlePairs(of: index, missing, rules)
        }
        return true
    }

    /// Whether an object that the save would bring back requires one that is missing too. Then it stays deleted, if the context asks for
    /// that by ``SaveRequest/clearsMissingReferences``.
    private func isLost(_ row: Row, at address: ObjectAddress, columns: ColumnSet, missing: Set<ObjectAddress>) -> Bool {
        guard request.clearsMissingReferences, row.kind == .insert, let restored = restored[address] else { return false }
        let columnSchemas = writer.store.schema.entities[address.entity].columns
        var isLost = false
        columns.intersection(restored).forEach { column in
            guard let key = row[column].referenceKey, let destination = columnSchemas[column].destination else { return }
            let isMissing = missing.contains(ObjectAddress(entity: destination, key: key))
            if isMissing, request.validation?.requires(column, of: address.entity) == true { isLost = true }
        }
        return isLost
    }

    private mutating func settlePairs(
        of number: LinkIndex, _ missing: Set<ObjectAddress>, _ rules: RelationshipRules
    ) throws {
        let schema = writer.store.schema.links[number]
        for (source, pairs) in layer.links[number].forward.sorted(by: { $0.key < $1.key }) {
            for case (let destination, true) in pairs.sorted(by: { $0.key < $1.key }) {
                let ends = [
                    ObjectAddress(entity: schema.source, key: source),
                    ObjectAddress(entity: schema.destination, key: destination),
                ]
                guard let lost = ends.firstIndex(where: missing.contains) else { continue }
                if !isDroppable(ends[lost]), !isClearable(ends[lost]), !rules.links[number].mayDangle {
                    let names = rules.links[number]
                    let name = lost == 0 ? names.destination ?? names.source : names.source ?? names.destination
                    throw dangling(ends[1 - lost], property: name ?? schema.name, target: ends[lost])
                }
                writable().forgetLink(number, from: source, to: destination)
            }
        }
    }

    private func dangling(_ object: ObjectAddress, property: String, target: ObjectAddress) -> SaveError {
        let ids = [object, target].map { ObjectID(store: writer.store.identity, entity: $0.entity, key: $0.key) }
        EntityNames.note(ids, in: writer.store.schema)
        return .danglingReference(object: ids[0], property: property, target: ids[1])
    }

    /// Returns the destinations of the layer's references and pairs that will not exist after the save.
    private func missingTargets(_ rules: RelationshipRules) throws -> Set<ObjectAddress> {
        var targets = ReferenceTargets(entityCount: layer.entityIndices.count)
        let schema = writer.store.schema
        for entity in layer.entityIndices {
            let wanted = rules.references[entity]
            guard !wanted.isEmpty, let changes = layer.entity(entity) else { continue }
            let destinations = schema.entities[entity].columns.map { $0.destination ?? 0 }
            for page in changes.pages.values {
                page.forEachRow(in: page.inserted | page.updated) { row, _ in
                    row.withValues { set, values in
                        set.intersection(wanted).forEach { column in
                            if let key = values[column.rawValue].referenceKey { targets.insert(destinations[column], key) }
                        }
                    }
                }
            }
        }
        for (number, link) in layer.links.enumerated(as: LinkIndex.self) {
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

/// A set of objects to look up, collected by page, because most saves refer to few pages.
private struct ReferenceTargets {
    /// The pages of each entity.
    private var entities: [Pages]

    /// The slots to look up by page number. Consecutive keys on one page cost one dictionary look-up.
    private struct Pages {
        private var slots: [PageNumber: UInt64] = [:]
        private var lastPage: PageNumber = 0
        private var lastSlots: UInt64 = 0

        mutating func insert(_ key: ObjectKey) {
            if key.page != lastPage {
                settle()
                lastPage = key.page
            }
            lastSlots |= 1 << UInt64(key.slot)
        }

        private mutating func settle() {
            if lastSlots != 0 { slots[lastPage, default: 0] |= lastSlots }
            lastSlots = 0
        }

        /// The slots to look for, by page.
        mutating func all() -> [PageNumber: UInt64] {
            settle()
            return slots
        }
    }

    init(entityCount: Int) { entities = Array(repeating: Pages(), count: entityCount) }

    mutating func insert(_ entity: EntityIndex, _ key: ObjectKey) { entities[entity].insert(key) }

    mutating func missing(in view: LayeredView) throws -> Set<ObjectAddress> {
        var missing: Set<ObjectAddress> = []
        for entity in entities.indices(as: EntityIndex.self) {
            for (number, wanted) in entities[entity].all() {
                for slot in SlotIterator(try view.missing(wanted, entity, page: number)) {
                    missing.insert(.init(entity: entity, key: PageAddress.key(page: number, slot: slot)))
                }
            }
        }
        return missing
    }
}

extension LayeredView {
    /// Returns the slots of a page, among those wanted, whose objects do not exist. Reads the page of the base at most once.
    fileprivate func missing(_ wanted: UInt64, _ entity: EntityIndex, page number: PageNumber) throws -> UInt64 {
        var open = wanted
        var found: UInt64 = 0
        for layer in layers {
            guard let page = layer.entity(entity)?.page(number) else { continue }
            found |= page.inserted & open
            open &= ~(page.inserted | page.deleted)
            if open == 0 { break }
        }
        if open != 0, let page = try base.page(entity, number) { found |= try page.present(among: open) }
        return wanted & ~found
    }
}
