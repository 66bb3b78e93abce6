/// Why a request cannot be answered. Thrown before any row is read.
public enum FetchError: Error, Sendable, Hashable {
    /// A part of a predicate that no store can evaluate; `part` names it.
    case unsupportedPredicate(part: String)
    /// A condition is nested deeper than every store evaluates. `depth` is its number of levels; for a `#Predicate` the level at
    /// which lowering ended. A list counts as one level, however many parts it has.
    case conditionTooDeep(entity: String, depth: Int, limit: Int)
    /// The entity or model type is not in the context's model.
    case unknownEntity(String)
    /// The entity has no stored property of that name, or the key path leads to a computed or transient one.
    case unknownProperty(entity: String, property: String)
    /// Results sort by attributes of the fetched entity only.
    case unsupportedSort(entity: String, property: String)
    /// A function that the property's type does not have: only numbers add up.
    case unsupportedAggregate(function: String, entity: String, property: String)
    /// A row that is a group has one value of group-by properties only.
    case notGrouped(entity: String, property: String)
    /// `having` is a condition on groups.
    case havingWithoutGroups(entity: String)
    /// The sum of integers is larger than the attribute's type. Found when the rows have been read.
    case sumTooLarge(entity: String, property: String)
    /// A live result needs at least one sort, because positions mean nothing without an order.
    case sortRequired(entity: String)
}

extension FetchError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unsupportedPredicate(let part):
            "a predicate uses \(part), which cannot be evaluated in a store; fetch more and filter in Swift"
        case .conditionTooDeep(let entity, let depth, let limit):
            "cannot evaluate a condition on \(entity): it is nested \(depth) levels deep, and \(limit) are supported. "
                + "Put the parts of nested lists into one list, or fetch more and filter in Swift."
        case .unknownEntity(let name):
            "the model has no entity \(name); give the container that type"
        case .unknownProperty(let entity, let property):
            "\(entity) has no stored property \(property); computed and transient ones cannot be fetched by"
        case .unsupportedSort(let entity, let property):
            "\(entity) cannot be sorted by \(property), which is a relationship; sort by an attribute"
        case .unsupportedAggregate(let function, let entity, let property):
            "\(function) of \(entity).\(property) cannot be computed, it is no number; use count, min or max"
        case .notGrouped(let entity, let property):
            "\(property) has several values in a group of \(entity); group by it, or fetch its min or max"
        case .havingWithoutGroups(let entity):
            "a request of \(entity) has a condition on groups but no groups; group by a property, or put it into matching"
        case .sumTooLarge(let entity, let property):
            "the sum of \(entity).\(property) is larger than a 64-bit number; use the average and the count"
        case .sortRequired(let entity):
            "a live result of \(entity) needs a sort; give the request at least one"
        }
    }
}
