/// Initial values of relationships, for the init accessors that the `@Model` macro generates.
///
/// Swift also runs the initial values of properties when a model is created for a stored object. In that case these methods do nothing.
extension ManagedObject {
    /// Sets the initial destination of a to-one relationship of a detached object.
    public func initializeToOne<M: PersistentModel>(_ relationship: Int, _ column: Int, to other: M?) {
        guard state == .detached, other != nil || detachedState?.toOne.isEmpty == false else { return }
        setToOne(relationship, column, to: other)
    }

    /// Sets the initial destinations of a to-many relationship of a detached object.
    public func initializeToMany<M: PersistentModel>(_ relationship: Int, to others: [M]) {
        guard state == .detached, !others.isEmpty || detachedState?.toMany.isEmpty == false else { return }
        setToMany(relationship, to: others)
    }
}

/// Overloads that the compiler selects if no other overload fits. They exist for their error messages.
extension ManagedObject {
    /// Unavailable. The compiler selects it for a type that cannot be stored.
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func get<T>(_ column: Int) -> T { preconditionFailure("not an attribute") }

    /// Unavailable. The compiler selects it for a type that cannot be stored.
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func set<T>(_ column: Int, to value: T) {}

    /// Unavailable. The compiler selects it for a type that cannot be stored.
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func initialize<T>(_ column: Int, to value: T) {}

    /// Unavailable. The compiler selects it for a model without `@Relationship`.
    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func get<M: PersistentModel>(_ column: Int) -> M? { nil }

    /// Unavailable. The compiler selects it for a list of models without `@Relationship`.
    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func get<M: PersistentModel>(_ column: Int) -> [M] { [] }

    /// Unavailable. The compiler selects it for a model without `@Relationship`.
    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func set<M: PersistentModel>(_ column: Int, to value: M?) {}

    /// Unavailable. The compiler selects it for a list of models without `@Relationship`.
    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func set<M: PersistentModel>(_ column: Int, to value: [M]) {}

    /// Unavailable. The compiler selects it for a model without `@Relationship`.
    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func initialize<M: PersistentModel>(_ column: Int, to value: M?) {}

    /// Unavailable. The compiler selects it for a list of models without `@Relationship`.
    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func initialize<M: PersistentModel>(_ column: Int, to value: [M]) {}
}
