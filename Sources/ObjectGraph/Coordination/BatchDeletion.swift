import StoreInterface

/// The layer that deletes objects and what their delete rules ask for, without making an object.
struct BatchDeletion {
    private let model: Model
    private let view: LayeredView
    private let store: StoreIdentity
    private let layer: Layer
    /// By entity: deleted, and followed already.
    private var deleted: [Set<ObjectKey>]
    /// A reference column that leads to an entity, and what becomes of the objects that have it.
    private struct Referrer {
        var entity: Int
        var column: Int
        var rule: DeleteRule
        /// The relationship at the far end that has the rule, for errors.
        var name: String
    }

    private let referrers: [[Referrer]]

    init(_ model: Model, _ state: StoreState, _ store: StoreIdentity) {
        self.model = model
        self.store = store
        view = state.view
        layer = Layer(schema: model.storeSchema)
        deleted = model.entities.map { _ in [] }
        referrers = model.entities.map { entity in
            model.entities.flatMap { other in
                other.relationships.compactMap { relationship -> Referrer? in
                    guard relationship.destination == entity.number, case .toOne(let column) = relationship.kind else {
                        return nil
                    }
                    // The rule stands at the end that is deleted; without an inverse, references are forgotten.
                    let back = relationship.inverse.map { entity.relationships[$0] }
                    return Referrer(
                        entity: other.number, column: column, rule: back?.deleteRule ?? .nullify,
                        name: back?.name ?? relationship.name)
                }
            }
        }
    }

    /// - Throws: `SaveError.deleteDenied`.
    mutating func delete(_ entity: Int, _ keys: [ObjectKey]) throws -> Layer {
        var waiting = keys.map { (entity, $0) }
        for key in keys { deleted[entity].insert(key) }
        var denied: [(entity: Int, key: ObjectKey, name: String, by: Int, blocking: [ObjectKey])] = []
        while let (entity, key) = waiting.popLast() {
            layer.put(
                Row.make(kind: .delete, layer: layer.id, columnCount: model.entities[entity].columns.count), entity: entity,
                key: key)
            for referrer in referrers[entity] where referrer.rule != .noAction {
                let found = try view.related(.referrers(entity: referrer.entity, column: referrer.column), to: key)
                if referrer.rule == .deny {
                    if !found.isEmpty { denied.append((entity, key, referrer.name, referrer.entity, found)) }
                } else {
                    for other in found { follow(referrer, other, &waiting) }
                }
            }
            for relationship in model.entities[entity].relationships {
                try followForward(relationship, entity, key, &waiting, &denied)
            }
        }
        // What goes in the same batch blocks nothing.
        for case let (entity, key, name, other, keys) in denied {
            let blocking = keys.filter { !deleted[other].contains($0) }
            guard blocking.isEmpty else {
                throw SaveError.deleteDenied(
                    object: ObjectID(store: store, entity: entity, key: key), relationship: name,
                    blocking: blocking.map { ObjectID(store: store, entity: other, key: $0) })
            }
        }
        return layer
    }

    private mutating func follow(_ referrer: Referrer, _ key: ObjectKey, _ waiting: inout [(Int, ObjectKey)]) {
        if deleted[referrer.entity].contains(key) { return }
        if referrer.rule == .cascade {
            deleted[referrer.entity].insert(key)
            waiting.append((referrer.entity, key))
            return
        }
        let known = layer.row(referrer.entity, key)
        let row =
            known
            ?? Row.make(kind: .update, layer: layer.id, columnCount: model.entities[referrer.entity].columns.count)
        row[referrer.column] = .null
        if known == nil { layer.put(row, entity: referrer.entity, key: key) }
    }

    /// Cascade and deny through what the object itself holds: a reference of its own, or a link. The store takes links away itself.
    private mutating func followForward(
        _ relationship: Relationship, _ entity: Int, _ key: ObjectKey, _ waiting: inout [(Int, ObjectKey)],
        _ denied: inout [(entity: Int, key: ObjectKey, name: String, by: Int, blocking: [ObjectKey])]
    ) throws {
        guard relationship.deleteRule == .cascade || relationship.deleteRule == .deny else { return }
        let found: [ObjectKey]
        switch relationship.kind {
        case .toOne(let column): found = try view.value(entity, key, column)?.referenceKey.map { [$0] } ?? []
        case .toMany(.referrers): return
        case .toMany(let relation): found = try view.related(relation, to: key)
        }
        if relationship.deleteRule == .deny {
            if !found.isEmpty { denied.append((entity, key, relationship.name, relationship.destination, found)) }
            return
        }
        for other in found where deleted[relationship.destination].insert(other).inserted {
            waiting.append((relationship.destination, other))
        }
    }
}
