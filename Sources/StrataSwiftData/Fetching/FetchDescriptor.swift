import ObjectGraph

/// A description of a fetch: which objects, in which order, and how many.
///
/// ```swift
/// var upcoming = FetchDescriptor<Trip>(
///     predicate: #Predicate { $0.start > now }, sortBy: [SortDescriptor(\.start)])
/// upcoming.fetchLimit = 10
/// let trips = try context.fetch(upcoming)
/// ```
public struct FetchDescriptor<T: PersistentModel> {
    /// The condition; nil for all objects.
    public var predicate: Predicate<T>?
    /// The order. Objects with equal values are in the order of their insertion.
    public var sortBy: [SortDescriptor<T>]
    /// The largest number of objects; nil for all.
    public var fetchLimit: Int?
    /// The number of objects to skip.
    public var fetchOffset: Int?
    /// Whether the result contains unsaved changes.
    public var includePendingChanges = true
    /// Ignored: properties are read one by one, when they are used.
    public var propertiesToFetch: [PartialKeyPath<T>] = []
    /// The relationships whose objects are read together with the result. Other key paths are ignored, because reading
    /// ahead changes no result.
    public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

    /// Creates a description.
    public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
        self.predicate = predicate
        self.sortBy = sortBy
    }
}

// Key paths are immutable, but not marked as `Sendable`.
extension FetchDescriptor: @unchecked Sendable {}

extension FetchDescriptor {
    /// Returns the request for everything that the store can answer.
    ///
    /// - Parameter sorted: Whether to sort and to limit the result.
    func request(isFiltered: Bool, sorted: [SortBy<T>]?) -> FetchRequest<T> {
        var request = FetchRequest<T>(where: isFiltered ? predicate : nil, sortBy: sorted ?? [])
        if isFiltered, sorted != nil {
            request.limit = fetchLimit
            request.offset = fetchOffset ?? 0
        }
        request.includesPendingChanges = includePendingChanges
        request.relationshipKeyPathsForPrefetching = relationshipKeyPathsForPrefetching.compactMap { keyPath in
            RelationshipType(type(of: keyPath).valueType) == nil ? nil : T.columnsByKeyPath[keyPath]
        }
        return request
    }
}
