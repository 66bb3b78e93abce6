import StoreInterface

extension LayeredView {
    /// The groups of an aggregation with the layers' changes applied.
    ///
    /// The base computes over what no layer touches, by itself when none touches what the condition looks at; touched objects
    /// are added here at O(touched) reads. A condition that follows relationships into touched entities reads every object, and so do
    /// values of references that may lead to nothing.
    public func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
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

    /// The same over given objects, which exist.
    func groups(_ aggregation: StoreAggregation, of keys: [ObjectKey]) throws -> AggregateGroups {
        var groups = AggregateGroups(aggregation)
        for key in keys { try add(key, to: &groups, aggregation) }
        return groups
    }

    private func add(_ key: ObjectKey, to groups: inout AggregateGroups, _ aggregation: StoreAggregation) throws {
        let entity = aggregation.entity
        try groups.add {
            try shown(entity, key, aggregation.groupBy[$0])
        } value: {
            try shown(entity, key, $0)
        }
    }

    private func shown(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value {
        try shown(value(entity, key, column) ?? .null, entity, column)
    }

    /// Whether values are wanted of references that may lead to nothing: no store takes such a one as nil.
    private func readsDangling(_ aggregation: StoreAggregation) -> Bool {
        guard schema.mayDangle else { return false }
        let columns = aggregation.groupBy + aggregation.aggregates.compactMap(\.column)
        return columns.contains { schema.mayDangle(aggregation.entity, $0) }
    }

    /// Ascending.
    private func touchedKeys(_ entity: Int) -> [ObjectKey] {
        touchedPages(entity).sorted { $0.key < $1.key }.flatMap { number, mask in
            SlotIterator(mask).map { PageAddress.key(page: number, slot: $0) }
        }
    }
}
