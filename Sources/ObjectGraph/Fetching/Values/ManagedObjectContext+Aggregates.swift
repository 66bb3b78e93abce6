import StoreInterface
import StoreModel

/// Fetching values without creating objects (S133). Like all fetching, this is synchronous and reads the context's own snapshot. It
/// includes unsaved changes unless the request excludes them. Methods throw ``FetchError`` before any row is read.
extension ManagedObjectContext {
    /// Returns the requested properties of each object, or one row per group. Reads only the requested columns.
    public func fetch<M: PersistentModel>(_ request: ValueRequest<M>) throws -> [ResultRow] {
        let byName = try request.byName(in: storedModel)
        let predicate = try request.predicate.map { predicate in
            guard let entity = storedModel.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
            return try PredicateLowering.lower(predicate, entity: entity.number, in: requestScope)
        }
        return try rows(ValueQuery(byName, also: predicate, in: requestScope))
    }

    /// Returns the requested properties of each object, or one row per group, by names.
    public func fetch(_ request: EntityValueRequest) throws -> [ResultRow] { try rows(ValueQuery(request, in: requestScope)) }

    private func rows(_ query: ValueQuery) throws -> [ResultRow] {
        let shape = ResultShape(
            names: query.columns.map(\.name), forms: query.forms, entities: query.idEntities, store: storeIdentity)
        let found = try answer(query.objects, includesPendingChanges: query.request.includesPendingChanges) { try $0.rows(query) }
        return found.map { ResultRow(shape: shape, values: $0) }
    }

    // MARK: Single values

    /// Returns a computed column over all objects that a request selects, applying its limit and offset: `.sum("plays")`.
    public func aggregate(_ column: ResultColumn, of request: EntityFetchRequest) throws -> Value {
        try aggregate(
            column, of: request.storeQuery(in: requestScope), entity: request.entityName,
            includesPendingChanges: request.includesPendingChanges)
    }

    /// Returns a computed column over all objects that a request selects, applying its limit and offset: `.sum(\.plays)`.
    public func aggregate<M: PersistentModel>(
        _ column: ModelColumn<M>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Value {
        let query = try request.storeQuery(in: requestScope)
        let name = storedModel.entity(for: M.self)?.name ?? storedModel.entities[query.entity].name
        return try aggregate(column.column, of: query, entity: name, includesPendingChanges: request.includesPendingChanges)
    }

    private func aggregate(
        _ column: ResultColumn, of query: StoreQuery, entity: String, includesPendingChanges: Bool
    ) throws -> Value {
        let values = try ValueQuery(EntityValueRequest(entity, fetching: [column]), in: requestScope)
        guard let aggregate = values.aggregates.first else {
            throw FetchError.notGrouped(entity: entity, property: column.name)
        }
        if let column = values.decimals(in: aggregate) {
            return try decimals(column, of: query, includesPendingChanges: includesPendingChanges).value(aggregate)
        }
        let groups = try groups(values.aggregation, of: query, includesPendingChanges: includesPendingChanges)
        let definition = aggregate.column.map { storedModel.entities[query.entity].columns[$0] }
        guard let result = groups.states[0][0].result(aggregate, of: definition?.type) else {
            throw FetchError.sumTooLarge(entity: entity, property: definition?.name ?? column.name)
        }
        return result
    }

    /// Returns the groups of an aggregation over the objects that a query selects.
    func groups(
        _ aggregation: StoreAggregation, of query: StoreQuery, includesPendingChanges: Bool
    ) throws -> AggregateGroups {
        var aggregation = aggregation
        aggregation.predicate = query.predicate
        return try answer(query, includesPendingChanges: includesPendingChanges) { view in
            guard query.limit != nil || query.offset > 0 else { return try view.groups(aggregation) }
            return try view.groups(aggregation, of: view.keys(query))
        }
    }

    /// Returns the sum of a numeric attribute, or zero if there are no objects.
    public func sum<M: PersistentModel, V: AttributeValue & AdditiveArithmetic>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V {
        let value = try aggregate(.sum(keyPath), of: request)
        guard let sum = V(value) else { throw sumTooLarge(keyPath) }
        return sum
    }

    /// Returns the sum of an optional numeric attribute, ignoring nil, or zero if there are no values.
    public func sum<M: PersistentModel, V: AttributeValue & AdditiveArithmetic>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V {
        let value = try aggregate(.sum(keyPath), of: request)
        guard let sum = V(value) else { throw sumTooLarge(keyPath) }
        return sum
    }

    private func sumTooLarge<M: PersistentModel, V>(_ keyPath: KeyPath<M, V>) -> FetchError {
        .sumTooLarge(entity: "\(M.self)", property: M.name(of: keyPath))
    }

    /// Returns the least value of an attribute, or nil if there are no objects.
    public func minimum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.min(keyPath), of: request)) }

    /// Returns the least value of an optional attribute, ignoring nil, or nil if there are no values.
    public func minimum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.min(keyPath), of: request)) }

    /// Returns the greatest value of an attribute, or nil if there are no objects.
    public func maximum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.max(keyPath), of: request)) }

    /// Returns the greatest value of an optional attribute, ignoring nil, or nil if there are no values.
    public func maximum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.max(keyPath), of: request)) }

    /// Returns the mean of a numeric attribute, ignoring nil, or nil if there are no values.
    public func average<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Double? { try nonNull(aggregate(.average(keyPath), of: request)) }

    private func nonNull<V: AttributeValue>(_ value: Value) -> V? { value.isNull ? nil : V(value) }
}

// Attributes of raw-value types, whose order is that of the raw values.

extension ManagedObjectContext {
    /// Returns the least raw value of an attribute, or nil if there are no objects.
    @_disfavoredOverload
    public func minimum<M: PersistentModel, V: RawRepresentable>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? where V.RawValue: AttributeValue { try raw(aggregate(.min(keyPath), of: request)) }

    /// Returns the least raw value of an optional attribute, ignoring nil, or nil if there are no values.
    @_disfavoredOverload
    public func minimum<M: PersistentModel, V: RawRepresentable>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? where V.RawValue: AttributeValue { try raw(aggregate(.min(keyPath), of: request)) }

    /// Returns the greatest raw value of an attribute, or nil if there are no objects.
    @_disfavoredOverload
    public func maximum<M: PersistentModel, V: RawRepresentable>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? where V.RawValue: AttributeValue { try raw(aggregate(.max(keyPath), of: request)) }

    /// Returns the greatest raw value of an optional attribute, ignoring nil, or nil if there are no values.
    @_disfavoredOverload
    public func maximum<M: PersistentModel, V: RawRepresentable>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? where V.RawValue: AttributeValue { try raw(aggregate(.max(keyPath), of: request)) }

    private func raw<V: RawRepresentable>(_ value: Value) -> V? where V.RawValue: AttributeValue {
        RawAttribute<V>(value)?.value
    }
}
