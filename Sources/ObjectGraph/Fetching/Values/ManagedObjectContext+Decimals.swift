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
/// The columns `.sum` and `.average` of a ``ValueRequest`` take no decimals and throw
/// ``FetchError/unsupportedAggregate(function:entity:property:)``. For sums of groups, call these functions once per group.
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
        guard let entity = storedModel.entity(for: M.self), let column = entity.column(named: name) else {
            throw FetchError.unknownProperty(entity: M.entityName, property: name)
        }
        let aggregation = StoreAggregation(entity: query.entity, groupBy: [column], aggregates: [.count])
        let groups = try groups(aggregation, of: query, includesPendingChanges: request.includesPendingChanges)
        var total = DecimalSum()
        // The order matters for sums that need more digits.
        for (key, states) in zip(groups.keys, groups.states).sorted(by: { $0.0.order($1.0) < 0 }) where !key.values[0].isNull {
            guard let value = Decimal(key.values[0]) else {
                throw FetchError.unsupportedAggregate(function: "a sum", entity: entity.name, property: name)
            }
            total.add(value, count: states[0].count)
        }
        if total.isTooLarge { throw FetchError.sumTooLarge(entity: entity.name, property: name) }
        return total
    }
}

/// The sum of decimals, and their number.
private struct DecimalSum {
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
}
