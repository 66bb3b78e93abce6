import PageCodec
import StoreInterface
import StoreModel

extension LMDBSnapshot {
    /// Computes the groups over the columns of pages, without creating objects or gathering keys. Without group-by columns,
    /// numbers are added column by column. Counting reads no column.
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        try aggregation.predicate.checkDepth()
        let entity = aggregation.entity
        if aggregation.groupBy.isEmpty { return try totals(aggregation) }
        var groups = AggregateGroups(aggregation)
        try forEachMatch(entity, where: aggregation.predicate) { match in
            for slot in SlotIterator(match.mask) {
                try groups.add {
                    try match.page.value(slot, aggregation.groupBy[$0])
                } value: {
                    try match.page.value(slot, $0)
                }
            }
            return .next
        }
        return groups
    }

    private func totals(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        if let ends = try endsOfIndexes(aggregation) { return ends }
        let entity = aggregation.entity
        let columns = schema.entities[entity].columns
        var states = Array(repeating: AggregateState(), count: aggregation.aggregates.count)
        try forEachMatch(entity, where: aggregation.predicate) { match in
            for (number, aggregate) in aggregation.aggregates.enumerated() {
                guard let column = aggregate.column else {
                    states[number].count += match.mask.nonzeroBitCount
                    continue
                }
                if case .countValues = aggregate {
                    states[number].count += try match.page.valueCount(column, of: match.mask)
                } else if columns[column].type.isNumeric || columns[column].type == .date {
                    try match.page.addTotals(column, of: match.mask, to: &states[number], aggregate)
                } else {
                    for slot in SlotIterator(match.mask) {
                        states[number].add(try match.page.value(slot, column), to: aggregate)
                    }
                }
            }
            return .next
        }
        var groups = AggregateGroups(aggregation)
        groups.join(GroupKey([]), states)
        return groups
    }

    /// Returns the least and greatest values of all objects, if indexes have them at their ends. Returns nil for other
    /// aggregations.
    private func endsOfIndexes(_ aggregation: StoreAggregation) throws -> AggregateGroups? {
        guard aggregation.predicate == .constant(true), !aggregation.aggregates.isEmpty else { return nil }
        var groups = AggregateGroups(aggregation)
        for (number, aggregate) in aggregation.aggregates.enumerated() {
            let end: StoreSort
            switch aggregate {
            case .minimum(let column): end = StoreSort(column: column, direction: .ascending)
            case .maximum(let column): end = StoreSort(column: column, direction: .descending)
            default: return nil
            }
            let query = StoreQuery(
                entity: aggregation.entity, predicate: .compare(end.column, .notEqual, to: .null), sort: [end], limit: 1)
            guard let keys = try keysInIndexOrder(query) else { return nil }
            guard let key = keys.first, let value = try value(aggregation.entity, key: key, column: end.column) else { continue }
            var state = AggregateState()
            state.add(value, to: aggregate)
            groups.join(state, of: number)
        }
        return groups
    }
}
