#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An error in a request. Except as noted, it is thrown before any row is read.
///
/// ```swift
/// do {
///     print(try context.fetch(EntityFetchRequest("Track", sortBy: [.init("titel")])))
/// } catch FetchError.unknownProperty(let entity, let property) {
///     print("\(entity) has no property \(property)")
/// }
/// ```
public enum FetchError: Error, Sendable, Hashable {
    /// A part of a predicate can be evaluated neither by a store nor in memory; `part` describes it.
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
    /// The function is not available for the property's type. Only numbers have sums and averages, and no
    /// function takes an attribute of a related object.
    case unsupportedAggregate(function: String, entity: String, property: String)
    /// A grouped row contains a property that is not in the group-by properties, so it has no single value.
    case notGrouped(entity: String, property: String)
    /// `having` is used without groups. It is a condition on groups.
    case havingWithoutGroups(entity: String)
    /// The sum of integers is larger than the attribute's type. Thrown after the rows were read.
    case sumTooLarge(entity: String, property: String)
    /// The attribute has no unique constraint, so that several objects may have a value.
    case notUnique(entity: String, property: String)
    /// A live result has no sort. It needs one, because its changes are described by position.
    case sortRequired(entity: String)
    /// The request of a live result leaves out unsaved changes. A live result follows its context with its unsaved changes.
    case pendingChangesRequired(entity: String)
    /// Sections are by a string that is compared otherwise than by code points, so that equal strings may differ.
    case unsupportedSections(entity: String, property: String)
    /// A row does not fit the type as which it is decoded; `column` is nil if no single column is the cause. Thrown after the rows were
    /// read.
    case undecodableRow(type: String, column: String?, reason: String)
}

extension FetchError {
    /// The kind of failure, without its values.
    public enum Code: String, Sendable, Hashable {
        case unsupportedPredicate, conditionTooDeep, unknownEntity, unknownProperty, unsupportedSort, unsupportedAggregate
        case notGrouped, havingWithoutGroups, sumTooLarge, notUnique, sortRequired, pendingChangesRequired
        case unsupportedSections, undecodableRow
    }

    /// The kind of failure, without its values.
    public var code: Code {
        switch self {
        case .unsupportedPredicate: .unsupportedPredicate
        case .conditionTooDeep: .conditionTooDeep
        case .unknownEntity: .unknownEntity
        case .unknownProperty: .unknownProperty
        case .unsupportedSort: .unsupportedSort
        case .unsupportedAggregate: .unsupportedAggregate
        case .notGrouped: .notGrouped
        case .havingWithoutGroups: .havingWithoutGroups
        case .sumTooLarge: .sumTooLarge
        case .notUnique: .notUnique
        case .sortRequired: .sortRequired
        case .pendingChangesRequired: .pendingChangesRequired
        case .unsupportedSections: .unsupportedSections
        case .undecodableRow: .undecodableRow
        }
    }

    /// One line: what failed, why, and what to do.
    public var message: String { text.line }
}

extension FetchError {
    /// The name in messages of a key path that is an optional chain.
    static let optionalChain = "\\.relationship?.attribute"
}

extension FetchError: LocalizedError, CustomStringConvertible {
    /// The message.
    public var description: String { message }
    /// The message.
    public var errorDescription: String? { message }
    /// The message without the remedy.
    public var failureReason: String? { text.reason }
    /// The remedy alone.
    public var recoverySuggestion: String? { text.suggestion }

    private var text: ErrorText {
        switch self {
        case .unsupportedPredicate(let part):
            ErrorText(
                "cannot evaluate a predicate: it uses \(part), which is not supported",
                remedy: "Fetch with the other conditions, and filter the objects in Swift.")
        case .conditionTooDeep(let entity, let depth, let limit):
            ErrorText(
                "cannot evaluate a condition on \(entity): it is nested \(depth) levels deep, and \(limit) are supported",
                remedy: "Put the parts of nested lists into one list, or fetch more and filter in Swift.")
        case .unknownEntity(let name):
            ErrorText(
                "the model has no entity \(name)", separator: "; ", remedy: "give the container that type")
        case .unknownProperty(let entity, let property):
            ErrorText("\(entity) has no stored property \(property)", remedy: Self.remedy(property))
        case .unsupportedSort(let entity, Self.optionalChain):
            ErrorText(
                "cannot sort \(entity) by \(Self.optionalChain): the parts of an optional chain have no names at run time",
                remedy: "Write .init(\\.relationship, by: \\.attribute).")
        case .unsupportedSort(let entity, let property):
            ErrorText(
                "cannot sort \(entity) by \(property): it is a relationship",
                remedy: "Sort by an attribute.")
        case .unsupportedAggregate(let function, let entity, let property):
            Self.unsupportedAggregate(function, of: "\(entity).\(property)", isPath: property.contains("."))
        case .notGrouped(let entity, let property):
            ErrorText(
                "cannot fetch \(property) of groups of \(entity): a group has several values of it",
                remedy: "Group by it, or fetch its min or max.")
        case .havingWithoutGroups(let entity):
            ErrorText(
                "cannot apply having to \(entity): the request has no groups",
                remedy: "Group by a property, or use matching.")
        case .sumTooLarge(let entity, let property):
            ErrorText(
                "cannot compute the sum of \(entity).\(property): it is larger than the largest number of its type",
                remedy: "Use the average and the count.")
        case .notUnique(let entity, let property):
            ErrorText(
                "cannot find one object by \(entity).\(property): the attribute is not unique",
                remedy: "Declare it unique, or use first(where:).")
        case .sortRequired(let entity):
            ErrorText(
                "cannot create a live result of \(entity): the request has no sort",
                remedy: "Add at least one.")
        case .pendingChangesRequired(let entity):
            ErrorText(
                "cannot create a live result of \(entity): the request leaves out unsaved changes, which a live result follows",
                remedy: "Set includesPendingChanges to true, or fetch the request.")
        case .unsupportedSections(let entity, let property):
            ErrorText(
                "cannot make sections of \(entity) by \(property): it is not compared by code points",
                remedy: "Leave out the comparison, or make sections by an attribute that contains the section's name.")
        case .undecodableRow(let type, let column, let reason):
            ErrorText(
                "cannot decode a row as \(type): \(column.map { "the column \($0): " } ?? "")\(reason)",
                remedy: "Name the request's columns after the properties of the type, and give these the types of the attributes."
            )
        }
    }

    private static func unsupportedAggregate(_ function: String, of property: String, isPath: Bool) -> ErrorText {
        guard isPath else {
            return ErrorText(
                "cannot compute \(function) of \(property): it is not numeric",
                remedy: "Use count, min or max.")
        }
        return ErrorText(
            "cannot compute \(function) of \(property): it is an attribute of a related object, or not numeric",
            remedy: "Fetch it as a property, and compute the result in Swift, or request values of the related entity.")
    }

    /// Returns what to do in place of a property that is not stored.
    private static func remedy(_ property: String) -> String {
        property.hasSuffix(RowText.withoutName)
            ? "Use the stored properties that it reads, or filter the objects in Swift."
            : "Check the name. Instead of a computed or transient property, use the stored properties that it reads."
    }
}
