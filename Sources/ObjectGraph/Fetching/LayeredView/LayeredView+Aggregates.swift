import StoreInterface
import StoreModel

extension LayeredView {
    /// Returns the groups of an aggregation, including the layers' changes.
    ///
    /// If no layer changes an object that the condition reads, the base computes the groups. Otherwise it computes those of the
    /// unchanged objects, and this view adds the changed objects in O(changed) reads. Every object is read in two cases: the
    /// condition follows relationships into changed entities, or a value is a reference whose destination may be missing.
    package func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        let entity = aggregation.entity
        let query = StoreQuery(entity: entity, predicate: aggregation.predicate)
        switch readsDangling(aggregation) ? .everything : scope(of: query) {
        case .base: return try base.groups(aggregation)
        case .touched:
            let touched = touchedKeys(entity)
            var below = aggregation
            below.predicate = .all([aggregation.predicate, .negating(.keys(Set(touched)))])
            var groups = try base.groups(below)
            for key in touched where try selects(query, key) { try add(key, to: &groups, aggregation) }
            return groups
        case .everything:
            var groups = AggregateGroups(aggregation)
            for key in try allKeys(entity) where try aggregation.predicate.matches(entity, key: key, in: self) {
                try add(key, to: &groups, aggregation)
            }
            return groups
        }
    }

    /// Returns the groups of an aggregation over the given objects, which must exist.
    func groups(_ aggregation: StoreAggregation, of keys: [ObjectKey]) throws -> AggregateGroups {
        var groups = AggregateGroups(aggregation)
        for key in keys { try add(key, to: &groups, aggregation) }
        return groups
    }

    private func add(_ key: ObjectKey, to groups: inout AggregateGroups, _ aggregation: StoreAggregation) throws {
        let entity = aggregation.entity
        try groups.add {
            try shown(entity, key: key, column: aggregation.groupBy[$0])
        } value: {
            try shown(entity, key: key, column: $0)
        }
    }

    private func shown(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value {
        try shown(value(entity, key: key, column: column) ?? .null, entity: entity, column: column)
    }

    /// Whether the aggregation reads references whose destination may be missing, which stores do not treat as nil.
    private func readsDangling(_ aggregation: StoreAggregation) -> Bool {
        guard schema.mayDangle else { return false }
        let columns = aggregation.groupBy + aggregation.aggregates.compactMap(\.column)
        return columns.contains { schema.mayDangle(aggregation.entity, $0) }
    }

    /// Returns the keys of the objects that layers change, ascending.
    func touchedKeys(_ entity: EntityIndex) -> [ObjectKey] {
        touchedPages(entity).sorted { $0.key < $1.key }.flatMap { number, mask in
            SlotIterator(mask).map { PageAddress.key(page: number, slot: $0) }
        }
    }
}
