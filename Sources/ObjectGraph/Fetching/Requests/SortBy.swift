import StoreInterface

/// How a sort compares strings.
public enum StringComparison: Sendable, Hashable {
    /// By Unicode code point: what indexes hold, and the fastest.
    case codePoints
    /// By code point after `lowercased()` of both.
    case caseInsensitive

    var caseSensitivity: StorePredicate.CaseSensitivity { self == .codePoints ? .sensitive : .insensitive }
}

/// One attribute to sort the results of a typed request by: `.init(\.title)`, `.init(\.playCount, .descending)`.
///
/// nil comes first when ascending and last when descending. Objects that compare equal keep the order of their keys.
public struct SortBy<M: PersistentModel>: Sendable, Hashable {
    public let direction: StoreSort.Direction
    public let comparison: StringComparison
    /// nil when the key path leads to no stored property; the request throws when it is used.
    let property: String?
    let keyPathText: String

    public init<V: AttributeValue>(_ keyPath: KeyPath<M, V>, _ direction: StoreSort.Direction = .ascending) {
        self.init(path: keyPath, direction, .codePoints)
    }

    public init(
        _ keyPath: KeyPath<M, String>, _ direction: StoreSort.Direction = .ascending, comparing comparison: StringComparison
    ) {
        self.init(path: keyPath, direction, comparison)
    }

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

/// One attribute, by name, to sort the results of a run-time request by.
public struct AttributeSort: Sendable, Hashable {
    public var attribute: String
    public var direction: StoreSort.Direction
    public var comparison: StringComparison

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
