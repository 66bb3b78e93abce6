import StoreInterface
import StoreModel

/// Typed access by number to properties whose kind the compiler chooses by their type: an attribute, or a relationship. For the
/// accessors that the `@Model` macro generates.
///
/// Overload resolution prefers, in this order: an ``AttributeValue``, a model or a collection of models, a raw-value type, and another
/// `Codable` type. Without a relationship number, only attributes fit.
extension ManagedObject {
    /// Whether the object is new: not yet inserted, or created together with its model. Init accessors set values of such objects only,
    /// because Swift also runs initial values when a model is created for a stored object.
    public var takesInitialValues: Bool { state == .detached || isBeingInitialized }

    // MARK: Attributes

    /// Returns an attribute.
    @inlinable @inline(__always)
    public func property<V: AttributeValue>(_ column: Int, _ relationship: Int = 0) -> V { get(column) }

    /// Sets an attribute.
    @inlinable @inline(__always)
    public func setProperty<V: AttributeValue>(_ column: Int, _ relationship: Int = 0, to value: V) { set(column, to: value) }

    /// Returns an attribute of a raw-value type.
    @_disfavoredOverload @inlinable
    public func property<V: RawRepresentable>(_ column: Int, _ relationship: Int = 0) -> V where V.RawValue: AttributeValue {
        get(column, as: RawAttribute<V>.self).value
    }

    /// Sets an attribute of a raw-value type.
    @_disfavoredOverload @inlinable
    public func setProperty<V: RawRepresentable>(_ column: Int, _ relationship: Int = 0, to value: V)
    where V.RawValue: AttributeValue {
        set(column, to: RawAttribute(value))
    }

    /// Returns an attribute of an optional raw-value type.
    @_disfavoredOverload @inlinable
    public func property<V: RawRepresentable>(_ column: Int, _ relationship: Int = 0) -> V? where V.RawValue: AttributeValue {
        get(column, as: RawAttribute<V>?.self)?.value
    }

    /// Sets an attribute of an optional raw-value type.
    @_disfavoredOverload @inlinable
    public func setProperty<V: RawRepresentable>(_ column: Int, _ relationship: Int = 0, to value: V?)
    where V.RawValue: AttributeValue {
        set(column, to: RawAttribute(ifPresent: value))
    }

    /// Returns an attribute of a raw-value type that is also `Codable`.
    @_disfavoredOverload @inlinable
    public func property<V: RawRepresentable & Codable>(_ column: Int, _ relationship: Int = 0) -> V
    where V.RawValue: AttributeValue {
        get(column, as: RawAttribute<V>.self).value
    }

    /// Sets an attribute of a raw-value type that is also `Codable`.
    @_disfavoredOverload @inlinable
    public func setProperty<V: RawRepresentable & Codable>(_ column: Int, _ relationship: Int = 0, to value: V)
    where V.RawValue: AttributeValue {
        set(column, to: RawAttribute(value))
    }

    /// Returns an attribute of an optional raw-value type that is also `Codable`.
    @_disfavoredOverload @inlinable
    public func property<V: RawRepresentable & Codable>(_ column: Int, _ relationship: Int = 0) -> V?
    where V.RawValue: AttributeValue {
        get(column, as: RawAttribute<V>?.self)?.value
    }

    /// Sets an attribute of an optional raw-value type that is also `Codable`.
    @_disfavoredOverload @inlinable
    public func setProperty<V: RawRepresentable & Codable>(_ column: Int, _ relationship: Int = 0, to value: V?)
    where V.RawValue: AttributeValue {
        set(column, to: RawAttribute(ifPresent: value))
    }

    /// Returns an attribute of a `Codable` type, which may be optional. Decodes JSON.
    @_disfavoredOverload @inlinable
    public func property<V: Codable>(_ column: Int, _ relationship: Int = 0) -> V {
        get(column, as: EncodedAttribute<V>.self).value
    }

    /// Sets an attribute of a `Codable` type, which may be optional. Encodes JSON.
    @_disfavoredOverload @inlinable
    public func setProperty<V: Codable>(_ column: Int, _ relationship: Int = 0, to value: V) {
        set(column, to: EncodedAttribute(value))
    }

    // MARK: Relationships

    /// Returns the destination of a to-one relationship, or nil.
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> M? { toOne(relationship, column) }

    /// Sets the destination of a to-one relationship.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to other: M?) {
        setToOne(relationship, column, to: other)
    }

    /// Returns the destination of a to-one relationship that is not optional. Reading it when there is none stops the program.
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> M {
        guard let destination = toOne(relationship, column, as: M.self) else { stopWithoutDestination(relationship) }
        return destination
    }

    /// Sets the destination of a to-one relationship that is not optional.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to other: M) {
        setToOne(relationship, column, to: other)
    }

    /// Returns the destinations of a to-many relationship, in the order of their keys. O(objects).
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> [M] { toMany(relationship) }

    /// Replaces the destinations of a to-many relationship.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to others: [M]) {
        setToMany(relationship, to: others)
    }

    /// Returns the destinations of a to-many relationship, in the order of their keys; never nil. O(objects).
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> [M]? { toMany(relationship, as: M.self) }

    /// Replaces the destinations of a to-many relationship. nil removes all.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to others: [M]?) {
        setToMany(relationship, to: others ?? [])
    }

    /// Returns the destinations of a to-many relationship. O(objects).
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> Set<M> {
        Set(toMany(relationship, as: M.self))
    }

    /// Replaces the destinations of a to-many relationship.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to others: Set<M>) {
        setToMany(relationship, to: Array(others))
    }

    /// Returns the destinations of a to-many relationship; never nil. O(objects).
    public func property<M: PersistentModel>(_ column: Int, _ relationship: Int) -> Set<M>? {
        Set(toMany(relationship, as: M.self))
    }

    /// Replaces the destinations of a to-many relationship.
    public func setProperty<M: PersistentModel>(_ column: Int, _ relationship: Int, to others: Set<M>?) {
        setToMany(relationship, to: others.map(Array.init) ?? [])
    }

    // MARK: Mistakes. The getter reports them, at the property; the setter accepts everything, so that there is one error.

    /// Unavailable. The compiler selects it for a type that cannot be stored.
    @_disfavoredOverload
    @available(
        *, unavailable, message: "this type cannot be stored; make it Codable, or mark the property @Transient"
    )
    public func property<V>(_ column: Int, _ relationship: Int = 0) -> V { preconditionFailure("not a stored type") }

    /// Unavailable. The compiler selects it for a relationship that is marked as an attribute.
    @available(*, unavailable, message: "a relationship is not an attribute; it is always indexed. Remove '@Attribute'")
    public func property<M: PersistentModel>(_ column: Int) -> M? { nil }

    /// Unavailable. The compiler selects it for a relationship that is marked as an attribute.
    @available(*, unavailable, message: "a relationship is not an attribute; it is always indexed. Remove '@Attribute'")
    public func property<M: PersistentModel>(_ column: Int) -> [M] { [] }

    /// Selected for a type that cannot be stored, which the getter reports.
    @_disfavoredOverload
    public func setProperty<V>(_ column: Int, _ relationship: Int = 0, to value: V) {
        preconditionFailure("\(V.self) cannot be stored. Make it Codable, or mark the property @Transient.")
    }

    private func stopWithoutDestination(_ relationship: Int) -> Never {
        let name =
            state == .registered
            ? "\(definition.name).\(definition.relationship(numbered: relationship)?.name ?? "")" : "the relationship"
        preconditionFailure(
            "cannot read \(name): the object to which it leads was deleted or never set. Make the property optional, or delete both "
                + "with a cascade rule.")
    }
}
