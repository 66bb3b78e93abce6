import StoreInterface
import StoreModel

/// Relationships: setting one end updates the other at once (S044, S045). A to-many relationship is the index of its inverse,
/// so only the to-one end is written. A many-to-many relationship is a set of pairs.
extension ManagedObjectContext {
    /// Returns the destination of a to-one relationship, or nil if there is none.
    ///
    /// A destination with an unsaved deletion is still returned, and fetches agree (S053). The save then throws.
    /// A reference to a missing object that the rule noAction permits reads as nil.
    func toOne(_ object: ManagedObject, _ column: ColumnIndex, destination: EntityIndex) -> ManagedObject? {
        let value = read(object, column) ?? lastValue(object.entity, key: object.key, column: column)
        guard let key = value?.referenceKey else { return nil }
        if let known = registry.object(destination, key), !known.isDeletedHere { return known }
        if trapOnStoreError({ try exists(destination, key) }) { return self.object(destination, key) }
        guard !capabilities.rules.dangling[object.entity].contains(column),
            isDeletedUnsaved(destination, key) || hasUnsaved(column, entity: object.entity, key: object.key)
        else { return nil }
        let lost = self.object(destination, key)
        lost.isDeletedHere = true
        return lost
    }

    /// The unsaved layers of this context and of its ancestors, the newest first.
    private var layersAboveSaves: some Sequence<Layer> {
        layerStack.view.layers.prefix(layerStack.sealed.count + 1 + layerStack.baseState.inherited.count)
    }

    /// Returns whether an object has an unsaved deletion, in this context or in an ancestor.
    private func isDeletedUnsaved(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        // A child's update of an object that its parent has deleted does not bring it back.
        layersAboveSaves.lazy.compactMap { $0.row(entity, key) }.first { $0.kind != .update }?.kind == .delete
    }

    /// Returns whether a column has an unsaved value, in this context or in an ancestor.
    private func hasUnsaved(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey) -> Bool {
        layersAboveSaves.contains { $0.row(entity, key)?.isSet(column) ?? false }
    }

    /// Returns the keys of a to-many relationship's destinations, ascending.
    func toManyKeys(_ object: ManagedObject, _ relation: Relation) -> [ObjectKey] {
        object.isDeletedHere ? [] : trapOnStoreError { try layerStack.view.related(relation, to: object.key) }
    }

    func setToOne(_ object: ManagedObject, _ relationship: Relationship, to other: ManagedObject?) {
        guard case .toOne(let column) = relationship.kind, !object.isDeletedHere, !object.isAwaking else { return }
        let other = other.map { adopted($0, by: relationship) }
        let old = read(object, column)?.referenceKey
        guard old != other?.key else { return }
        if observed.isEmpty { return relate(object, relationship: relationship, column: column, from: old, to: other) }
        changingObserved {
            willSetToOne(object, relationship: relationship, column: column, from: old, to: other?.key)
            // An observer may have deleted an object, or rolled an insertion back.
            if isHere(object), !object.isDeletedHere, other.map(isHere) ?? true {
                relate(object, relationship: relationship, column: column, from: read(object, column)?.referenceKey, to: other)
            }
        }
    }

    private func relate(
        _ object: ManagedObject, relationship: Relationship, column: ColumnIndex, from old: ObjectKey?, to other: ManagedObject?
    ) {
        guard old != other?.key else { return }
        let inverse = relationship.inverse.map { storedModel.entities[relationship.destination].relationships[$0] }
        if case .toOne(let back)? = inverse?.kind {
            if let old { write(relationship.destination, key: old, column: back, value: .null) }
            if let other, !other.isDeletedHere {
                if let partner = read(other, back)?.referenceKey {
                    write(object.entity, key: partner, column: column, value: .null)
                }
                write(other, column: back, value: .reference(object.key))
            }
        } else if inverse != nil {
            if let old { tracker.log.note(relationship.destination, old) }
            if let other { tracker.log.note(relationship.destination, other.key) }
        }
        if let position = relationship.position, let other {
            append(object, to: other.key, OrderedReference(column: column, position: position))
        }
        write(object, column: column, value: other.map { .reference($0.key) } ?? .null)
    }

    /// Sets a to-one relationship by the key of its destination. The inverse is updated too (S044).
    func setReference(_ object: ManagedObject, _ column: ColumnIndex, to value: Value) {
        let relationship = storedModel.entities[object.entity].relationships.first { $0.kind == .toOne(column: column) }
        guard let relationship, value.isNull || value.referenceKey != nil else {
            return write(object, column: column, value: value)
        }
        setToOne(object, relationship, to: value.referenceKey.map { self.object(relationship.destination, $0) })
    }

    /// Returns the value of a reference as the property shows it: null if the destination was deleted under the rule noAction (S053).
    func shown(_ value: Value, object: ManagedObject, column: ColumnIndex) -> Value {
        guard capabilities.rules.dangling[object.entity].contains(column) else { return value }
        return trapOnStoreError { try layerStack.view.shown(value, entity: object.entity, column: column) }
    }

    /// Replaces all members of a to-many relationship: removes missing members and adds new members (S045).
    func setToMany(_ object: ManagedObject, _ relationship: Relationship, to others: [ManagedObject]) {
        guard case .toMany(let relation) = relationship.kind, !object.isAwaking else { return }
        let wanted = others.map { adopted($0, by: relationship) }
        let new = Set(wanted.map(\.key))
        guard !observed.isEmpty else {
            return replaceMembers(of: object, relationship: relationship, relation: relation, with: wanted, new: new)
        }
        let old = toManyKeys(object, relation)
        changingObserved {
            willChangeToMany(
                object, relationship, adding: new.subtracting(old).sorted(), removing: old.filter { !new.contains($0) })
            guard isHere(object) else { return }
            let left = wanted.filter(isHere)
            replaceMembers(of: object, relationship: relationship, relation: relation, with: left, new: Set(left.map(\.key)))
        }
    }

    /// Returns whether an object is still in the context after observers have run.
    func isHere(_ object: ManagedObject) -> Bool { object.state == .registered }

    private func replaceMembers(
        of object: ManagedObject, relationship: Relationship, relation: Relation, with wanted: [ManagedObject],
        new: Set<ObjectKey>
    ) {
        let old = toManyKeys(object, relation)
        for key in old where !new.contains(key) { drop(object, relation: relation, other: key) }
        let kept = Set(old)
        for other in wanted where !kept.contains(other.key) {
            relate(object, relationship: relationship, relation: relation, to: other)
        }
        if relationship.isOrdered { arrange(object, relationship, as: wanted.map(\.key), old: kept) }
    }

    func addToMany(_ object: ManagedObject, relationship: Relationship, other: ManagedObject) {
        guard case .toMany(let relation) = relationship.kind, !object.isAwaking else { return }
        relate(object, relationship: relationship, relation: relation, to: adopted(other, by: relationship))
    }

    func removeFromMany(_ object: ManagedObject, relationship: Relationship, other: ManagedObject) {
        guard case .toMany(let relation) = relationship.kind, other.state == .registered, !object.isAwaking else { return }
        let other = adopted(other, by: relationship)
        guard isRelated(object, by: relation, to: other) else { return }
        if observed.isEmpty { return drop(object, relation: relation, other: other.key) }
        changingObserved {
            willChangeToMany(object, relationship, adding: [], removing: [other.key])
            if isHere(object), isHere(other), isRelated(object, by: relation, to: other) {
                drop(object, relation: relation, other: other.key)
            }
        }
    }

    private func isRelated(_ object: ManagedObject, by relation: Relation, to other: ManagedObject) -> Bool {
        switch relation {
        // The member may have moved to another object in the meantime. Then this object must not clear its reference.
        case .referrers(_, let column): read(other, column)?.referenceKey == object.key
        case .link(let link, let direction, _):
            direction == .forward
                ? isLinked(link, from: object.key, to: other.key, object: object, relation: relation, in: layerStack.view)
                : isLinked(link, from: other.key, to: object.key, object: object, relation: relation, in: layerStack.view)
        }
    }

    /// Returns an object of this context that may be a destination of the relationship. Traps for an object of another entity,
    /// because its key would identify a different object.
    private func adopted(_ object: ManagedObject, by relationship: Relationship) -> ManagedObject {
        let object = adopted(object)
        precondition(
            isDestination(object, of: relationship),
            "\(relationship.name) leads to \(storedModel.destination(of: relationship).name), not to \(object.entityName)")
        return object
    }

    private func isDestination(_ object: ManagedObject, of relationship: Relationship) -> Bool {
        object.entity == relationship.destination
            && (relationship.member == 0 || isObject(object, of: storedModel.destination(of: relationship)))
    }

    private func relate(
        _ object: ManagedObject, relationship: Relationship, relation: Relation, to other: ManagedObject
    ) {
        switch relation {
        case .referrers(let entity, _):
            guard let inverse = relationship.inverse else { return }
            setToOne(other, storedModel.entities[entity].relationships[inverse], to: object)
        case .link(let link, let direction, let destination):
            guard !isRelated(object, by: relation, to: other) else { return }
            observed.begin()
            defer { observed.end() }
            if !observed.isEmpty { willChangeToMany(object, relationship, adding: [other.key], removing: []) }
            guard isHere(object), isHere(other) else { return }
            let (source, target) = direction == .forward ? (object.key, other.key) : (other.key, object.key)
            setLink(link, from: source, to: target, object: object, relation: relation, linked: true)
            noteLink(link, from: source, to: target, object: object, entity: destination, other: other.key)
        }
    }

    /// Removes a relation between two objects.
    ///
    /// - Precondition: The objects are related.
    private func drop(_ object: ManagedObject, relation: Relation, other: ObjectKey) {
        switch relation {
        case .referrers(let entity, let column):
            write(entity, key: other, column: column, value: .null)
            tracker.log.note(object.entity, object.key)
        case .link(let link, let direction, let destination):
            let (source, target) = direction == .forward ? (object.key, other) : (other, object.key)
            setLink(link, from: source, to: target, object: object, relation: relation, linked: false)
            noteLink(link, from: source, to: target, object: object, entity: destination, other: other)
        }
    }

    /// Links or unlinks a pair, with its positions in ordered relationships. Undoing an unsaved change removes the change (S032).
    private func setLink(
        _ link: LinkIndex, from source: ObjectKey, to target: ObjectKey, object: ManagedObject, relation: Relation, linked: Bool
    ) {
        for order in capabilities.rules.orders[link] { place(order, source: source, target: target, linked: linked) }
        if layerStack.changesPair(link, from: source, to: target) {
            let own = layerStack.notInFlight
            let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst(own.count)))
            if isLinked(link, from: source, to: target, object: object, relation: relation, in: below) == linked {
                return takeBack(.init(link: link, source: source, destination: target), linked: linked, among: own)
            }
        }
        layerStack.top.setLink(link, from: source, to: target, linked: linked)
    }

    /// Takes back the unsaved change of a pair that is now as in the state below. A removal that stayed would also remove the pair that
    /// others add meanwhile (S107).
    ///
    /// - Parameters:
    ///   - linked: Whether the pair is linked now.
    ///   - own: The unsaved layers, oldest first.
    private func takeBack(_ pair: ChangeLog.ChangedPair, linked: Bool, among own: [Layer]) {
        if own.dropLast().contains(where: { $0.links[pair.link].forward[pair.source]?[pair.destination] != nil }) {
            if tracker.undo != nil {
                // Undo records what the newest layer changes. The end of its event takes the change back.
                tracker.repeatedPairs.insert(pair)
                return layerStack.top.setLink(pair.link, from: pair.source, to: pair.destination, linked: linked)
            }
            unseal()
        }
        layerStack.top.forgetLink(pair.link, from: pair.source, to: pair.destination)
    }

    /// Takes back the changes of pairs that were changed and changed back while undo is on. O(unsaved changes) if there are any.
    func takeBackRepeatedPairs() {
        guard !tracker.repeatedPairs.isEmpty else { return }
        let pairs = tracker.repeatedPairs
        tracker.repeatedPairs = []
        withoutUndo {
            unseal()
            let isLinkedBelow = linkedPairs(in: Array(layerStack.view.layers.dropFirst()))
            for pair in pairs
            where layerStack.top.links[pair.link].forward[pair.source]?[pair.destination] == isLinkedBelow(pair) {
                layerStack.top.forgetLink(pair.link, from: pair.source, to: pair.destination)
            }
        }
    }

    private func noteLink(
        _ link: LinkIndex, from source: ObjectKey, to target: ObjectKey, object: ManagedObject, entity: EntityIndex,
        other: ObjectKey
    ) {
        tracker.log.noteLink(link, from: source, to: target)
        tracker.log.note(object.entity, object.key)
        tracker.log.note(entity, other)
    }

    private func isLinked(
        _ link: LinkIndex, from source: ObjectKey, to target: ObjectKey, object: ManagedObject, relation: Relation,
        in view: LayeredView
    ) -> Bool {
        for layer in view.layers {
            if let known = layer.links[link].forward[source]?[target] { return known }
        }
        // An object inserted in this context has no pairs in the base state.
        if layerStack.pendingKind(object.entity, object.key) == .insert { return false }
        let partner = source == object.key ? target : source
        return trapOnStoreError { try layerStack.isRelatedInBase(relation, to: object.key, partner) }
    }

    // MARK: Delete

    /// Deletes an object. Fetches leave it out at once (S047); the store deletes it with the next save.
    ///
    /// The delete rules of its relationships apply now, except deny, which a save checks (S043). Deleting an object twice does nothing.
    public func delete(_ object: ManagedObject) {
        checkIsolation()
        guard object.state == .registered, !object.isDeletedHere else { return }
        precondition(
            object.context === self,
            "cannot delete an object in the context \(name): it belongs to another context. Look it up here by its objectID.")
        // A queue instead of recursion, because a chain of cascades may be longer than the stack allows.
        var deletionQueue: [CascadedObject] = []
        observed.begin()
        delete(object, &deletionQueue)
        while let next = deletionQueue.popLast() {
            if isStillCascaded(next) { delete(next.object, &deletionQueue) }
        }
        observed.end()
    }

    /// An object that must be deleted because another one is.
    private struct CascadedObject {
        let object: ManagedObject
        /// The object's reference to the deleted one; nil if the deleted object refers to this one.
        let column: ColumnIndex?
        let deleted: ManagedObject
    }

    /// Returns whether an object of a cascade is still related to a deleted object. An observer or a hook may have moved it meanwhile, or
    /// taken the deletion back.
    private func isStillCascaded(_ next: CascadedObject) -> Bool {
        guard isHere(next.object), !isHere(next.deleted) || next.deleted.isDeletedHere else { return false }
        return next.column.map { refers(next.object.entity, key: next.object.key, column: $0, to: next.deleted.key) } ?? true
    }

    private func refers(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex, to other: ObjectKey) -> Bool {
        readBelow(entity, key: key, column: column)?.referenceKey == other
    }

    /// - Parameter cascade: Receives the objects that must be deleted too.
    private func delete(_ object: ManagedObject, _ cascade: inout [CascadedObject]) {
        // A hook may delete objects whose hooks delete this one.
        guard object.state == .registered, !object.isDeletedHere, !object.isPreparingForDeletion else { return }
        object.isPreparingForDeletion = true
        prepareForDeletion(object)
        object.isPreparingForDeletion = false
        // The delete rules also hold for new objects that the hook has related.
        admitArrivals()
        if !observed.isEmpty { willDelete(object) }
        guard object.state == .registered, !object.isDeletedHere else { return }
        let consequences = consequences(of: object)
        let relationships = storedModel.entities[object.entity].relationships
        let far = farEnds(object, relationships)
        let containers = capabilities.rules.containers[object.entity].map { ($0, toManyKeys(object, $0.relation)) }
        object.isDeletedHere = true
        for (index, key) in far { unlink(object, relationships[index], from: key) }
        for (container, keys) in containers {
            for key in keys { unlink(container.link, from: key, to: object.key, far: container.entity, key) }
        }
        for consequence in consequences {
            // An observer may have rolled back.
            guard isHere(object), object.isDeletedHere else { return }
            switch consequence {
            case .delete(let entity, let key, let column):
                cascade.append(CascadedObject(object: self.object(entity, key), column: column, deleted: object))
            case .clear(let entity, let key, let column):
                // An observer of another reference may have moved this object.
                if refers(entity, key: key, column: column, to: object.key) {
                    write(entity, key: key, column: column, value: .null)
                }
            case .deny: break
            }
        }
        if isHere(object), object.isDeletedHere { markDeleted(object) }
    }

    private func consequences(of object: ManagedObject) -> [DeletionConsequence] {
        // Most objects have none, and then the look-up is not worth the copy of the view that it reads.
        guard capabilities.rules.hasConsequences(object.entity) else { return [] }
        return trapOnStoreError {
            try capabilities.rules.consequences(of: object.entity, object.key, in: layerStack.view) {
                read(object, $0)?.referenceKey
            }
        }
    }

    /// Deletes the object behind a model instance, as ``delete(_:)`` does.
    public func delete(_ model: some PersistentModel) { delete(model.managedObject) }

    /// Returns the keys that an object's own columns and pairs refer to, with the indexes of the relationships. Referrers of a to-many
    /// relationship come from the delete rules.
    private func farEnds(_ object: ManagedObject, _ relationships: [Relationship]) -> [(relationship: Int, key: ObjectKey)] {
        var far: [(relationship: Int, key: ObjectKey)] = []
        for index in relationships.indices {
            if relationships[index].deleteRule == .noAction || relationships[index].deleteRule == .deny { continue }
            switch relationships[index].kind {
            case .toOne(let column): if let key = read(object, column)?.referenceKey { far.append((index, key)) }
            case .toMany(.referrers): break
            case .toMany(let relation): for key in toManyKeys(object, relation) { far.append((index, key)) }
            }
        }
        return far
    }

    /// Removes a pair of a deleted object, if the relationship has pairs, and records that the object it referred to has changed.
    private func unlink(_ object: ManagedObject, _ relationship: Relationship, from key: ObjectKey) {
        guard case .toMany(.link(let link, let direction, _)) = relationship.kind else {
            return tracker.log.note(relationship.destination, key)
        }
        let (source, target) = direction == .forward ? (object.key, key) : (key, object.key)
        unlink(link, from: source, to: target, far: relationship.destination, key)
    }

    /// Removes a pair of a deleted object, and records that the object at its far end has changed.
    private func unlink(
        _ link: LinkIndex, from source: ObjectKey, to target: ObjectKey, far entity: EntityIndex, _ key: ObjectKey
    ) {
        tracker.log.note(entity, key)
        layerStack.top.setLink(link, from: source, to: target, linked: false)
        tracker.log.noteLink(link, from: source, to: target)
    }

    /// Puts a tombstone in the top layer. An object that never left the top layer is removed without one (S041).
    private func markDeleted(_ object: ManagedObject) {
        guard let row = putTombstone(object.entity, object.key) else {
            // The object keeps its row, which contains its last values (S054).
            layerStack.top.forgetLinks(of: object.entity, object.key, storedModel.storeSchema)
            forgetUnsaved(object)
            return
        }
        object.row = row
        registry.retain(object)
    }

    /// Puts the row of a deletion in the top layer. Returns nil if the object never left the top layer: then its row is removed.
    func putTombstone(_ entity: EntityIndex, _ key: ObjectKey) -> Row? {
        tracker.log.note(entity, key)
        let known = layerStack.top.row(entity, key)
        let isNewInTop = known?.kind == .insert
        let isKnownBelow = layerStack.sealed.contains { $0.row(entity, key) != nil }
        if isNewInTop, !isKnownBelow {
            layerStack.top.remove(entity: entity, key: key)
            return nil
        }
        let row =
            known?.copy(layer: layerStack.top.id)
            ?? Row.make(kind: .delete, layer: layerStack.top.id, columnCount: storedModel.entities[entity].columns.count)
        // Objects without a change skip the look-up, for which Swift copies the layer stack.
        if known != nil || isKnownBelow, layerStack.pendingKind(entity, key) == .insert {
            // Folding drops the insertion, and with it the values.
            for column in row.columnIndices where !row.isSet(column) {
                row[column] = readBelow(entity, key: key, column: column) ?? .null
            }
        }
        row.kind = .delete
        layerStack.top.put(row, entity: entity, key: key)
        return row
    }

    /// Releases an object that was inserted and deleted again. It stays registered, as deleted, while the program retains it.
    private func forgetUnsaved(_ object: ManagedObject) {
        if !retainsRegisteredObjects { registry.release(object) }
    }

    /// Traps if a read for a property fails, which happens only for a damaged file. See ``readBelow(_:key:column:)``.
    func trapOnStoreError<T>(_ body: () throws -> T) -> T {
        do { return try body() } catch { preconditionFailure("reading the store failed: \(error)") }
    }
}
