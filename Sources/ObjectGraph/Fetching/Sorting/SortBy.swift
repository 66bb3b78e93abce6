import StoreInterface
import StoreModel

/// The comparison of strings in a sort.
///
/// ```swift
/// let request = FetchRequest<Track>(sortBy: [.init(\.title, comparing: .localizedStandard)])
/// ```
public enum StringComparison: Sendable, Hashable {
    /// By Unicode code point. This is the order of indexes, and the fastest.
    case codePoints
    /// By code point after `lowercased()` of both strings.
    case caseInsensitive
    /// By code point, but runs of decimal digits by their numbers: `b2` before `b10`.
    case numeric
    /// As people sort titles: without case, diacritics and width, and digits by their numbers. Equal strings are by code point.
    ///
    /// The order is the same in each locale, because it does not use the settings of the process. Letters with diacritics sort with
    /// their base letter, and other letters by code point. Sorts by this and by ``numeric`` use no index and are made in memory.
    case localizedStandard

    var caseSensitivity: StorePredicate.CaseSensitivity { self == .caseInsensitive ? .insensitive : .sensitive }

    var textOrder: TextOrder? {
        switch self {
        case .codePoints, .caseInsensitive: nil
        case .numeric: .numeric
        case .localizedStandard: .localizedStandard
        }
    }
}

/// The place of nil in a sort (S132).
///
/// ```swift
/// let request = FetchRequest<Track>(sortBy: [.init(\.playCount, .descending, nils: .last), .init(\.title)])
/// ```
public enum NilPosition: Sendable, Hashable {
    /// nil before all values in ascending order, and after them in descending order.
    case byDirection
    /// nil before all values, in either direction.
    case first
    /// nil after all values, in either direction.
    case last

    func order(_ direction: StoreSort.Direction) -> StoreSort.NullOrder {
        switch self {
        case .byDirection: .lowest
        case .first: direction == .ascending ? .lowest : .highest
        case .last: direction == .ascending ? .highest : .lowest
        }
    }
}

/// A sort of a typed request by one attribute: `.init(\.title)`, `.init(\.playCount, .descending)`, `.init(\.album, by: \.title)`.
///
/// The attribute of a related object follows the key path of the to-one relationship. Such sorts are made in memory. nil comes first in
/// ascending order and last in descending order, unless `nils` has another place for it. Objects with equal values are in the order of
/// their keys.
///
/// ```swift
/// request.sortBy = [.init(\.playCount, .descending), .init(\.title, comparing: .caseInsensitive)]
/// ```
public struct SortBy<M: PersistentModel>: Sendable, Hashable {
    /// The direction of the sort.
    public let direction: StoreSort.Direction
    /// The comparison of strings.
    public let comparison: StringComparison
    /// The place of nil.
    public let nils: NilPosition
    /// The name of the property, or a path of names; nil if the key path refers to no stored property. The request then throws when it
    /// is used.
    let property: String?
    let keyPathText: String

    /// Creates a sort by an attribute.
    public init<V: AttributeValue>(
        _ keyPath: KeyPath<M, V>, _ direction: StoreSort.Direction = .ascending, nils: NilPosition = .byDirection
    ) {
        self.init(path: keyPath, direction, .codePoints, nils: nils)
    }

    /// Creates a sort by an attribute of a raw-value type, in the order of the raw values.
    @_disfavoredOverload
    public init<V: RawRepresentable>(
        _ keyPath: KeyPath<M, V>, _ direction: StoreSort.Direction = .ascending, nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(path: keyPath, direction, .codePoints, nils: nils)
    }

    /// Creates a sort by an attribute of an optional raw-value type, in the order of the raw values.
    @_disfavoredOverload
    public init<V: RawRepresentable>(
        _ keyPath: KeyPath<M, V?>, _ direction: StoreSort.Direction = .ascending, nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(path: keyPath, direction, .codePoints, nils: nils)
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
        comparing comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.init(path: keyPath, direction, comparison, nils: nils)
    }

    /// Creates a sort by the key path of an attribute whose type is not known.
    package init(
        path: AnyKeyPath, _ direction: StoreSort.Direction, _ comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.direction = direction
        self.comparison = comparison
        self.nils = nils
        property = M.columnsByKeyPath[path]
        keyPathText = Self.text(of: path)
    }

    /// Creates a sort by the positions of objects in an ordered relationship: `.init(positionIn: \.album)` for the tracks of an album.
    ///
    /// Objects that lead to one destination are in the order of its relationship. The sort is made in memory. If the inverse of the
    /// relationship is not ordered, the request throws.
    public init<N: PersistentModel>(positionIn relationship: KeyPath<M, N?>, _ direction: StoreSort.Direction = .ascending) {
        self.init(position: relationship, direction)
    }

    /// Creates a sort by the positions of objects in an ordered relationship whose inverse is not optional.
    public init<N: PersistentModel>(positionIn relationship: KeyPath<M, N>, _ direction: StoreSort.Direction = .ascending) {
        self.init(position: relationship, direction)
    }

    private init(position relationship: AnyKeyPath, _ direction: StoreSort.Direction) {
        self.direction = direction
        comparison = .codePoints
        nils = .byDirection
        property = M.columnsByKeyPath[relationship].map(ColumnSchema.positionName)
        keyPathText = Self.text(of: relationship)
    }

    init<N: PersistentModel>(through relationship: AnyKeyPath, _ sort: SortBy<N>) {
        direction = sort.direction
        comparison = sort.comparison
        nils = sort.nils
        let name = M.columnsByKeyPath[relationship]
        property = name.flatMap { name in sort.property.map { "\(name).\($0)" } }
        keyPathText = name == nil ? Self.text(of: relationship) : sort.keyPathText
    }

    /// Returns the name of a key path's property for messages. The parts of an optional chain have no names at run time.
    private static func text(of keyPath: AnyKeyPath) -> String {
        guard M.columnsByKeyPath[keyPath] == nil, "\(keyPath)".contains("?.") else { return RowText.property(keyPath) }
        return FetchError.optionalChain
    }

    func storeSort(on entity: Entity, in model: Model) throws -> StoreSort {
        guard let property else {
            throw keyPathText == FetchError.optionalChain
                ? FetchError.unsupportedSort(entity: entity.name, property: keyPathText)
                : .unknownProperty(entity: entity.name, property: keyPathText)
        }
        return try entity.storeSort(property, direction: direction, comparison: comparison, nils: nils, in: model)
    }
}

/// A sort of a request by names, by one attribute or by a path to one through to-one relationships: `"album.artist.name"`.
///
/// ```swift
/// named.sortBy = [.init("playCount", .descending), .init("title", comparing: .caseInsensitive)]
/// ```
public struct AttributeSort: Sendable, Hashable {
    /// The name of the attribute, or a path of names that ends with one.
    public var attribute: String
    /// The direction of the sort.
    public var direction: StoreSort.Direction
    /// The comparison of strings.
    public var comparison: StringComparison
    /// The place of nil.
    public var nils: NilPosition

    /// Creates a sort by an attribute, whose name is checked when a request uses the sort.
    public init(
        _ attribute: String, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison = .codePoints, nils: NilPosition = .byDirection
    ) {
        self.attribute = attribute
        self.direction = direction
        self.comparison = comparison
        self.nils = nils
    }
}

extension Entity {
    func storeSort(
        _ property: String, direction: StoreSort.Direction, comparison: StringComparison, nils: NilPosition, in model: Model
    ) throws -> StoreSort {
        var entity = self
        var path: [ColumnIndex] = []
        let names = self.names(onPath: property, in: model)
        for name in names.dropLast() {
            guard let column = entity.column(named: name), let destination = entity.columns[column].destination else {
                throw entity.cannotSort(by: name)
            }
            path.append(column)
            entity = model.entities[destination]
        }
        guard let name = names.last, let column = entity.column(named: name), entity.columns[column].destination == nil else {
            throw entity.cannotSort(by: names.last ?? property)
        }
        var sort = StoreSort(column: column, direction: direction, caseSensitivity: comparison.caseSensitivity)
        sort.path = path
        if entity.columns[column].isOptional || !path.isEmpty { sort.nulls = nils.order(direction) }
        if entity.columns[column].type == .string { sort.textOrder = comparison.textOrder }
        return sort
    }

    private func cannotSort(by name: String) -> FetchError {
        let isRelationship = relationship(named: name) != nil
        return isRelationship
            ? .unsupportedSort(entity: self.name, property: name) : .unknownProperty(entity: self.name, property: name)
    }
}
