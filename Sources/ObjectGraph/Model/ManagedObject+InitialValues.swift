/// Initial values of relationships, for the init accessors that the `@Model` macro generates.
///
/// Swift also runs the initial values of properties when a model is created for a stored object. In that case these methods do nothing.
extension ManagedObject {
    /// Sets the initial destination of a to-one relationship of a detached object.
    public func initializeToOne<M: PersistentModel>(_ relationship: Int, _ column: Int, to other: M?) {
        guard state == .detached ? other != nil || detachedState?.toOne.isEmpty == false : isBeingInitialized else { return }
        setToOne(relationship, column, to: other)
    }

    /// Sets the initial destinations of a to-many relationship of a detached object.
    public func initializeToMany<M: PersistentModel>(_ relationship: Int, to others: [M]) {
        guard state == .detached ? !others.isEmpty || detachedState?.toMany.isEmpty == false : isBeingInitialized else {
            return
        }
        setToMany(relationship, to: others)
    }
}

/// Overloads that the compiler selects if no other overload fits. The getter's is unavailable, for its error message. The others accept
/// everything, so that there is one error per property.
extension ManagedObject {
    /// Unavailable. The compiler selects it for a type that cannot be stored.
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func get<T>(_ column: Int) -> T { preconditionFailure("not an attribute") }

    /// Unavailable. The compiler selects it for a relationship to a type that is no model.
    @available(*, unavailable, message: "a relationship leads to a model; a value is stored without '@Relationship'")
    @_disfavoredOverload
    public func toOne<T>(_ relationship: Int, _ column: Int) -> T? { nil }

    /// Selected for a relationship to a type that is no model, which the getter reports.
    @_disfavoredOverload
    public func setToOne<T>(_ relationship: Int, _ column: Int, to other: T?) { preconditionFailure("not a model") }

    /// Selected for a relationship to a type that is no model, which the getter reports.
    @_disfavoredOverload
    public func initializeToOne<T>(_ relationship: Int, _ column: Int, to other: T?) { preconditionFailure("not a model") }

    /// Unavailable. The compiler selects it for a relationship to a type that is no model.
    @available(*, unavailable, message: "a relationship leads to models; values are stored without '@Relationship'")
    @_disfavoredOverload
    public func toMany<T>(_ relationship: Int) -> [T] { [] }

    /// Selected for a relationship to a type that is no model, which the getter reports.
    @_disfavoredOverload
    public func setToMany<T>(_ relationship: Int, to others: [T]) { preconditionFailure("not a model") }

    /// Selected for a relationship to a type that is no model, which the getter reports.
    @_disfavoredOverload
    public func initializeToMany<T>(_ relationship: Int, to others: [T]) { preconditionFailure("not a model") }
}
