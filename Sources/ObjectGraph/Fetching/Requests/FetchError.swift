/// An error in a request. Except as noted, it is thrown before any row is read.
public enum FetchError: Error, Sendable, Hashable {
    /// A part of a predicate cannot be evaluated by any store; `part` describes it.
    case unsupportedPredicate(part: String)
    /// A condition is nested deeper than stores evaluate. A list counts as one level, however many parts it has.
    ///
    /// `depth` is the number of levels. For a `#Predicate`, it is the level at which its conversion stopped.
    case conditionTooDeep(entity: String, depth: Int, limit: Int)
    /// The entity or model type is not in the context's model.
    case unknownEntity(String)
    /// The entity has no stored property with this name, or the key path refers to a computed or transient property.
    case unknownProperty(entity: String, property: String)
    /// The sort is not by an attribute of the fetched entity.
    case unsupportedSort(entity: String, property: String)
    /// The function is not available for the property's type. Only numbers have sums and averages.
    case unsupportedAggregate(function: String, entity: String, property: String)
    /// A grouped row contains a property that is not in the group-by properties, so it has no single value.
    case notGrouped(entity: String, property: String)
    /// `having` is used without groups. It is a condition on groups.
    case havingWithoutGroups(entity: String)
    /// The sum of integers is larger than the attribute's type. Thrown after the rows were read.
    case sumTooLarge(entity: String, property: String)
    /// A live result has no sort. It needs one, because its changes are described by position.
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
