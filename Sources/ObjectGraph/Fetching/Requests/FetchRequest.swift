import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What to fetch of a model type: a value, made once and used in any context.
///
/// Making one reads nothing. What it asks is checked when it is used, before any row is read: see ``FetchError``.
public struct FetchRequest<M: PersistentModel>: Sendable {
    /// A condition checked by the compiler; nil selects every object.
    public var predicate: Predicate<M>?
    /// A further condition, by names: for what `#Predicate` cannot say, such as suffixes and case-insensitive matches.
    public var condition: Condition
    public var sortBy: [SortBy<M>]
    /// nil: no limit.
    public var limit: Int?
    public var offset: Int
    /// Whether unsaved changes of the context count. When false, the context's parents and the store answer alone.
    public var includesPendingChanges = true
    /// How many objects are made at a time by `fetchInBatches(_:)` and streams; 0: their own default.
    public var fetchBatchSize = 0
    /// Relationships, by name or as a path of names, whose objects are read together with the result.
    public var relationshipKeyPathsForPrefetching: [String] = []

    public init(
        where predicate: Predicate<M>? = nil, matching condition: Condition = .always, sortBy: [SortBy<M>] = [],
        limit: Int? = nil, offset: Int = 0
    ) {
        self.predicate = predicate
        self.condition = condition
        self.sortBy = sortBy
        self.limit = limit
        self.offset = offset
    }
}

/// What to fetch of an entity that may be known only at run time. The same as ``FetchRequest``, by names.
public struct EntityFetchRequest: Sendable, Hashable {
    public var entityName: String
    public var condition: Condition
    public var sortBy: [AttributeSort]
    /// nil: no limit.
    public var limit: Int?
    public var offset: Int
    /// Whether unsaved changes of the context count. When false, the context's parents and the store answer alone.
    public var includesPendingChanges = true
    /// How many objects are made at a time by `fetchInBatches(_:)` and streams; 0: their own default.
    public var fetchBatchSize = 0
    /// Relationships, by name or as a path of names, whose objects are read together with the result.
    public var relationshipKeyPathsForPrefetching: [String] = []

    public init(
        _ entityName: String, matching condition: Condition = .always, sortBy: [AttributeSort] = [], limit: Int? = nil,
        offset: Int = 0
    ) {
        self.entityName = entityName
        self.condition = condition
        self.sortBy = sortBy
        self.limit = limit
        self.offset = offset
    }
}

extension FetchRequest {
    /// The same request, reading the objects of these relationships together with its result.
    public func prefetching(_ relationships: PartialKeyPath<M>...) -> FetchRequest {
        var copy = self
        copy.relationshipKeyPathsForPrefetching += relationships.map { M.name(of: $0) }
        return copy
    }

    /// The request in column numbers. Costs microseconds; throws ``FetchError``.
    func storeQuery(in scope: RequestScope) throws -> StoreQuery {
        guard let entity = scope.model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        var parts = [try condition.storePredicate(on: entity, in: scope)]
        if let predicate {
            parts.insert(try PredicateLowering.lower(predicate, entity: entity.number, in: scope), at: 0)
        }
        return StoreQuery(
            entity: entity.number, predicate: .all(parts), sort: try sortBy.map { try $0.storeSort(on: entity) },
            offset: max(0, offset), limit: limit.map { max(0, $0) })
    }
}

extension EntityFetchRequest {
    /// The request in column numbers. Costs microseconds; throws ``FetchError``.
    func storeQuery(in scope: RequestScope) throws -> StoreQuery {
        guard let entity = scope.model.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        return StoreQuery(
            entity: entity.number, predicate: try condition.storePredicate(on: entity, in: scope),
            sort: try sortBy.map { try entity.storeSort($0.attribute, $0.direction, $0.comparison) },
            offset: max(0, offset), limit: limit.map { max(0, $0) })
    }
}
