import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keys that two contexts have inserted without knowing of each other.
extension ManagedObjectContext {
    /// Moves each unsaved change of a key to the entry that the base state has meanwhile under that key, so that a key has one entry
    /// (S192), and forgets removals of entries that are gone there (S056). One look-up per unsaved inserted or removed key, if a save has
    /// inserted or removed keys.
    ///
    /// - Parameters:
    ///   - changes: The saves that the base state has gained; nil if they are unknown.
    ///   - keepingRemovals: Whether the base state may be older than the removals, so that their entries may come back.
    func settleInsertedKeys(after changes: [ChangeSet]?, keepingRemovals: Bool = false) {
        guard let entity = capabilities.keyedValues else { return }
        let mayDiffer = changes?.contains { $0.change(of: entity)?.pages.contains { $0.inserted | $0.deleted != 0 } ?? false }
        if mayDiffer == false { return }
        let own = layerStack.notInFlight
        let below = LayeredView(base: layerStack.view.base, layers: Array(layerStack.view.layers.dropFirst(own.count)))
        func moved(_ layer: Layer) -> [LayeredView.MovedKey] {
            trapOnStoreError { try below.movedKeys(of: layer, entity) }
        }
        func gone(_ layer: Layer) -> [ObjectKey] {
            if keepingRemovals { return [] }
            var gone: [ObjectKey] = []
            layer.forEachRow(of: entity, \.deleted) { object, _ in
                if trapOnStoreError({ try !below.exists(entity, object) }) { gone.append(object) }
            }
            return gone
        }
        guard own.contains(where: { !moved($0).isEmpty || !gone($0).isEmpty }) else { return }
        unseal()
        for change in moved(layerStack.top) {
            if let name = change.collection {
                layerStack.top.remove(entity: entity, key: change.from)
                let theirs = trapOnStoreError { try below.value(entity, key: change.to, column: KeyedColumn.value) }
                noteTypes(of: name, entity, ours: change.row[KeyedColumn.value], theirs: theirs)
                continue
            }
            show(nil, entity: entity, key: change.from)
            let row = layerStack.top.move(change, entity)
            show(row.kind == .delete ? nil : row, entity: entity, key: change.to)
        }
        for object in gone(layerStack.top) {
            layerStack.top.remove(entity: entity, key: object)
            show(nil, entity: entity, key: object)
        }
    }

    /// Drops the unsaved updates of entries that others have removed, if the context sets or removes their keys again. It does not show
    /// these entries any more. Otherwise the next save could write the older value, or two entries with one key (S192). One look-up per key.
    ///
    /// - Returns: Whether there were any.
    @discardableResult
    func dropHiddenUpdates(of keys: some Sequence<Value>) -> Bool {
        guard !tracker.updatesOfDeleted.keyed.isEmpty, let entity = keyedEntity else { return false }
        let hidden = keys.compactMap { tracker.updatesOfDeleted.keyed[$0] }.filter { place in
            tracker.updatesOfDeleted.changed[place] != nil
                && layerStack.pendingKind(entity, place.key, inFlight: false) == .update
                && trapOnStoreError { try !exists(entity, place.key) }
        }
        guard !hidden.isEmpty else { return false }
        withoutUndo {
            unseal()
            for place in hidden {
                layerStack.top.remove(entity: entity, key: place.key)
                // A running save has the whole row, and may give it back.
                if !layerStack.taken.contains(where: { $0.row(entity, place.key) != nil }) {
                    tracker.updatesOfDeleted.forget(place)
                }
                show(nil, entity: entity, key: place.key)
            }
        }
        return true
    }

    /// Drops the hidden updates of keys that a child has inserted. Returns whether there were any.
    func dropHiddenUpdates(replacedBy push: ChildChanges) -> Bool {
        guard !tracker.updatesOfDeleted.keyed.isEmpty, let entity = keyedEntity else { return false }
        var inserted: [Value] = []
        push.layer.forEachRow(of: entity, \.inserted) { _, row in inserted.append(row[KeyedColumn.key]) }
        return dropHiddenUpdates(of: inserted)
    }

    /// Makes the next save throw if another context has recorded other types of a collection, and unsaved entries have ours. Later writes
    /// are checked against the types of the other context.
    private func noteTypes(of name: String, _ entity: EntityIndex, ours: Value, theirs: Value?) {
        guard case .data(let ours) = ours, case .data(let theirs) = theirs, let types = CollectionTypes(bytes: ours)
        else { return }
        do { try types.check(theirs, name) } catch {
            tracker.keyed.recorded[CollectionName(name)] = nil
            tracker.keyed.records[CollectionName(name)] = nil
            for key in layerStack.top.keysOfEntries(entity, of: name) { tracker.keyed.replaced[key] = error }
        }
    }

    /// Forgets the errors of the keys that a child has set or removed.
    func forgetErrors(ofKeysIn layer: Layer) {
        guard !tracker.keyed.refused.isEmpty || !tracker.keyed.replaced.isEmpty, let entity = keyedEntity else { return }
        layer.forEachRow(of: entity, \.touched) { _, row in
            if row.isSet(KeyedColumn.key), case .data(let key) = row[KeyedColumn.key] { tracker.keyed.forgetErrors(of: key) }
        }
    }

    /// Throws the error of a value that could not be stored, or of an unsaved entry whose types another context has replaced.
    func checkKeyedChanges() throws {
        try tracker.keyed.check()
        guard !tracker.keyed.replaced.isEmpty, let entity = keyedEntity else { return }
        for (key, error) in tracker.keyed.replaced.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            guard let object = try layerStack.view.keyedObject(entity, key) else { continue }
            if layerStack.pendingKind(entity, object) != nil { throw error }
        }
        tracker.keyed.replaced = [:]
    }

    private func show(_ row: Row?, entity: EntityIndex, key: ObjectKey) {
        tracker.log.note(entity, key)
        guard let known = registry.object(entity, key) else { return }
        known.row = row
        known.isDeletedHere = row == nil
        if row != nil { registry.retain(known) }
    }

    /// - Parameter earlier: The changes of other children that are saved with this push, before it.
    /// - Throws: ``CollectionError/otherTypes(collection:stored:requested:)`` if a child has written entries under other types of a new
    ///   collection than those of this context or an earlier child, or under types that this context has replaced.
    func checkTypes(in push: ChildChanges, after earlier: [Layer]) throws {
        guard let entity = capabilities.keyedValues else { return }
        if push.parentViewRevision != layerStack.revision {
            try layerStack.view.checkReplacedTypes(of: push.layer, entity, in: push.shown)
        }
        for (name, bytes) in push.layer.recordedTypes(entity) {
            // Without entries, the record gives way: see ``settledKeys(_:after:)``.
            guard let types = CollectionTypes(bytes: bytes), push.layer.hasEntries(entity, of: name) else { continue }
            try checkCollection(name, types)
            for (other, known) in earlier.flatMap({ $0.recordedTypes(entity) })
            where CollectionName(other) == CollectionName(name) {
                try types.check(known, name)
            }
        }
    }

    /// Returns a child's changes with each key moved to the object that has the key in this context (S075), and with the types of
    /// collections that this context does not have any more.
    ///
    /// - Parameter pushed: Layers that are saved before this push, newest first.
    func settledKeys(_ push: ChildChanges, after pushed: [Layer] = []) -> ChildChanges {
        guard let entity = capabilities.keyedValues, push.layer.entity(entity) != nil else { return push }
        let view = LayeredView(base: layerStack.view.base, layers: pushed + layerStack.view.layers)
        let moving = trapOnStoreError { try view.movingKeys(of: push.layer, entity) }
        let missing = trapOnStoreError { try view.missingTypes(of: moving ?? push.layer, entity, in: push.shown) }
        if moving == nil, missing.isEmpty { return push }
        let layer = moving ?? Layer(copying: push.layer)
        // A new object each, because this context may have an unsaved deletion of the old one.
        for types in missing { layer.put(types.row.copy(layer: layer.id), entity: entity, key: nextKey(entity)) }
        return push.replacing(with: layer)
    }
}

extension LayeredView {
    /// A changed keyed value whose key belongs to another object in this view.
    struct MovedKey {
        var row: Row
        var from: ObjectKey
        var to: ObjectKey

        /// The collection whose types the value records; nil for an entry.
        var collection: String? { KeyedColumn.collection(of: row) }
    }

    /// Returns the changes of a layer whose key belongs to another object in this view: both sides have inserted the key, or it was removed
    /// and inserted again here. One look-up per inserted key, and one per changed object that is not here.
    func movedKeys(of layer: Layer, _ entity: EntityIndex) throws -> [MovedKey] {
        guard let changes = layer.entity(entity) else { return [] }
        var moved: [MovedKey] = []
        for number in changes.sortedPageNumbers {
            guard let page = changes.page(number) else { continue }
            for slot in SlotIterator(page.touched) {
                let object = PageAddress.key(page: number, slot: slot)
                guard let row = page[slot], row.isSet(KeyedColumn.key), case .data(let key) = row[KeyedColumn.key],
                    try row.kind == .insert || !exists(entity, object), let holder = try keyedObject(entity, key),
                    holder != object, layer.row(entity, holder) == nil
                else { continue }
                moved.append(MovedKey(row: row, from: object, to: holder))
            }
        }
        // A key that was removed and set again under another object is set. The removal is of an object that is gone.
        let set = Set(moved.lazy.filter { $0.row.kind != .delete }.map(\.to))
        return set.isEmpty ? moved : moved.filter { $0.row.kind != .delete || !set.contains($0.to) }
    }

    fileprivate func movingKeys(of layer: Layer, _ entity: EntityIndex) throws -> Layer? {
        let moved = try movedKeys(of: layer, entity)
        guard !moved.isEmpty else { return nil }
        let copy = Layer(copying: layer)
        for change in moved {
            // The types that are recorded here are the same, or no entry of the layer needs the other ones.
            if change.collection != nil, change.row.kind == .insert {
                copy.remove(entity: entity, key: change.from)
            } else {
                copy.move(change, entity)
            }
        }
        return copy
    }
}

extension Layer {
    /// Returns the collections whose types the layer records for the first time, with the bytes of the records.
    fileprivate func recordedTypes(_ entity: EntityIndex) -> [(name: String, bytes: Data)] {
        var recorded: [(name: String, bytes: Data)] = []
        forEachRow(of: entity, \.inserted) { _, row in
            if let name = KeyedColumn.collection(of: row), case .data(let bytes) = row[KeyedColumn.value] {
                recorded.append((name, bytes))
            }
        }
        return recorded
    }

    /// Applies a change to the object that has the key now. Returns the row of that object.
    @discardableResult
    func move(_ change: LayeredView.MovedKey, _ entity: EntityIndex) -> Row {
        let row = change.row.copy(layer: id)
        row.kind = change.row.kind == .delete ? .delete : .update
        remove(entity: entity, key: change.from)
        put(row, entity: entity, key: change.to)
        return row
    }
}
