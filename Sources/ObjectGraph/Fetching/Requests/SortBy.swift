import StoreInterface

/// The comparison of strings in a sort.
public enum StringComparison: Sendable, Hashable {
    /// By Unicode code point. This is the order of indexes, and the fastest.
    case codePoints
    /// By code point after `lowercased()` of both strings.
    case caseInsensitive

    var caseSensitivity: StorePredicate.CaseSensitivity { self == .codePoints ? .sensitive : .insensitive }
}

/// A sort of a typed request by one attribute: `.init(\.title)`, `.init(\.playCount, .descending)`.
///
/// nil comes first in ascending order and last in descending order. Objects with equal values are in the order of their keys.
///
/// ```swift
/// request.sortBy = [.init(\.playCount, .descending), .init(\.title, comparing: .caseInsensitive)]
/// ```
public struct SortBy<M: PersistentModel>: Sendable, Hashable {
    /// The direction of the sort.
    public let direction: StoreSort.Direction
    /// The comparison of strings.
    public let comparison: StringComparison
    /// The name of the property; nil if the key path refers to no stored property. The request then throws when it is used.
    let property: String?
    let keyPathText: String

    /// Creates a sort by an attribute.
    public init<V: AttributeValue>(_ keyPath: KeyPath<M, V>, _ direction: StoreSort.Direction = .ascending) {
        self.init(path: keyPath, direction, .codePoints)
    }

    /// Creates a sort by a string attribute with a comparison.
    public init(
        _ keyPath: KeyPath<M, String>, _ direction: StoreSort.Direction = .ascending, comparing comparison: StringComparison
    ) {
        self.init(path: keyPath, direction, comparison)
    }

    /// Creates a sort by an optional string attribute with a comparison.
    public init(
        _ keyPath: KeyPath<M, String?>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison
    ) {
        self.init(path: keyPath, direction, comparison)
    }

    private init(path: AnyKeyPath, _ direction: StoreSort.Direction, _ comparison: StringComparison) {
        self.direction = direction
        self.comparison = comparison
        property = M.columnsByKeyPath[path]
        keyPathText = "\(path)"
    }

    func storeSort(on entity: Entity) throws -> StoreSort {
        guard let property else { throw FetchError.unknownProperty(entity: entity.name, property: keyPathText) }
        return try entity.storeSort(property, direction, comparison)
    }
}

/// A sort of a request by names, by one attribute.
///
/// ```swift
/// named.sortBy = [.init("playCount", .descending), .init("title", comparing: .caseInsensitive)]
/// ```
public struct AttributeSort: Sendable, Hashable {
    /// The name of the attribute.
    public var attribute: String
    /// The direction of the sort.
    public var direction: StoreSort.Direction
    /// The comparison of strings.
    public var comparison: StringComparison

    /// Creates a sort by an attribute, whose name is checked when a request uses the sort.
    public init(
        _ attribute: String, _ direction: StoreSort.Direction = .ascending, comparing comparison: StringComparison = .codePoints
    ) {
        self.attribute = attribute
        self.direction = direction
        self.comparison = comparison
    }
}

extension Entity {
    func storeSort(
        _ property: String, _ direction: StoreSort.Direction, _ comparison: StringComparison
    ) throws -> StoreSort {
        guard let column = column(named: property) else {
            if relationship(named: property) != nil { throw FetchError.unsupportedSort(entity: name, property: property) }
            throw FetchError.unknownProperty(entity: name, property: property)
        }
        guard columns[column].destination == nil else { throw FetchError.unsupportedSort(entity: name, property: property) }
        return StoreSort(column: column, direction: direction, caseSensitivity: comparison.caseSensitivity)
    }
}
