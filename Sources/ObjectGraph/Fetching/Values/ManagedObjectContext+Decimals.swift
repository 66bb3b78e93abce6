import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Sums and means of decimals, which stores cannot add up (S133). They are computed from the distinct values and their numbers.
///
/// The arithmetic is that of `Decimal`, with 38 digits. Nothing is converted to a binary number. A mean that has more digits, such as a
/// third, is rounded to the nearest of 38 digits.
///
/// The columns `.sum` and `.average` of a ``ValueRequest`` compute sums and means of decimals in the same way, also per group.
extension ManagedObjectContext {
    /// Returns the sum of a decimal attribute, or zero if there are no objects. Needs memory for the distinct values.
    /// - Throws: ``FetchError/sumTooLarge(entity:property:)`` if the sum is larger than the largest decimal.
    public func sum<M: PersistentModel>(
        _ keyPath: KeyPath<M, Decimal>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Decimal { try decimals(keyPath, request).sum }

    /// Returns the sum of an optional decimal attribute, ignoring nil, or zero if there are no values.
    ///
    /// - Throws: ``FetchError/sumTooLarge(entity:property:)`` if the sum is larger than the largest decimal.
    public func sum<M: PersistentModel>(
        _ keyPath: KeyPath<M, Decimal?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Decimal { try decimals(keyPath, request).sum }

    /// Returns the mean of a decimal attribute, or nil if there are no objects.
    ///
    /// - Throws: ``FetchError/sumTooLarge(entity:property:)`` if the sum is larger than the largest decimal.
    public func average<M: PersistentModel>(
        _ keyPath: KeyPath<M, Decimal>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Decimal? { try decimals(keyPath, request).mean }

    /// Returns the mean of an optional decimal attribute, ignoring nil, or nil if there are no values.
    ///
    /// - Throws: ``FetchError/sumTooLarge(entity:property:)`` if the sum is larger than the largest decimal.
    public func average<M: PersistentModel>(
        _ keyPath: KeyPath<M, Decimal?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Decimal? { try decimals(keyPath, request).mean }

    private func decimals<M: PersistentModel>(_ keyPath: PartialKeyPath<M>, _ request: FetchRequest<M>) throws -> DecimalSum {
        let query = try request.storeQuery(in: requestScope)
        let name = M.name(of: keyPath)
        guard let column = storedModel.entity(for: M.self)?.column(named: name) else {
            throw FetchError.unknownProperty(entity: M.entityName, property: name)
        }
        return try decimals(column, of: query, includesPendingChanges: request.includesPendingChanges)
    }

    /// Returns the total of a column of decimals over the objects that a query selects.
    func decimals(_ column: ColumnIndex, of query: StoreQuery, includesPendingChanges: Bool) throws -> DecimalSum {
        let aggregation = StoreAggregation(entity: query.entity).forDecimals(in: column)
        let groups = try groups(aggregation, of: query, includesPendingChanges: includesPendingChanges)
        let entity = storedModel.entities[query.entity]
        return try groups.decimalSums(entity.name, property: entity.columns[column].name)[GroupKey([])] ?? DecimalSum()
    }
}

extension StoreAggregation {
    /// Returns the request for the numbers of equal decimals in each group, from which the group's sum follows.
    func forDecimals(in column: ColumnIndex) -> StoreAggregation {
        StoreAggregation(entity: entity, predicate: predicate, groupBy: groupBy + [column], aggregates: [.count])
    }
}

extension AggregateGroups {
    /// Returns the sums of decimals by group. Each key has the values of the group, and the decimal at its end.
    ///
    /// - Throws: ``FetchError/unsupportedAggregate(function:entity:property:)`` for bytes that are no decimal;
    ///   ``FetchError/sumTooLarge(entity:property:)``.
    func decimalSums(_ entity: String, property: String) throws -> [GroupKey: DecimalSum] {
        var sums: [GroupKey: DecimalSum] = [:]
        // The order matters for sums that need more digits.
        for (key, states) in zip(keys, states).sorted(by: { $0.0.order($1.0) < 0 }) {
            guard let value = key.values.last, !value.isNull else { continue }
            guard let decimal = Decimal(value) else {
                throw FetchError.unsupportedAggregate(function: "a sum", entity: entity, property: property)
            }
            sums[GroupKey(Array(key.values.dropLast())), default: DecimalSum()].add(decimal, count: states[0].count)
        }
        if sums.values.contains(where: \.isTooLarge) { throw FetchError.sumTooLarge(entity: entity, property: property) }
        return sums
    }
}

/// The sum of decimals, and their number.
struct DecimalSum {
    private(set) var sum: Decimal = 0
    private var count = 0
    private var hasNaN = false

    var mean: Decimal? { count == 0 ? nil : sum / Decimal(count) }
    var isTooLarge: Bool { sum.isNaN && !hasNaN }

    mutating func add(_ value: Decimal, count: Int) {
        hasNaN = hasNaN || value.isNaN
        sum += value * Decimal(count)
        self.count += count
    }

    /// Returns a sum or a mean as a value.
    func value(_ aggregate: StoreAggregate) -> Value {
        if case .average = aggregate { return mean?.storeValue ?? .null }
        return sum.storeValue
    }
}
