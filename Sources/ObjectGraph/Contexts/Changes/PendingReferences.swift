import StoreInterface
import StoreModel

/// A reader of unsaved changes alone, without the state below them. Finds the changes that refer to an object; never reads the store.
struct PendingReferences: ObjectReader {
    let schema: StoreSchema
    /// The layers, newest first.
    let layers: [Layer]
    /// The objects of which the layers may contain updates although they are deleted below (S106). No relationship leads to these.
    let gone: Set<ObjectAddress>

    private func newest(_ entity: EntityIndex, _ key: ObjectKey) -> RowKind? {
        layers.newestRow(entity, key)?.kind
    }

    /// Returns nil also if no change sets the column.
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) -> Value? {
        let answer = layers.lookup(entity, page: key.page, slot: key.slot, column)
        return if case .row(let row) = answer, row.isSet(column) { row[column] } else { nil }
    }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        switch newest(entity, key) {
        case .insert: true
        case .delete: false
        case .update, nil: !gone.contains(ObjectAddress(entity: entity, key: key))
        }
    }

    func version(_ entity: EntityIndex, _ key: ObjectKey) -> Generation? { exists(entity, key) ? 0 : nil }

    func related(_ relation: Relation, to key: ObjectKey) -> [ObjectKey] {
        var found: Set<ObjectKey> = []
        switch relation {
        case .referrers(let entity, let column):
            let wanted = Value.reference(key)
            for layer in layers {
                for other in layer.candidates(entity: entity, column: column, value: wanted)
                where value(entity, key: other, column: column) == wanted && exists(entity, other) { found.insert(other) }
            }
        case .link(let link, let direction, let destination):
            var verdicts: [ObjectKey: Bool] = [:]
            for layer in layers {
                let pairs = direction == .forward ? layer.links[link].forward[key] : layer.links[link].backward[key]
                verdicts.merge(pairs ?? [:]) { newer, _ in newer }
            }
            for case let (other, true) in verdicts where exists(destination, other) { found.insert(other) }
        }
        return found.sorted()
    }
}

extension RelationshipRules {
    /// Returns the changes that a layer's deletions require in older unsaved layers, which the layer's owner did not see. Returns
    /// nil if there are none.
    ///
    /// References that the layer itself set after a deletion stay, because a save reports them. O(deletions · layers).
    ///
    /// - Parameters:
    ///   - layers: The older layers, oldest first.
    ///   - gone: The objects of which the older layers contain updates although they are deleted below.
    func consequences(
        of newest: Layer, over layers: [Layer], without gone: Set<ObjectAddress>, _ schema: StoreSchema
    ) -> Layer? {
        guard newest.mayDelete, !layers.isEmpty else { return nil }
        let made = Layer(schema: schema)
        let reader = PendingReferences(schema: schema, layers: [made, newest] + layers.reversed(), gone: gone)
        let older = PendingReferences(schema: schema, layers: layers.reversed(), gone: gone)
        var waiting = newest.deletions
        while let (entity, key) = waiting.popLast() {
            // The references of the deleted object itself. Its deletion keeps those that the owner of the layer set before it.
            let own = { (column: ColumnIndex) -> ObjectKey? in
                if let row = newest.row(entity, key), row.isSet(column) { return row[column].referenceKey }
                return older.value(entity, key: key, column: column)?.referenceKey
            }
            // Reading from layers does not throw.
            for consequence in (try? consequences(of: entity, key, in: reader, own: own)) ?? [] {
                switch consequence {
                case .clear(let other, let otherKey, let column):
                    guard newest.row(other, otherKey)?.isSet(column) != true else { continue }
                    let known = made.row(other, otherKey)
                    let row = known ?? Row.make(kind: .update, layer: made.id, columnCount: schema.entities[other].columns.count)
                    row[column] = .null
                    made.put(row, entity: other, key: otherKey)
                case .delete(let other, let otherKey, let column):
                    if let column, newest.row(other, otherKey)?.isSet(column) == true { continue }
                    guard reader.exists(other, otherKey) else { continue }
                    let columnCount = schema.entities[other].columns.count
                    made.put(Row.make(kind: .delete, layer: made.id, columnCount: columnCount), entity: other, key: otherKey)
                    waiting.append((other, otherKey))
                case .deny:
                    continue
                }
            }
            for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
                if link.source == entity {
                    for other in reader.related(.link(number, .forward, destination: link.destination), to: key)
                    where newest.links[number].forward[key]?[other] == nil {
                        made.setLink(number, from: key, to: other, linked: false)
                    }
                }
                if link.destination == entity {
                    for other in reader.related(.link(number, .backward, destination: link.source), to: key)
                    where newest.links[number].backward[key]?[other] == nil {
                        made.setLink(number, from: other, to: key, linked: false)
                    }
                }
            }
        }
        guard !made.isEmpty else { return nil }
        made.seal()
        return made
    }
}

extension Layer {
    /// The objects that the layer deletes, by entity and key.
    var deletions: [(EntityIndex, ObjectKey)] {
        entityIndices.flatMap { entity in
            (self.entity(entity)?.sortedPageNumbers ?? []).flatMap { number in
                SlotIterator(self.entity(entity)?.page(number)?.deleted ?? 0).map {
                    (entity, PageAddress.key(page: number, slot: $0))
                }
            }
        }
    }

    /// Removes the layer's changes to an object's pairs.
    func forgetLinks(of entity: EntityIndex, _ key: ObjectKey, _ schema: StoreSchema) {
        for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
            if link.source == entity {
                for other in (links[number].forward[key] ?? [:]).keys { forgetLink(number, from: key, to: other) }
            }
            if link.destination == entity {
                for other in (links[number].backward[key] ?? [:]).keys { forgetLink(number, from: other, to: key) }
            }
        }
    }

    /// Removes the changes of pairs that are as in the state below.
    ///
    /// - Parameter isLinkedBelow: Whether a pair is linked there.
    func forgetPairs(_ isLinkedBelow: (ChangeLog.ChangedPair) -> Bool) {
        for (link, changes) in links.enumerated(as: LinkIndex.self) {
            for (source, partners) in changes.forward {
                for (destination, linked) in partners {
                    let pair = ChangeLog.ChangedPair(link: link, source: source, destination: destination)
                    if isLinkedBelow(pair) == linked { forgetLink(link, from: source, to: destination) }
                }
            }
        }
    }

    /// Forgets the new places of objects in ordered many-to-many relationships, and those in their lists. O(new places).
    func forgetPlaces(of objects: Set<ObjectAddress>, _ model: Model) {
        for order in model.orders {
            let link = model.storeSchema.links[order.link]
            let (owner, member) = order.direction == .forward ? (link.source, link.destination) : (link.destination, link.source)
            var gone: [ObjectKey] = []
            forEachRow(of: order.number, \.inserted) { place, row in
                let ends = [(owner, row[OrderEntity.owner]), (member, row[OrderEntity.member])]
                let isGone = ends.contains { entity, value in
                    value.referenceKey.map { objects.contains(ObjectAddress(entity: entity, key: $0)) } ?? false
                }
                if isGone { gone.append(place) }
            }
            for place in gone { remove(entity: order.number, key: place) }
        }
    }
}
