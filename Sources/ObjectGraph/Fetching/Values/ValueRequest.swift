import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request for values of an entity without creating objects: chosen properties, or values computed from groups (S133). By names.
///
/// With a computed column, or with ``propertiesToGroupBy``, each row is a group. Property columns must then be
/// group-by properties. Limit and offset apply to rows.
///
/// ```swift
/// let request = EntityValueRequest(
///     "Track", fetching: [.property("album"), plays], groupBy: ["album"], having: plays.is(.greater, 100))
/// let rows = try context.fetch(request)
/// ```
public struct EntityValueRequest: Sendable, Hashable {
    /// The name of the entity.
    public var entityName: String
    /// The columns of the result.
    public var propertiesToFetch: [ResultColumn]
    /// The condition on the objects.
    public var condition: Condition
    /// The attributes, to-one relationships, and paths through to-one relationships by which objects are grouped.
    public var propertiesToGroupBy: [String]
    /// A condition on columns of the result, by their names.
    public var having: Condition = .always
    /// A Boolean value that indicates whether equal rows are returned only once. Rows with the object's id are never equal.
    public var returnsDistinctResults = false
    /// The sort of the rows, by names of columns. Ungrouped rows can also be sorted by attributes that are not fetched.
    ///
    /// Without a sort, groups are in the order of their group-by values, and objects in the order of their keys.
    public var sortBy: [AttributeSort]
    /// The maximum number of rows; nil for no limit.
    public var limit: Int?
    /// The number of rows to skip.
    public var offset: Int
    /// A Boolean value that indicates whether the result includes unsaved changes of the context.
    public var includesPendingChanges = true

    /// Creates a request for columns of an entity by name. The names are checked when the request is used.
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

/// A request for values of a model type. It corresponds to ``EntityValueRequest``, with key paths instead of names.
///
/// ```swift
/// let request = ValueRequest<Track>([.property(\.album), .sum(\.playCount)], groupBy: [.property(\.album)])
/// let rows = try context.fetch(request)
/// ```
public struct ValueRequest<M: PersistentModel>: Sendable {
    /// A condition that the compiler checks; nil selects every object.
    public var predicate: Predicate<M>?
    /// An additional condition by property names.
    public var condition: Condition
    /// The columns of the result.
    public var propertiesToFetch: [ModelColumn<M>]
    /// The columns by which objects are grouped.
    public var propertiesToGroupBy: [ModelColumn<M>]
    /// A condition on columns of the result: `ModelColumn<Track>.sum(\.playCount).is(.greater, 100)`.
    ///
    /// Each column that it names must be one of ``propertiesToFetch``.
    public var having: Condition
    /// A Boolean value that indicates whether equal rows are returned only once. Rows with the object's id are never equal.
    public var returnsDistinctResults = false
    /// The sort of the rows.
    public var sortBy: [Sort]
    /// The maximum number of rows; nil for no limit.
    public var limit: Int?
    /// The number of rows to skip.
    public var offset: Int
    /// A Boolean value that indicates whether the result includes unsaved changes of the context.
    public var includesPendingChanges = true

    /// A sort by one column of the result.
    public struct Sort: Sendable, Hashable {
        var sort: AttributeSort

        /// Creates a sort by a column of the result.
        public init(
            _ column: ModelColumn<M>, _ direction: StoreSort.Direction = .ascending,
            comparing comparison: StringComparison = .codePoints, nils: NilPosition = .byDirection
        ) {
            sort = AttributeSort(column.column.name, direction, comparing: comparison, nils: nils)
        }

        /// Creates a sort by an attribute, which is also a column of its name.
        public init<V>(
            _ attribute: KeyPath<M, V>, _ direction: StoreSort.Direction = .ascending,
            comparing comparison: StringComparison = .codePoints, nils: NilPosition = .byDirection
        ) {
            sort = AttributeSort(M.name(of: attribute), direction, comparing: comparison, nils: nils)
        }
    }

    /// Creates a request for columns of a model type. Rows are objects, or groups if a column is computed.
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
    /// Returns the request by names, without the typed predicate.
    func byName(in model: Model) throws -> EntityValueRequest {
        guard let entity = model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        var request = EntityValueRequest(
            entity.name, fetching: propertiesToFetch.map(\.column), matching: condition,
            groupBy: propertiesToGroupBy.map(\.column.path), having: having, sortBy: sortBy.map(\.sort), limit: limit,
            offset: offset)
        request.returnsDistinctResults = returnsDistinctResults
        request.includesPendingChanges = includesPendingChanges
        return request
    }
}
