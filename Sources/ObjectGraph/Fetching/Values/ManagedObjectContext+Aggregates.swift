import StoreInterface

/// Fetching values without objects (S133). As all fetching: synchronous, of the context's own snapshot and, unless the request says
/// otherwise, with its unsaved changes. Throws ``FetchError`` before any row is read.
extension ManagedObjectContext {
    /// Chosen properties of each object, or one row a group. Costs a read of the wanted columns; no object is made.
    public func fetch<M: PersistentModel>(_ request: ValueRequest<M>) throws -> [ResultRow] {
        let byName = try request.byName(in: model)
        let predicate = try request.predicate.map { predicate in
            guard let entity = model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
            return try PredicateLowering.lower(predicate, entity: entity.number, in: requestScope)
        }
        return try rows(ValueQuery(byName, also: predicate, in: requestScope))
    }

    /// Chosen properties of each object, or one row a group, by names.
    public func fetch(_ request: EntityValueRequest) throws -> [ResultRow] { try rows(ValueQuery(request, in: requestScope)) }

    private func rows(_ query: ValueQuery) throws -> [ResultRow] {
        let shape = ResultShape(names: query.columns.map(\.name), entities: query.idEntities, store: storeIdentity)
        let found = try answer(query.request.includesPendingChanges) { try $0.rows(query) }
        return found.map { ResultRow(shape: shape, values: $0) }
    }

    // MARK: One number

    /// A computed column of all that a request selects, its limit and offset included: `.sum("plays")`.
    public func aggregate(_ column: ResultColumn, of request: EntityFetchRequest) throws -> Value {
        try aggregate(column, of: request.storeQuery(in: requestScope), request.entityName, request.includesPendingChanges)
    }

    /// A computed column of all that a request selects, its limit and offset included: `.sum(\.plays)`.
    public func aggregate<M: PersistentModel>(
        _ column: ModelColumn<M>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Value {
        let query = try request.storeQuery(in: requestScope)
        let name = model.entities[query.entity].name
        return try aggregate(column.column, of: query, name, request.includesPendingChanges)
    }

    private func aggregate(
        _ column: ResultColumn, of query: StoreQuery, _ entity: String, _ includesPendingChanges: Bool
    ) throws -> Value {
        let values = try ValueQuery(EntityValueRequest(entity, fetching: [column]), in: requestScope)
        guard let aggregate = values.aggregates.first else {
            throw FetchError.unsupportedAggregate(function: "one value", entity: entity, property: column.name)
        }
        var aggregation = values.aggregation
        aggregation.predicate = query.predicate
        let groups = try answer(includesPendingChanges) { view in
            guard query.limit != nil || query.offset > 0 else { return try view.groups(aggregation) }
            return try view.groups(aggregation, of: view.keys(query))
        }
        let definition = aggregate.column.map { model.entities[query.entity].columns[$0] }
        guard let result = groups.states[0][0].result(aggregate, of: definition?.type) else {
            throw FetchError.sumTooLarge(entity: entity, property: definition?.name ?? column.name)
        }
        return result
    }

    /// The sum of a number; zero of nothing. nil values do not count, also in the next three.
    public func sum<M: PersistentModel, V: AttributeValue & AdditiveArithmetic>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V {
        let value = try aggregate(.sum(keyPath), of: request)
        guard let sum = V(value) else { throw sumTooLarge(keyPath) }
        return sum
    }

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

    /// The least value; nil of nothing.
    public func minimum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.min(keyPath), of: request)) }

    public func minimum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.min(keyPath), of: request)) }

    /// The greatest value; nil of nothing.
    public func maximum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.max(keyPath), of: request)) }

    public func maximum<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V?>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> V? { try nonNull(aggregate(.max(keyPath), of: request)) }

    /// The mean of a number; nil of nothing.
    public func average<M: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, of request: FetchRequest<M> = FetchRequest()
    ) throws -> Double? { try nonNull(aggregate(.average(keyPath), of: request)) }

    private func nonNull<V: AttributeValue>(_ value: Value) -> V? { value.isNull ? nil : V(value) }
}
