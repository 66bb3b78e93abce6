/// Why a request cannot be answered. Thrown before any row is read.
public enum FetchError: Error, Sendable, Hashable {
    /// A part of a predicate that no store can evaluate; `part` names it.
    case unsupportedPredicate(part: String)
    /// The entity or model type is not in the context's model.
    case unknownEntity(String)
    /// The entity has no stored property of that name, or the key path leads to a computed or transient one.
    case unknownProperty(entity: String, property: String)
    /// Results sort by attributes of the fetched entity only.
    case unsupportedSort(entity: String, property: String)
    /// A live result needs at least one sort, because positions mean nothing without an order.
    case sortRequired(entity: String)
}

extension FetchError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unsupportedPredicate(let part):
            "a predicate uses \(part), which cannot be evaluated in a store; fetch more and filter in Swift"
        case .unknownEntity(let name):
            "the model has no entity \(name); give the container that type"
        case .unknownProperty(let entity, let property):
            "\(entity) has no stored property \(property); computed and transient ones cannot be fetched by"
        case .unsupportedSort(let entity, let property):
            "\(entity) cannot be sorted by \(property), which is a relationship; sort by an attribute"
        case .sortRequired(let entity):
            "a live result of \(entity) needs a sort; give the request at least one"
        }
    }
}
