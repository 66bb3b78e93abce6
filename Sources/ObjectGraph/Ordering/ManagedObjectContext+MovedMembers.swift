import StoreInterface
import StoreModel

/// An unsaved position of an object in a list, with the list that it belongs to: this context has not changed the reference.
struct UnsavedPosition {
    var object: ObjectAddress
    var reference: OrderedReference
    var list: Value?
}

/// A position has a meaning only in its list. If the object is in another list below the unsaved changes, the position is dropped (S046).
extension ManagedObjectContext {
    /// Returns the unsaved positions in lists that saves may have taken the object out of. Nothing without ordered relationships.
    ///
    /// - Parameter changes: The saves; nil if they are unknown.
    func unsavedPositions(_ changes: [ChangeSet]?) -> [UnsavedPosition] {
        let ordered = capabilities.rules.ordered
        guard hasUnsavedLayers, capabilities.rules.hasOrdered else { return [] }
        let layers = layerStack.notInFlight
        var found: [UnsavedPosition] = []
        func add(_ entity: EntityIndex, page: PageNumber, slots: UInt64) {
            for slot in SlotIterator(slots) {
                let key = PageAddress.key(page: page, slot: slot)
                let set = layers.reduce(into: ColumnSet()) { if let row = $1.row(entity, key) { $0.formUnion(row.set) } }
                for reference in ordered[entity] where set.contains(reference.position) && !set.contains(reference.column) {
                    let list = readBelow(entity, key: key, column: reference.column)
                    found.append(.init(object: .init(entity: entity, key: key), reference: reference, list: list))
                }
            }
        }
        for entity in ordered.indices(as: EntityIndex.self) where !ordered[entity].isEmpty {
            let own = layers.compactMap { $0.entity(entity) }
            guard let changes else {
                for (number, page) in own.flatMap(\.pages) { add(entity, page: number, slots: page.updated) }
                continue
            }
            for page in changes.flatMap({ $0.change(of: entity)?.pages ?? [] }) where page.updated != 0 {
                let slots = own.reduce(0) { $0 | ($1.page(page.number)?.updated ?? 0) }
                add(entity, page: page.number, slots: slots & page.updated)
            }
        }
        return found
    }

    /// Drops the positions whose objects are in other lists now.
    func dropMoved(_ positions: [UnsavedPosition]) {
        for position in positions {
            let (entity, key) = (position.object.entity, position.object.key)
            let list = readBelow(entity, key: key, column: position.reference.column)
            guard let list, !Value.areSame(list, position.list) else { continue }
            unseal()
            layerStack.top.clear([position.reference.position], of: entity, key: key)
            tracker.log.note(entity, key)
            tracker.listEnds.removeAll()
            registry.object(entity, key)?.row = newestOwnRow(entity, key)
        }
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
