import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Which values to fetch of an entity, without making objects: chosen properties, or numbers computed from groups (S133). By names.
///
/// With a computed column, or with ``propertiesToGroupBy``, each row is a group; properties among the columns must then be
/// group-by properties. Limit and offset apply to rows.
public struct EntityValueRequest: Sendable, Hashable {
    public var entityName: String
    public var propertiesToFetch: [ResultColumn]
    public var condition: Condition
    /// Attributes, to-one relationships, and paths through to-one relationships.
    public var propertiesToGroupBy: [String]
    /// A condition on columns of the result, by their names.
    public var having: Condition = .always
    /// Whether equal rows are given once.
    public var returnsDistinctResults = false
    /// By the names of columns; rows that are objects sort by attributes of theirs, fetched or not. Without it groups are in the
    /// order of their group-by values, objects in the order of their keys.
    public var sortBy: [AttributeSort]
    /// nil: no limit.
    public var limit: Int?
    public var offset: Int
    /// Whether unsaved changes of the context count.
    public var includesPendingChanges = true

    public init(
        _ entityName: String, fetching propertiesToFetch: [ResultColumn], matching condition: Condition = .always,
        groupBy propertiesToGroupBy: [String] = [], having: Condition = .always, sortBy: [AttributeSort] = [],
        limit: Int? = nil, offset: Int = 0
    ) {
        self.entityName = entityName
        self.propertiesToFetch = propertiesToFetch
        self.condition = condition
        self.propertiesToGroupBy = propertiesToGroupBy
        self.having = having
        self.sortBy = sortBy
        self.limit = limit
        self.offset = offset
    }
}

/// The same as ``EntityValueRequest`` of a model type, by key paths.
public struct ValueRequest<M: PersistentModel>: Sendable {
    public var predicate: Predicate<M>?
    public var condition: Condition
    public var propertiesToFetch: [ModelColumn<M>]
    public var propertiesToGroupBy: [ModelColumn<M>]
    /// A condition on columns of the result: `.sum(\.plays).is(.greater, 100)`.
    public var having: Condition
    public var returnsDistinctResults = false
    public var sortBy: [Sort]
    public var limit: Int?
    public var offset: Int
    public var includesPendingChanges = true

    /// A column of the result to sort by.
    public struct Sort: Sendable, Hashable {
        var sort: AttributeSort

        public init(
            _ column: ModelColumn<M>, _ direction: StoreSort.Direction = .ascending,
            comparing comparison: StringComparison = .codePoints
        ) {
            sort = AttributeSort(column.column.name, direction, comparing: comparison)
        }
    }

    public init(
        _ propertiesToFetch: [ModelColumn<M>], where predicate: Predicate<M>? = nil, matching condition: Condition = .always,
        groupBy propertiesToGroupBy: [ModelColumn<M>] = [], having: Condition = .always, sortBy: [Sort] = [],
        limit: Int? = nil, offset: Int = 0
    ) {
        self.propertiesToFetch = propertiesToFetch
        self.predicate = predicate
        self.condition = condition
        self.propertiesToGroupBy = propertiesToGroupBy
        self.having = having
        self.sortBy = sortBy
        self.limit = limit
        self.offset = offset
    }
}

extension ValueRequest {
    /// The same by names; the typed predicate stays apart.
    func byName(in model: Model) throws -> EntityValueRequest {
        guard let entity = model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        var request = EntityValueRequest(
            entity.name, fetching: propertiesToFetch.map(\.column), matching: condition,
            groupBy: propertiesToGroupBy.map(\.column.name), having: having, sortBy: sortBy.map(\.sort), limit: limit,
            offset: offset)
        request.returnsDistinctResults = returnsDistinctResults
        request.includesPendingChanges = includesPendingChanges
        return request
    }
}
