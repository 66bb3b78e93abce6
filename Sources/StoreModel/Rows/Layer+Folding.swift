extension Layer {
    /// Returns one unsealed layer that has the same effect as `layers`, oldest first, over the same base.
    ///
    /// An insert followed by a delete leaves neither a row nor removed pairs of the object. A pair that was changed and changed back keeps its last
    /// change: see ``mayRepeatPairs``. A delete followed by an insert under the same
    /// key becomes an update of every column, and an update of a deleted object has no effect. Pages and rows that only one layer has are
    /// shared. Rows keep their versions. The layer's version is that of the newest layer.
    /// Cost: O(pages + rows of pages that several layers change).
    package static func folding(_ layers: [Layer], schema: StoreSchema) -> Layer {
        guard let first = layers.first else { return Layer(schema: schema) }
        let folded = first.isSealed ? Layer(copying: first) : Layer(schema: schema)
        for layer in first.isSealed ? layers.dropFirst() : layers[...] { folded.merge(layer, schema) }
        folded.setVersion(layers[layers.count - 1].version)
        return folded
    }

    /// Returns the range of `layers`, oldest first, to fold next. The list stays short, and each row is folded O(log n)
    /// times.
    ///
    /// The range contains the newest layers, as long as none is much heavier than the sum of the newer layers. Returns nil if
    /// folding would save little.
    package static func foldableTail(of layers: [Layer]) -> Range<Int>? {
        guard layers.count >= tailLength else { return nil }
        var start = layers.count - 1
        var weight = layers[start].weight
        while start > 0, layers[start - 1].weight <= 2 * weight + 64 {
            start -= 1
            weight += layers[start].weight
        }
        return layers.count - start >= tailLength ? start..<layers.count : nil
    }

    private static let tailLength = 6

    /// Merges the changes of a newer layer into this layer.
    private func merge(_ newer: Layer, _ schema: StoreSchema) {
        // The objects that this layer inserts and the newer one deletes.
        var gone: [(entity: EntityIndex, key: ObjectKey)] = []
        for entity in newer.entityIndices {
            guard let changes = newer.entity(entity) else { continue }
            let numbers =
                newer.isSealed && !mustKeepIndexes
                ? share(changes, entity: entity, mayDelete: newer.mayDelete) : Array(changes.pages.keys)
            for number in numbers {
                guard let page = changes.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    if row.kind == .delete, self.row(entity, key)?.kind == .insert { gone.append((entity, key)) }
                    merge(row, entity: entity, key: key)
                }
            }
        }
        for (link, changes) in newer.links.enumerated(as: LinkIndex.self) {
            for (source, pairs) in changes.forward {
                for (destination, linked) in pairs {
                    mergeLink(link, from: source, to: destination, linked: linked)
                }
            }
        }
        if newer.mayRepeatPairs { noteRepeatedPairs() }
        for object in gone { forgetRemovedPairs(of: object.entity, object.key, schema) }
    }

    /// Forgets the removed pairs of an object that the state below does not have. It has no pairs there either, and the objects at their
    /// other ends must not count as changed (S007).
    private func forgetRemovedPairs(of entity: EntityIndex, _ key: ObjectKey, _ schema: StoreSchema) {
        for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
            if link.source == entity {
                for case (let other, false) in links[number].forward[key] ?? [:] { forgetLink(number, from: key, to: other) }
            }
            if link.destination == entity {
                for case (let other, false) in links[number].backward[key] ?? [:] { forgetLink(number, from: other, to: key) }
            }
        }
    }

    /// Merges one newer row into this layer's row of the object.
    package func merge(_ row: Row, entity: EntityIndex, key: ObjectKey) {
        guard let older = self.row(entity, key) else {
            put(row, entity: entity, key: key)
            return
        }
        switch (older.kind, row.kind) {
        case (.insert, .delete):
            remove(entity: entity, key: key)
        case (.insert, .update), (.update, .update):
            let merged = older.layer == id ? older : older.copy(layer: id)
            row.set.forEach { merged[$0] = row[$0] }
            merged.version = row.version
            put(merged, entity: entity, key: key)
        case (.update, .delete):
            // The deleted object shows its last values until the deletion is saved.
            let buried = older.copy(layer: id)
            buried.kind = .delete
            buried.version = row.version
            row.set.forEach { buried[$0] = row[$0] }
            put(buried, entity: entity, key: key)
        case (.delete, .insert):
            let revived = row.copy(layer: id)
            revived.kind = .update
            put(revived, entity: entity, key: key)
        case (.delete, .update):
            // An update does not bring a deleted object back.
            break
        default:
            put(row, entity: entity, key: key)
        }
    }
}
