import StoreInterface
import StoreModel

// Sorts by an attribute of a related object. Each form has a variant for a relationship that is not optional.

extension SortBy {
    /// Creates a sort by an attribute of a related object. Objects without one sort as nil.
    public init<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N?>, by attribute: KeyPath<N, V>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort by an attribute of a raw-value type of a related object. Objects without one sort as nil.
    @_disfavoredOverload
    public init<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N?>, by attribute: KeyPath<N, V>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort by an attribute of an optional raw-value type of a related object. Objects without one sort as nil.
    @_disfavoredOverload
    public init<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N?>, by attribute: KeyPath<N, V?>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort with a comparison by a string attribute of a related object. Objects without one sort as nil.
    public init<N: PersistentModel>(
        _ relationship: KeyPath<M, N?>, by attribute: KeyPath<N, String>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(path: attribute, direction, comparison, nils: nils))
    }

    /// Creates a sort with a comparison by an optional string attribute of a related object. Objects without one sort as nil.
    public init<N: PersistentModel>(
        _ relationship: KeyPath<M, N?>, by attribute: KeyPath<N, String?>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(attribute, direction, comparing: comparison, nils: nils))
    }

    /// Creates a sort by a sort of a related object. Objects without one sort as nil: `.init(\.album, .init(\.artist, by: \.name))`.
    public init<N: PersistentModel>(_ relationship: KeyPath<M, N?>, _ sort: SortBy<N>) {
        self.init(through: relationship, sort)
    }

    /// Creates a sort by an attribute of a related object, by a relationship that is not optional.
    public init<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N>, by attribute: KeyPath<N, V>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort by an attribute of a raw-value type of a related object, by a relationship that is not optional.
    @_disfavoredOverload
    public init<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N>, by attribute: KeyPath<N, V>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort by an attribute of an optional raw-value type of a related object, by a relationship that is not optional.
    @_disfavoredOverload
    public init<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N>, by attribute: KeyPath<N, V?>, _ direction: StoreSort.Direction = .ascending,
        nils: NilPosition = .byDirection
    ) where V.RawValue: AttributeValue {
        self.init(relationship, SortBy<N>(attribute, direction, nils: nils))
    }

    /// Creates a sort with a comparison by a string attribute of a related object, by a relationship that is not optional.
    public init<N: PersistentModel>(
        _ relationship: KeyPath<M, N>, by attribute: KeyPath<N, String>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(path: attribute, direction, comparison, nils: nils))
    }

    /// Creates a sort with a comparison by an optional string attribute of a related object, by a relationship that is not optional.
    public init<N: PersistentModel>(
        _ relationship: KeyPath<M, N>, by attribute: KeyPath<N, String?>, _ direction: StoreSort.Direction = .ascending,
        comparing comparison: StringComparison, nils: NilPosition = .byDirection
    ) {
        self.init(relationship, SortBy<N>(attribute, direction, comparing: comparison, nils: nils))
    }

    /// Creates a sort by a sort of a related object, by a relationship that is not optional: `.init(\.album, .init(\.artist, by: \.name))`.
    public init<N: PersistentModel>(_ relationship: KeyPath<M, N>, _ sort: SortBy<N>) {
        self.init(through: relationship, sort)
    }
}
