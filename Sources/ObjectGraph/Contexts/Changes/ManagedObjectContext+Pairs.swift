import StoreInterface
import StoreModel

/// Keeps both ends of one-to-one relationships consistent after a merge (S052).
/// The context's own changes win, as they do when it saves.
extension ManagedObjectContext {
    /// Clears the reference of each object whose partner was given to another object in `layers`. O(their changed one-to-one ends).
    ///
    /// - Parameter layers: The newest unsaved layers of this context, oldest first.
    func settlePairs(of layers: [Layer]) {
        guard capabilities.rules.hasPairs else { return }
        let below = LayeredView(
            base: layerStack.view.base, layers: layerStack.view.layers.filter { layer in !layers.contains { $0 === layer } })
        for entity in capabilities.rules.pairs.indices(as: EntityIndex.self) where !capabilities.rules.pairs[entity].isEmpty {
            // Collect the keys first, because settling writes to the newest layer.
            var keys: Set<ObjectKey> = []
            for layer in layers {
                for (number, page) in layer.entity(entity)?.pages ?? [:] {
                    for slot in SlotIterator(page.inserted | page.updated) {
                        keys.insert(PageAddress.key(page: number, slot: slot))
                    }
                }
            }
            for key in keys.sorted() {
                for pair in capabilities.rules.pairs[entity] where isSet(pair.column, entity: entity, key: key, in: layers) {
                    trapOnStoreError { try settle(pair, entity: entity, key: key, below: below) }
                }
            }
        }
    }

    private func isSet(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey, in layers: [Layer]) -> Bool {
        layers.contains { $0.row(entity, key)?.isSet(column) == true }
    }

    private func settle(_ pair: RelationshipRules.Pair, entity: EntityIndex, key: ObjectKey, below: LayeredView) throws {
        let partner = try layerStack.view.value(entity, key: key, column: pair.column)?.referenceKey
        // The object that refers to the partner below these layers.
        if let partner, let former = try below.value(pair.destination, key: partner, column: pair.back)?.referenceKey,
            former != key,
            try layerStack.view.value(entity, key: former, column: pair.column)?.referenceKey == partner
        {
            write(entity, key: former, column: pair.column, value: .null)
        }
        // The partner of the object below these layers.
        if let former = try below.value(entity, key: key, column: pair.column)?.referenceKey, former != partner,
            try layerStack.view.value(pair.destination, key: former, column: pair.back)?.referenceKey == key
        {
            write(pair.destination, key: former, column: pair.back, value: .null)
        }
    }
}
