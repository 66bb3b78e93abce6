import StoreInterface
import StoreModel

/// The unsaved positions that a context has given to members of lists, each with the list. Positions of objects that were put into the list
/// at the same time are not among them: they belong to the reference beside them.
struct UnsavedPositions: Sendable {
    struct Place: Hashable, Sendable {
        var object: ObjectAddress
        var reference: OrderedReference
    }

    struct Position: Sendable {
        /// The object that has the list.
        var list: ObjectKey?
        var value: Value
    }

    private(set) var all: [Place: Position] = [:]

    var isEmpty: Bool { all.isEmpty }

    mutating func note(_ place: Place, _ position: Position) { all[place] = position }

    mutating func formUnion(_ others: UnsavedPositions) {
        if !others.isEmpty { all.merge(others.all) { $1 } }
    }

    mutating func removeAll() { all = [:] }
}

/// A position has a meaning only in its list. If another save moves the object to another list, its unsaved position is dropped (S046): by
/// the merge that shows the other list, or by the next save.
extension ManagedObjectContext {
    /// Runs a merge that the program has asked for.
    func merging<R>(_ merge: () -> R) -> R {
        phase.isMerging = true
        defer { phase.isMerging = false }
        return merge()
    }

    /// Notes the positions of a layer over the context's changes, which an undo has made.
    func notePositions(of layer: Layer) {
        let ordered = capabilities.rules.ordered
        for entity in layer.entityIndices where !ordered[entity].isEmpty {
            for (number, page) in layer.entity(entity)?.pages ?? [:] {
                for slot in SlotIterator(page.updated) {
                    guard let row = page[slot] else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    for reference in ordered[entity] where row.isSet(reference.position) && !row.isSet(reference.column) {
                        let list = readBelow(entity, key: key, column: reference.column)?.referenceKey
                        tracker.positions.note(
                            .init(object: ObjectAddress(entity: entity, key: key), reference: reference),
                            .init(list: list, value: row[reference.position]))
                    }
                }
            }
        }
    }

    /// Drops the positions before a save, and returns whether there were any. After a move that was no merge, an object may be in
    /// conflict: then the policy decides.
    func dropMovedPositions(beforeSaveBy policy: MergePolicy) -> Bool {
        let maySettle =
            switch policy {
            case .error, .custom: false
            case .storeTrump, .objectTrump, .overwrite, .rollback: true
            }
        return dropMovedPositions { maySettle || tracker.checks.unmerged[$0] == nil }
    }

    /// Drops the positions whose objects are in other lists now, and returns whether there were any. O(unsaved positions).
    @discardableResult
    func dropMovedPositions(where mayDrop: (ObjectAddress) -> Bool = { _ in true }) -> Bool {
        if tracker.positions.isEmpty { return false }
        if observed.isEmpty { return dropEachMovedPosition(where: mayDrop) }
        return changingObserved { dropEachMovedPosition(where: mayDrop) }
    }

    private func dropEachMovedPosition(where mayDrop: (ObjectAddress) -> Bool) -> Bool {
        var isDropped = false
        for (place, position) in tracker.positions.all {
            let (entity, key, reference) = (place.object.entity, place.object.key, place.reference)
            let rows = layerStack.notInFlight.reversed().compactMap { $0.row(entity, key) }
            guard let newest = rows.first(where: { $0.isSet(reference.position) }), newest[reference.position] == position.value,
                rows.allSatisfy({ $0.kind == .update && !$0.isSet(reference.column) }),
                let list = readBelow(entity, key: key, column: reference.column), list.referenceKey != position.list,
                mayDrop(place.object)
            else { continue }
            isDropped = true
            // The object moves within the list that it is in now.
            if let owner = list.referenceKey { willArrange(entity, reference, of: owner) }
            unseal()
            layerStack.top.clear([reference.position], of: entity, key: key)
            tracker.log.note(entity, key)
            tracker.listEnds.removeAll()
            guard let object = registry.object(entity, key) else { continue }
            object.row = newestOwnRow(entity, key)
            if object.row == nil, !retainsRegisteredObjects { registry.release(object) }
        }
        return isDropped
    }

    /// Notifies the observers of a list that one of its members gets another position.
    private func willArrange(_ entity: EntityIndex, _ reference: OrderedReference, of owner: ObjectKey) {
        if observed.isEmpty { return }
        for relationship in storedModel.entities[entity].relationships {
            guard case .toOne(reference.column) = relationship.kind, let inverse = relationship.inverse else { continue }
            let list = storedModel.entities[relationship.destination].relationships[inverse]
            willChange(relationship.destination, key: owner, property: list.observed)
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
        return kept.map(push.replacing(with:)) ?? push
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
