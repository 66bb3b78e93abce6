import StoreInterface
import StoreModel

extension LayeredView {
    /// Returns the rows of a value request, in the order of its columns, without creating objects.
    func rows(_ query: ValueQuery) throws -> [[Value]] {
        if query.isGrouped { return try groupedRows(query) }
        let entity = query.objects.entity
        var reader = PagedReader(self)
        return try keys(query.objects).map { key in
            try query.columns.map { column in
                if case .value(let path) = column.source { return try reader.value(entity, key: key, path: path) }
                return .reference(key)
            }
        }
    }

    private func groupedRows(_ query: ValueQuery) throws -> [[Value]] {
        let found = try resolved(groups(query.aggregation), query, of: query.aggregation)
        let schema = self.schema.entities[query.objects.entity]
        let sums = try decimalSums(query, schema)
        var rows: [(key: GroupKey, values: [Value])] = []
        for (group, states) in zip(found.keys, found.states) {
            let values = try query.columns.map { column -> Value in
                switch column.source {
                case .value(let path): return query.groupBy.firstIndex(of: path).map { group.values[$0] } ?? .null
                case .objectID: return .null
                case .aggregate(let position):
                    let aggregate = query.aggregates[position]
                    let definition = aggregate.column.map { schema.columns[$0] }
                    if let decimals = query.decimals(in: aggregate) {
                        return (sums[decimals]?[group] ?? DecimalSum()).value(aggregate)
                    }
                    guard let result = states[position].result(aggregate, of: definition?.type) else {
                        throw FetchError.sumTooLarge(entity: schema.name, property: definition?.name ?? column.name)
                    }
                    return result
                }
            }
            if query.having != .always {
                let isWanted = query.having.matches { name in
                    query.columns.firstIndex { $0.name == name }.map { values[$0] } ?? .null
                }
                guard isWanted else { continue }
            }
            rows.append((group, values))
        }
        let order = query.rowOrder
        rows.sort { a, b in
            let result = order(a.values, b.values)
            return result != 0 ? result < 0 : a.key.order(b.key) < 0
        }
        var values = rows.map(\.values)
        if query.request.returnsDistinctResults {
            var seen: Set<GroupKey> = []
            values = values.filter { seen.insert(GroupKey($0)).inserted }
        }
        return Array(values.dropFirst(query.objects.offset).prefix(query.objects.limit ?? .max))
    }

    /// Returns the sums of decimals per group, for each column that is added up. One more aggregation per column.
    private func decimalSums(_ query: ValueQuery, _ schema: EntitySchema) throws -> [ColumnIndex: [GroupKey: DecimalSum]] {
        try Set(query.aggregates.compactMap(query.decimals)).reduce(into: [:]) { sums, column in
            let aggregation = query.aggregation.forDecimals(in: column)
            let found = try resolved(groups(aggregation), query, of: aggregation)
            sums[column] = try found.decimalSums(schema.name, property: schema.columns[column].name)
        }
    }

    /// Replaces references by the values at the end of their paths, one read per reference. The store groups by references.
    private func resolved(
        _ groups: AggregateGroups, _ query: ValueQuery, of aggregation: StoreAggregation
    ) throws -> AggregateGroups {
        guard query.groupBy.contains(where: { !$0.steps.isEmpty }) else { return groups }
        var result = AggregateGroups(aggregation)
        var reader = PagedReader(self)
        for (key, states) in zip(groups.keys, groups.states) {
            var values = key.values
            for (position, path) in query.groupBy.enumerated() where !path.steps.isEmpty {
                values[position] = try reader.value(behind: values[position], path)
            }
            result.join(GroupKey(values), states)
        }
        return result
    }
}

extension ValueQuery {
    /// Compares rows by the request's sort.
    var rowOrder: ([Value], [Value]) -> Int {
        let sorts = request.sortBy.compactMap { sort in
            columns.firstIndex { $0.name == sort.attribute }.map { position in
                // A column of the result, not of an entity.
                var order = StoreSort(
                    column: ColumnIndex(rawValue: position), direction: sort.direction,
                    caseSensitivity: sort.comparison.caseSensitivity,
                    nulls: sort.nils.order(sort.direction))
                order.textOrder = sort.comparison.textOrder
                return order
            }
        }
        return { a, b in
            for sort in sorts {
                let order = sort.order(a[sort.column], b[sort.column])
                if order != 0 { return order }
            }
            return 0
        }
    }
}

/// Reads many values of a view. It caches the last page of each entity, so that reading in key order loads each page once.
struct PagedReader {
    private let view: LayeredView
    private var pages: [EntityIndex: Page] = [:]
    private let mayDangle: Bool

    private struct Page {
        var number: PageNumber
        var page: (any StorePage)?
    }

    init(_ view: LayeredView) {
        self.view = view
        mayDangle = view.schema.mayDangle
    }

    /// Returns the value of a column; null for a missing object, and for a reference to one.
    mutating func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value {
        let value = try stored(entity, key: key, column: column)
        return mayDangle ? try view.shown(value, entity: entity, column: column) : value
    }

    private mutating func stored(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value {
        let number = key.page
        let slot = key.slot
        switch try view.lookup(entity, page: number, slot: slot, column, pages: { try page(entity, $0) }) {
        case .row(let row): return row[column]
        case .deleted: return .null
        case .below: break
        }
        guard let page = try page(entity, number), try page.contains(slot) else { return .null }
        return try page.value(slot, column)
    }

    private mutating func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        if let known = pages[entity], known.number == number { return known.page }
        let page = try view.base.page(entity, number)
        pages[entity] = Page(number: number, page: page)
        return page
    }

    mutating func value(_ entity: EntityIndex, key: ObjectKey, path: ValueQuery.Path) throws -> Value {
        let first = try value(entity, key: key, column: path.firstColumn)
        return path.steps.isEmpty ? first : try value(behind: first, path)
    }

    /// Returns the value at the end of a path whose first reference is known.
    mutating func value(behind reference: Value, _ path: ValueQuery.Path) throws -> Value {
        var reference = reference
        for (position, step) in path.steps.enumerated() {
            guard let key = reference.referenceKey else { return .null }
            let next = position + 1 < path.steps.count ? path.steps[position + 1].column : path.column
            reference = try value(step.entity, key: key, column: next)
        }
        return reference
    }
}
