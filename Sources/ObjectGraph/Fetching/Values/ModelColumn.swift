import StoreInterface
import StoreModel

/// A ``ResultColumn`` of a model type, created with key paths.
///
/// ```swift
/// let columns: [ModelColumn<Track>] = [.property(\.album, \.title), .sum(\.playCount).named("plays")]
/// ```
public struct ModelColumn<M: PersistentModel>: Sendable, Hashable {
    /// The column, with names instead of key paths.
    public var column: ResultColumn

    init(_ source: ResultColumn.Source) { column = ResultColumn(source) }

    /// Returns a column of an attribute.
    public static func property<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// Returns a column of a to-one relationship: the id of the related object.
    public static func property<N: PersistentModel>(_ keyPath: KeyPath<M, N?>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// Returns a column of an attribute of a related object.
    public static func property<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N?>, _ keyPath: KeyPath<N, V>
    ) -> Self { path(relationship, keyPath) }
    /// A column of each object's id.
    public static var objectID: Self { Self(.objectID) }
    /// A column of the number of objects.
    public static var count: Self { Self(.count) }
    /// Returns a column of the number of objects that have a value.
    public static func count<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.countValues(M.name(of: keyPath))) }
    /// Returns a column of an attribute's sum.
    public static func sum<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.sum(M.name(of: keyPath))) }
    /// Returns a column of an attribute's least value.
    public static func min<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.minimum(M.name(of: keyPath))) }
    /// Returns a column of an attribute's greatest value.
    public static func max<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.maximum(M.name(of: keyPath))) }
    /// Returns a column of an attribute's mean.
    public static func average<V: AttributeValue>(_ keyPath: KeyPath<M, V>) -> Self { Self(.average(M.name(of: keyPath))) }

    /// Returns the column with another name.
    public func named(_ name: String) -> Self {
        var copy = self
        copy.column.name = name
        return copy
    }

    /// Returns a condition on the column, for a request's `having`.
    public func `is`(_ comparison: StorePredicate.Comparison, _ value: some AttributeValue) -> Condition {
        column.is(comparison, value)
    }
}

// Columns of attributes whose types do not conform to `AttributeValue`, and of relationships that are not optional.

extension ModelColumn {
    /// Returns a column of an attribute of a raw-value or `Codable` type. A row has its raw value, or its bytes.
    @_disfavoredOverload
    public static func property<V: Codable>(_ keyPath: KeyPath<M, V>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// Returns a column of an attribute of a raw-value type.
    @_disfavoredOverload
    public static func property<V: RawRepresentable>(_ keyPath: KeyPath<M, V>) -> Self where V.RawValue: AttributeValue {
        Self(.property(M.name(of: keyPath)))
    }
    /// Returns a column of an attribute of a raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func property<V: RawRepresentable & Codable>(_ keyPath: KeyPath<M, V>) -> Self
    where V.RawValue: AttributeValue {
        Self(.property(M.name(of: keyPath)))
    }
    /// Returns a column of an attribute of an optional raw-value type.
    @_disfavoredOverload
    public static func property<V: RawRepresentable>(_ keyPath: KeyPath<M, V?>) -> Self where V.RawValue: AttributeValue {
        Self(.property(M.name(of: keyPath)))
    }
    /// Returns a column of an attribute of an optional raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func property<V: RawRepresentable & Codable>(_ keyPath: KeyPath<M, V?>) -> Self
    where V.RawValue: AttributeValue {
        Self(.property(M.name(of: keyPath)))
    }
    /// Returns a column of the number of objects that have a value of a raw-value type.
    @_disfavoredOverload
    public static func count<V: RawRepresentable>(_ keyPath: KeyPath<M, V>) -> Self where V.RawValue: AttributeValue {
        Self(.countValues(M.name(of: keyPath)))
    }
    /// Returns a column of the number of objects that have a value of an optional raw-value type.
    @_disfavoredOverload
    public static func count<V: RawRepresentable>(_ keyPath: KeyPath<M, V?>) -> Self where V.RawValue: AttributeValue {
        Self(.countValues(M.name(of: keyPath)))
    }
    /// Returns a column of the least raw value of an attribute of a raw-value type.
    @_disfavoredOverload
    public static func min<V: RawRepresentable>(_ keyPath: KeyPath<M, V>) -> Self where V.RawValue: AttributeValue {
        Self(.minimum(M.name(of: keyPath)))
    }
    /// Returns a column of the least raw value of an attribute of an optional raw-value type.
    @_disfavoredOverload
    public static func min<V: RawRepresentable>(_ keyPath: KeyPath<M, V?>) -> Self where V.RawValue: AttributeValue {
        Self(.minimum(M.name(of: keyPath)))
    }
    /// Returns a column of the greatest raw value of an attribute of a raw-value type.
    @_disfavoredOverload
    public static func max<V: RawRepresentable>(_ keyPath: KeyPath<M, V>) -> Self where V.RawValue: AttributeValue {
        Self(.maximum(M.name(of: keyPath)))
    }
    /// Returns a column of the greatest raw value of an attribute of an optional raw-value type.
    @_disfavoredOverload
    public static func max<V: RawRepresentable>(_ keyPath: KeyPath<M, V?>) -> Self where V.RawValue: AttributeValue {
        Self(.maximum(M.name(of: keyPath)))
    }
    /// Returns a column of a to-one relationship that is not optional: the id of the related object.
    public static func property<N: PersistentModel>(_ keyPath: KeyPath<M, N>) -> Self { Self(.property(M.name(of: keyPath))) }
    /// Returns a column of an attribute of a related object, by a relationship that is not optional.
    public static func property<N: PersistentModel, V: AttributeValue>(
        _ relationship: KeyPath<M, N>, _ keyPath: KeyPath<N, V>
    ) -> Self { path(relationship, keyPath) }
    /// Returns a column of an attribute of a raw-value type of a related object.
    @_disfavoredOverload
    public static func property<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N?>, _ keyPath: KeyPath<N, V>
    ) -> Self where V.RawValue: AttributeValue { path(relationship, keyPath) }
    /// Returns a column of an attribute of an optional raw-value type of a related object.
    @_disfavoredOverload
    public static func property<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N?>, _ keyPath: KeyPath<N, V?>
    ) -> Self where V.RawValue: AttributeValue { path(relationship, keyPath) }
    /// Returns a column of an attribute of a raw-value type of a related object.
    @_disfavoredOverload
    public static func property<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N>, _ keyPath: KeyPath<N, V>
    ) -> Self where V.RawValue: AttributeValue { path(relationship, keyPath) }
    /// Returns a column of an attribute of an optional raw-value type of a related object.
    @_disfavoredOverload
    public static func property<N: PersistentModel, V: RawRepresentable>(
        _ relationship: KeyPath<M, N>, _ keyPath: KeyPath<N, V?>
    ) -> Self where V.RawValue: AttributeValue { path(relationship, keyPath) }

    fileprivate static func path<N: PersistentModel>(_ relationship: PartialKeyPath<M>, _ keyPath: PartialKeyPath<N>) -> Self {
        Self(.property(M.name(of: relationship) + "." + N.name(of: keyPath)))
    }
}

extension PersistentModel {
    /// Returns the name of a stored property. For other key paths, returns a name that no entity has, so that using it throws.
    static func name(of keyPath: AnyKeyPath) -> String { columnsByKeyPath[keyPath] ?? RowText.property(keyPath) }
}
