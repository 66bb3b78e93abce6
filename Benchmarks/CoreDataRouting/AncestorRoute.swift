internal import Platform
import ObjectGraph
import StoreInterface
import StoreModel

/// Routes requests as Core Data does: a context asks its parent, which answers from its own changes, from the rows that it has kept,
/// or by asking its own parent. For comparison only (``Routing/ancestors``).
///
/// Where Core Data's way is not known, this takes the cheaper one: a request for an object returns the whole row, a parent keeps the
/// rows that pass through it in both directions, and a save blocks only the executor of the root, which waits for the disk.
final class AncestorRoute: RequestRoute {
    /// 0 in a root, 1 in its children.
    let level: Int
    let rows: KeptRows
    let hops: RequestHops
    private let snapshot: AncestorSnapshot?
    private let hasChildren = Atomic(false)

    /// The route of a root.
    init(entityCount: Int, hops: RequestHops) {
        level = 0
        rows = KeptRows(entityCount: entityCount)
        self.hops = hops
        snapshot = nil
    }

    private init(level: Int, parent: ContextLink, schema: StoreSchema, hops: RequestHops) {
        self.level = level
        self.hops = hops
        rows = KeptRows(entityCount: schema.entities.count)
        snapshot = AncestorSnapshot(parent: parent, schema: schema, level: level, rows: rows, hops: hops)
    }

    var base: (any StoreSnapshot)? { snapshot }

    func routeForChild(of context: ManagedObjectContext) -> any RequestRoute {
        hasChildren.store(true, ordering: .relaxed)
        return AncestorRoute(
            level: level + 1, parent: context.link, schema: context.storedModel.storeSchema,
            hops: hops)
    }

    func row(_ entity: EntityIndex, _ key: ObjectKey, in context: ManagedObjectContext) throws -> [Value]? {
        if let snapshot { return try snapshot.row(entity, key) }
        if let known = rows.row(entity, key) { return known }
        let found = try ManagedObjectContext.composed(
            entity, key: key, of: context.deferredLayers, model: context.storedModel
        ) {
            try context.storedRow(entity, key)
        }
        if let found { rows.keep(found, entity: entity, key: key, at: rows.revision) }
        return found
    }

    func forget(_ changes: [ChangeSet]?) {
        guard let changes else { return rows.removeAll() }
        for change in changes { rows.remove(change) }
    }

    func didSave(_ layers: [Layer], accepted: ChangeSet?) {
        rows.adopt(layers, keepingInserted: hasChildren.load(ordering: .relaxed), accepted: accepted)
    }

    func merge(child push: ChildChanges, in parent: ManagedObjectContext) throws -> ParentState {
        hops.add(.save, level: level + 1)
        hops.serve(.save, level: level + 1, objects: push.layer.weight)
        return try parent.takeMaterialised(push)
    }

    func mergeThrough(
        _ pushes: [ChildChanges], durability: Durability, in parent: ManagedObjectContext,
        _ completion: @escaping (Result<ParentState, any Error>) -> Void
    ) {
        for push in pushes {
            hops.add(.save, level: level + 1)
            hops.serve(.save, level: level + 1, objects: push.layer.weight)
        }
        parent.saveMaterialised(pushes, durability: durability, completion)
    }

    /// Blocks the executor of the root until the save is on disk, as `NSManagedObjectContext.save()` does.
    func write<Outcome>(_ layers: [Layer], _ submit: () throws -> Outcome) throws -> Outcome {
        hops.serve(.save, level: 0, objects: layers.reduce(0) { $0 + $1.weight })
        return try submit()
    }
}

extension ManagedObjectContext {
    /// All values of an object as the context shows it; nil if there is no such object. For a child's request.
    ///
    /// A closed context answers from its unsaved changes alone, because its children read properties until they are closed too.
    func wholeRow(_ entity: EntityIndex, _ key: ObjectKey) throws -> [Value]? {
        try Self.composed(entity, key: key, of: unsavedLayers, model: storedModel) {
            try route?.row(entity, key, in: self)
        }
    }

    /// An object's values in the store's snapshot.
    fileprivate func storedRow(_ entity: EntityIndex, _ key: ObjectKey) throws -> [Value]? {
        let slot = PageAddress.slot(of: key)
        guard let page = try storedPage(entity, PageAddress.page(of: key)),
            try page.contains(slot)
        else {
            return nil
        }
        return try storedModel.entities[entity].columnIndices.map { try page.value(slot, $0) }
    }

    /// Returns an object's values with the changes of layers, newest first, over the row below. Reads that row only if needed.
    fileprivate static func composed(
        _ entity: EntityIndex, key: ObjectKey, of layers: some Sequence<Layer>, model: Model, below: () throws -> [Value]?
    ) rethrows -> [Value]? {
        var newer: [ColumnIndex: Value] = [:]
        for layer in layers {
            guard let row = layer.row(entity, key) else { continue }
            if row.kind == .delete { return nil }
            row.set.forEach { if newer[$0] == nil { newer[$0] = row[$0] } }
            if row.kind == .insert { return model.entities[entity].columnIndices.map { newer[$0] ?? .null } }
        }
        guard var values = try below() else { return nil }
        for (column, value) in newer { values[column] = value }
        return values
    }
}
