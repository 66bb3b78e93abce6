import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request for objects of a model type. A request is a value that you can use in any context.
///
/// Creating a request reads nothing. It is checked when it is used, before any row is read: see ``FetchError``.
///
/// ```swift
/// let request = FetchRequest<Track>(
///     where: #Predicate { $0.playCount > 100 }, sortBy: [.init(\.title)], limit: 20)
/// let titles = try context.fetch(request).map(\.title)
/// ```
public struct FetchRequest<M: PersistentModel>: Sendable {
    /// A condition that the compiler checks; nil selects every object.
    public var predicate: Predicate<M>?
    /// An additional condition by property names, for tests that `#Predicate` cannot express, such as suffixes and case-insensitive
    /// matches.
    public var condition: Condition
    /// The order of the result.
    public var sortBy: [SortBy<M>]
    /// The maximum number of objects; nil for no limit.
    public var limit: Int?
    /// The number of objects to skip.
    public var offset: Int
    /// A Boolean value that indicates whether the result includes unsaved changes of the context. If false, only its parents and the
    /// store are read.
    ///
    /// A live result follows its context with its unsaved changes. If this is false, creating one throws
    /// ``FetchError/pendingChangesRequired(entity:)``.
    public var includesPendingChanges = true
    /// The number of objects per batch in `fetchInBatches(_:)` and streams; 0 for their default.
    public var fetchBatchSize = 0
    /// Relationships, as names or paths of names, whose objects are read together with the result.
    public var relationshipKeyPathsForPrefetching: [String] = []
    /// The conditions that ``filter(_:)`` has added.
    private(set) var filters: [Predicate<M>] = []

    /// Creates a request for objects that satisfy both conditions. Without arguments, it selects all objects in the order of
    /// their keys.
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

/// A request for objects of an entity that may be known only at run time. It corresponds to ``FetchRequest``, with names instead of
/// key paths.
///
/// ```swift
/// let request = EntityFetchRequest(
///     "Track", matching: .compare("playCount", .greater, to: 100), sortBy: [.init("title")], limit: 20)
/// let titles = try context.fetch(request).map { $0["title"] }
/// ```
public struct EntityFetchRequest: Sendable, Hashable {
    /// The name of the entity.
    public var entityName: String
    /// The condition on the objects.
    public var condition: Condition
    /// The order of the result.
    public var sortBy: [AttributeSort]
    /// The maximum number of objects; nil for no limit.
    public var limit: Int?
    /// The number of objects to skip.
    public var offset: Int
    /// A Boolean value that indicates whether the result includes unsaved changes of the context. If false, only its parents and the
    /// store are read.
    ///
    /// A live result follows its context with its unsaved changes. If this is false, creating one throws
    /// ``FetchError/pendingChangesRequired(entity:)``.
    public var includesPendingChanges = true
    /// The number of objects per batch in `fetchInBatches(_:)` and streams; 0 for their default.
    public var fetchBatchSize = 0
    /// Relationships, as names or paths of names, whose objects are read together with the result.
    public var relationshipKeyPathsForPrefetching: [String] = []

    /// Creates a request for an entity by name. By default, it selects all objects in the order of their keys.
    ///
    /// The names are checked when the request is used.
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
    /// Returns a copy of the request for those of its objects that satisfy one more predicate.
    ///
    /// The parts of a long predicate, which the compiler may be unable to check in reasonable time, can be passed one by one. The result
    /// is the same as that of one predicate whose parts are joined by `&&`.
    ///
    /// ```swift
    /// let popular = FetchRequest<Track>(where: #Predicate { $0.playCount > 100 })
    /// let live = popular.filter(#Predicate { $0.title.contains("live") })
    /// ```
    public func filter(_ predicate: Predicate<M>) -> FetchRequest {
        var copy = self
        copy.filters.append(predicate)
        return copy
    }

    /// Returns a copy of the request that also reads the objects of these relationships together with its result.
    public func prefetching(_ relationships: PartialKeyPath<M>...) -> FetchRequest {
        var copy = self
        copy.relationshipKeyPathsForPrefetching += relationships.map { M.name(of: $0) }
        return copy
    }

    /// All conditions that the compiler has checked.
    var predicates: [Predicate<M>] { (predicate.map { [$0] } ?? []) + filters }

    /// Returns the request with the positions of columns. Takes microseconds; throws ``FetchError``.
    func storeQuery(in scope: RequestScope) throws -> StoreQuery {
        guard let entity = scope.model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        var parts = try predicates.map { try PredicateLowering.lower($0, entity: entity.number, in: scope) }
        parts.append(try condition.storePredicate(on: entity, in: scope))
        if let selection = entity.selection { parts.append(selection) }
        return StoreQuery(
            entity: entity.number, predicate: .all(parts), sort: try sortBy.map { try $0.storeSort(on: entity, in: scope.model) },
            offset: max(0, offset), limit: limit.map { max(0, $0) })
    }
}

extension EntityFetchRequest {
    /// Returns the request with the positions of columns. Takes microseconds; throws ``FetchError``.
    func storeQuery(in scope: RequestScope) throws -> StoreQuery {
        guard let entity = scope.model.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        let predicate = try condition.storePredicate(on: entity, in: scope)
        return StoreQuery(
            entity: entity.number, predicate: entity.selection.map { .all([predicate, $0]) } ?? predicate,
            sort: try sortBy.map {
                try entity.storeSort(
                    $0.attribute, direction: $0.direction, comparison: $0.comparison, nils: $0.nils, in: scope.model)
            },
            offset: max(0, offset), limit: limit.map { max(0, $0) })
    }
}
