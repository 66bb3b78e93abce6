/// An error in a request. Except as noted, it is thrown before any row is read.
public enum FetchError: Error, Sendable, Hashable {
    /// A part of a predicate cannot be evaluated by any store; `part` describes it.
    case unsupportedPredicate(part: String)
    /// A condition is nested deeper than stores support. A list counts as one level, however many parts it has.
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
            "cannot evaluate a predicate: it uses \(part), which stores do not support. Fetch more objects and filter them in Swift."
        case .conditionTooDeep(let entity, let depth, let limit):
            "cannot evaluate a condition on \(entity): it is nested \(depth) levels deep, and \(limit) are supported. "
                + "Put the parts of nested lists into one list, or fetch more and filter in Swift."
        case .unknownEntity(let name):
            "the model has no entity \(name); give the container that type"
        case .unknownProperty(let entity, let property):
            "\(entity) has no stored property \(property). Computed and transient properties cannot be used in a request."
        case .unsupportedSort(let entity, let property):
            "cannot sort \(entity) by \(property): it is a relationship. Sort by an attribute."
        case .unsupportedAggregate(let function, let entity, let property):
            "cannot compute \(function) of \(entity).\(property): it is not numeric. Use count, min or max."
        case .notGrouped(let entity, let property):
            "cannot fetch \(property) of groups of \(entity): a group has several values of it. Group by it, or fetch its min or max."
        case .havingWithoutGroups(let entity):
            "cannot apply having to \(entity): the request has no groups. Group by a property, or use matching."
        case .sumTooLarge(let entity, let property):
            "cannot compute the sum of \(entity).\(property): it is larger than a 64-bit number. Use the average and the count."
        case .sortRequired(let entity):
            "cannot create a live result of \(entity): the request has no sort. Add at least one."
        }
    }
}
