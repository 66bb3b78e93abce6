import StoreInterface
import StoreModel

/// The unsaved positions in lists that a context has changed, each with the list that it belongs to.
struct UnsavedPositions {
    struct Place: Hashable {
        var object: ObjectAddress
        var reference: OrderedReference
    }

    /// The references to the lists, as the context showed them before its first move.
    private(set) var lists: [Place: Value?] = [:]

    mutating func note(_ place: Place, in list: Value?) { if lists[place] == nil { lists[place] = .some(list) } }

    mutating func removeAll() { lists = [:] }
}

/// A position has a meaning only in its list. If a merge moves the object to another list, its unsaved position is dropped (S046). After a
/// move that is no merge, the next save decides by its policy, as about every conflict.
extension ManagedObjectContext {
    /// Makes a merge that the program has asked for.
    func mergingPositions<R>(_ merge: () -> R) -> R {
        notePositions(nil)
        defer { dropMovedPositions() }
        return merge()
    }

    /// Notes the lists of the unsaved positions before a move. A running save may return the positions that it has taken, so they are
    /// noted too. Nothing without ordered relationships.
    ///
    /// - Parameter changes: The saves between the two states; nil if they are unknown.
    func notePositions(_ changes: [ChangeSet]?) {
        let ordered = capabilities.rules.ordered
        guard capabilities.rules.hasOrdered, hasUnsavedLayers else { return }
        let layers = layerStack.sealed + [layerStack.top]
        func note(_ entity: EntityIndex, page: PageNumber, slots: UInt64) {
            for slot in SlotIterator(slots) {
                let key = PageAddress.key(page: page, slot: slot)
                for reference in ordered[entity]
                where layers.contains(where: { $0.row(entity, key)?.isSet(reference.position) == true }) {
                    tracker.positions.note(
                        .init(object: .init(entity: entity, key: key), reference: reference),
                        in: readBelow(entity, key: key, column: reference.column))
                }
            }
        }
        for entity in ordered.indices(as: EntityIndex.self) where !ordered[entity].isEmpty {
            let own = layers.compactMap { $0.entity(entity) }
            guard let changes else {
                for (number, page) in own.flatMap(\.pages) { note(entity, page: number, slots: page.updated) }
                continue
            }
            for page in changes.flatMap({ $0.change(of: entity)?.pages ?? [] }) {
                let slots = own.reduce(0) { $0 | ($1.page(page.number)?.updated ?? 0) }
                note(entity, page: page.number, slots: slots & (page.updated | page.inserted))
            }
        }
    }

    /// Drops the positions whose objects are in other lists now. Call it after each move, and at the end of a save.
    func dropMovedPositions() {
        for (place, list) in tracker.positions.lists {
            let (entity, key, reference) = (place.object.entity, place.object.key, place.reference)
            guard let now = readBelow(entity, key: key, column: reference.column), !Value.areSame(now, list),
                layerStack.notInFlight.contains(where: { $0.row(entity, key)?.isSet(reference.position) == true }),
                !layerStack.notInFlight.contains(where: { $0.row(entity, key)?.isSet(reference.column) == true })
            else { continue }
            unseal()
            layerStack.top.clear([reference.position], of: entity, key: key)
            tracker.log.note(entity, key)
            tracker.listEnds.removeAll()
            guard let object = registry.object(entity, key) else { continue }
            object.row = newestOwnRow(entity, key)
            if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
        }
        if !layerStack.hasTakenLayers { tracker.positions.removeAll() }
    }

    /// Returns a child's changes without the positions of objects that are in another list than the child has seen.
    ///
    /// - Parameter earlier: Layers that are saved before this push, newest first.
    func withoutMovedPositions(_ push: ChildChanges, after earlier: [Layer]) -> ChildChanges {
        let ordered = capabilities.rules.ordered
        guard capabilities.rules.hasOrdered else { return push }
        let present = LayeredView(base: layerStack.view.base, layers: earlier + layerStack.view.layers)
        func isMoved(_ entity: EntityIndex, key: ObjectKey, row: Row, reference: OrderedReference) throws -> Bool {
            guard row.isSet(reference.position), !row.isSet(reference.column),
                let list = try present.value(entity, key: key, column: reference.column)
            else { return false }
            return try !Value.areSame(list, push.shown.value(entity, key: key, column: reference.column))
        }
        var kept: Layer?
        for change in push.changes.entities where !ordered[change.entity].isEmpty {
            for key in change.updatedKeys {
                guard let row = push.layer.row(change.entity, key), row.kind == .update else { continue }
                let moved = trapOnStoreError {
                    try ordered[change.entity].filter { try isMoved(change.entity, key: key, row: row, reference: $0) }
                }
                if moved.isEmpty { continue }
                let layer = kept ?? Layer(copying: push.layer)
                layer.clear(moved.map(\.position), of: change.entity, key: key)
                kept = layer
            }
        }
        guard let kept else { return push }
        kept.seal()
        var rest = push
        rest.layer = kept
        rest.changes = kept.changeSet(metadata: push.metadata)
        return rest
    }
}

extension Layer {
    /// Removes values of an updated object, and the whole update if no others are left.
    fileprivate func clear(_ columns: [ColumnIndex], of entity: EntityIndex, key: ObjectKey) {
        guard let row = row(entity, key) else { return }
        let rest = row.copy(layer: id)
        for column in columns { rest.clear(column) }
        if rest.set.isEmpty { remove(entity: entity, key: key) } else { put(rest, entity: entity, key: key) }
    }
}
