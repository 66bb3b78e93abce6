import StoreInterface
import StoreModel

extension PersistentContainer {
    /// Undoes what one author has saved since a snapshot, by one new save (S162).
    ///
    /// The history names the changed objects and properties of each save, but not their former values. These are read from the snapshot.
    /// A property is undone if only the author has changed it since. If others have changed it too, it is a conflict. Objects that the author
    /// inserted are deleted, and objects that the author deleted are back with their ids.
    ///
    /// The author is the ``ManagedObjectContext/transactionAuthor`` of the saving context, not the name of the context. Set it before the
    /// save: `context.transactionAuthor = "importer"`.
    ///
    /// ```swift
    /// let before = try container.coordinator.snapshot(owner: "before the import")
    /// try await importer.save()
    /// try await container.undoChanges(by: "importer", since: before, onConflict: .skip)
    /// ```
    /// Waits for the disk first, because the history has only saves on disk. If another context saves at the same time, the work is repeated.
    /// O(saves since the snapshot + objects that the author changed).
    ///
    /// - Parameters:
    ///   - author: The `transactionAuthor` of the contexts whose saves to undo. "" for saves without an author.
    ///   - snapshot: The state before the changes. The program takes it, and keeps it until then.
    ///   - policy: The treatment of conflicts. With `force`, the snapshot's values replace those of others.
    ///   - durability: When the save counts as done.
    /// - Returns: The conflicts that the policy has resolved.
    /// - Throws: ``UndoError/conflicts(_:)``, ``HistoryError`` if the history since the snapshot was deleted, `StoreError` `.suspended` or
    ///   `.closed` if the snapshot has ended, and the errors of a save. Then nothing is saved.
    @discardableResult
    public func undoChanges(
        by author: String, since snapshot: Snapshot, onConflict policy: UndoPolicy = .error, _ durability: Durability = .durable
    ) async throws -> [UndoConflict] {
        try await flush()
        return try await write(retrying: 5, durability) { try $0.undoChanges(by: author, since: snapshot, policy) }
    }
}

extension ManagedObjectContext {
    /// Undoes an author's saves as unsaved changes of this context, a root without changes.
    fileprivate func undoChanges(by author: String, since snapshot: Snapshot, _ policy: UndoPolicy) throws -> [UndoConflict] {
        precondition(snapshot.store == storeIdentity, "the context \(name) cannot undo changes of another store")
        // It counts as the state in which the store was suspended or closed, after which the author may have saved nothing.
        if let ended = snapshot.state.base as? ClosedSnapshot { throw ended.error }
        prepareRequest()
        layerStack.baseState.state.takeBase()
        let state = layerStack.baseState.state
        let token = HistoryToken(
            configuration.coordinator.store, configuration.writer.newestStored(in: snapshot.state(for: configuration.writer)))
        let known = try configuration.coordinator.historyNow(HistoryRequest(after: token)).map(\.changeSet)
        // Saves that are not on disk have no author yet, so they count as made by others.
        // The snapshot may have saves of other processes that came after the context was made.
        let newest = state.pendingSaves == 0 ? configuration.writer.newestStored(in: state) : state.committed
        let saves = known.filter { $0.generation <= newest }
        let later = state.deferred.reversed().map { $0.changeSet() }
        var inverse = AuthorInverse(context: self, before: snapshot.state.view, policy: policy)
        try inverse.add(AuthorChanges(of: author, in: saves, later: later, derived: capabilities.derived))
        if policy == .error, !inverse.conflicts.isEmpty { throw UndoError.conflicts(inverse.conflicts) }
        return try inverse.conflicts + revert(inverse.step, isRedo: false, policy).0
    }
}

/// The step whose undo reverts an author's changes.
private struct AuthorInverse {
    let context: ManagedObjectContext
    /// The state with the former values.
    let before: LayeredView
    let policy: UndoPolicy
    private(set) var step = UndoStep()
    private(set) var conflicts: [UndoConflict] = []

    private var now: LayeredView { context.layerStack.view }

    init(context: ManagedObjectContext, before: LayeredView, policy: UndoPolicy) {
        self.context = context
        self.before = before
        self.policy = policy
    }

    mutating func add(_ changes: AuthorChanges) throws {
        let addresses = changes.objects.keys.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) }
        for address in addresses {
            if let change = changes.objects[address] { try add(change, of: address) }
        }
        try noteCollections()
        for link in changes.ownLinks.keys.sorted() { try addPairs(of: link, changes) }
        let (context, views) = (context, [now, before])
        conflicts = try conflicts.map { try $0.named(in: context, reading: views) }
    }

    private mutating func add(_ change: AuthorChanges.ObjectChanges, of address: ObjectAddress) throws {
        let (existed, exists) = try (before.exists(address.entity, address.key), now.exists(address.entity, address.key))
        if try isRenamed(change, of: address, in: exists ? now : before, isUpdate: existed == exists) { return }
        switch (existed, exists) {
        case (true, true): try addUpdate(change, of: address)
        case (false, true) where change.isLifeOwn == true:
            let changed = note(.changed, address: address, columns: change.after)
            // The object may have got the former value of its key already: see ``addReplaced(_:_:)``.
            if step.objects[address] == nil, !changed || policy == .force {
                try step.set(.init(before: nil, after: row(address, now)), at: address)
            }
        case (true, false) where change.isLifeOwn == true:
            var columns = change.before
            columns.formUnion(change.contested)
            let unknown = note(.unknownValue, address: address, columns: columns)
            if !unknown || policy == .force { try step.set(.init(before: row(address, before), after: nil), at: address) }
        case (true, false):
            guard let holder = try holder(of: address) else { return add(.deleted, address: address, column: nil) }
            try addReplaced(address, holder)
        case (false, true): note(.unknownValue, address: address, columns: change.own)
        case (false, false):
            // Another author's object: the snapshot does not have it. An object that the author inserted needs no undo.
            if change.isLifeOwn == true, !change.before.isEmpty { add(.unknownValue, address: address, column: nil) }
        }
    }

    /// Returns whether the type of a collection's values was renamed. It keeps its new name, under which others may have written.
    private func isRenamed(
        _ change: AuthorChanges.ObjectChanges, of address: ObjectAddress, in view: LayeredView, isUpdate: Bool
    ) throws -> Bool {
        guard address.entity == context.capabilities.keyedValues, try KeyedColumn.collection(of: row(address, view)) != nil else {
            return false
        }
        return isUpdate || change.isLifeOwn != true || !change.after.isEmpty
    }

    /// Adds the keys of the changed keyed values, and the types under which the former values were written: see ``UndoPlan``.
    private mutating func noteCollections() throws {
        guard let entity = context.capabilities.keyedValues else { return }
        for address in step.objects.keys where address.entity == entity {
            let view = try before.exists(entity, address.key) ? before : now
            if let key = try view.value(entity, key: address.key, column: KeyedColumn.key) {
                step.note(key: key, of: address.key)
            }
        }
        try step.addTypes(entity, in: [before])
    }

    /// Returns the object that has the key of a former keyed value now; nil if there is none, or if the object is no keyed value.
    private func holder(of address: ObjectAddress) throws -> ObjectAddress? {
        guard address.entity == context.capabilities.keyedValues,
            case .data(let key)? = try before.value(address.entity, key: address.key, column: KeyedColumn.key)
        else { return nil }
        return try now.keyedObject(address.entity, key).map { ObjectAddress(entity: address.entity, key: $0) }
    }

    /// Adds the value of a key that others have removed and set again, under another object.
    private mutating func addReplaced(_ address: ObjectAddress, _ holder: ObjectAddress) throws {
        let (old, new) = try (row(address, before), row(holder, now))
        let (wanted, present) = (old[KeyedColumn.value], new[KeyedColumn.value])
        if Value.areSame(wanted, present) { return }
        add(.changed, address: holder, column: KeyedColumn.value, present: present, wanted: wanted)
        guard policy == .force else { return }
        old.clear(KeyedColumn.key)
        new.clear(KeyedColumn.key)
        step.set(.init(before: old, after: new), at: holder)
    }

    private mutating func addUpdate(_ change: AuthorChanges.ObjectChanges, of address: ObjectAddress) throws {
        let (old, new) = try (row(address, before), row(address, now))
        var undone = ColumnSet()
        for column in old.columnIndices {
            var isUndone = change.own.contains(column) && !Value.areSame(old[column], new[column])
            if isUndone, change.before.contains(column) {
                add(.unknownValue, address: address, column: column)
                isUndone = false
            } else if isUndone, change.after.contains(column) || change.contested.contains(column) {
                add(.changed, address: address, column: column, present: new[column], wanted: old[column])
                isUndone = policy == .force
            }
            if isUndone { undone.insert(column) }
        }
        // A member returns to its list at its former place. The position that it has now belongs to the list that it leaves.
        for reference in context.capabilities.rules.ordered[address.entity] where undone.contains(reference.column) {
            undone.insert(reference.position)
        }
        for column in old.columnIndices where !undone.contains(column) {
            old.clear(column)
            new.clear(column)
        }
        if !old.set.isEmpty { step.set(.init(before: old, after: new), at: address) }
    }

    private mutating func addPairs(of link: LinkIndex, _ changes: AuthorChanges) throws {
        let schema = context.storedModel.storeSchema.links[link]
        let relation = Relation.link(link, .forward, destination: schema.destination)
        var skipped: Set<ChangeLog.ChangedPair> = []
        for source in Set((changes.ownLinks[link] ?? []).flatMap(\.sources)).sorted() {
            let (old, new) = try (Set(before.related(relation, to: source)), Set(now.related(relation, to: source)))
            for destination in old.symmetricDifference(new).sorted() {
                let touched = changes.touches(link, from: source, to: destination)
                guard touched.own else { continue }
                let pair = ChangeLog.ChangedPair(link: link, source: source, destination: destination)
                if touched.others {
                    add(.changed, address: ObjectAddress(entity: schema.source, key: source), column: nil)
                    if policy == .skip {
                        skipped.insert(pair)
                        continue
                    }
                }
                step.set(pair, linked: new.contains(destination))
            }
        }
        keepPlaces(of: skipped, link)
    }

    /// Leaves out the positions of pairs that stay as they are. The history lists a position apart from its pair.
    private mutating func keepPlaces(of pairs: Set<ChangeLog.ChangedPair>, _ link: LinkIndex) {
        guard !pairs.isEmpty else { return }
        for order in context.capabilities.rules.orders[link] {
            for (address, change) in step.objects where address.entity == order.number {
                guard let row = change.after ?? change.before, let owner = row[OrderEntity.owner].referenceKey,
                    let member = row[OrderEntity.member].referenceKey
                else { continue }
                if pairs.contains(order.pair(owner: owner, member: member)) { step.set(nil, at: address) }
            }
        }
    }

    private func row(_ address: ObjectAddress, _ view: LayeredView) throws -> Row {
        let count = context.storedModel.entities[address.entity].columns.count
        let row = Row.make(kind: .update, layer: 0, columnCount: count)
        for column in row.columnIndices {
            row[column] = try view.value(address.entity, key: address.key, column: column) ?? .null
        }
        return row
    }

    // MARK: Conflicts

    /// Adds a conflict per column of the object. Returns whether there are any.
    @discardableResult
    private mutating func note(_ kind: UndoConflict.Kind, address: ObjectAddress, columns: ColumnSet) -> Bool {
        let known = context.storedModel.entities[address.entity].columnIndices.filter(columns.contains)
        for column in known { add(kind, address: address, column: column) }
        return !known.isEmpty
    }

    private mutating func add(
        _ kind: UndoConflict.Kind, address: ObjectAddress, column: ColumnIndex?, present: Value? = nil, wanted: Value? = nil
    ) {
        var conflict = UndoConflict(kind, at: address, column: column, in: context)
        conflict.present = present
        conflict.wanted = wanted
        conflicts.append(conflict)
    }
}
