/// First values of relationships, for the `@Model` macro's init accessors.
///
/// Swift runs the initial values of properties also when a model is made around an object that is stored already; there they
/// do nothing.
extension ManagedObject {
    public func initializeToOne<M: PersistentModel>(_ relationship: Int, _ column: Int, to other: M?) {
        guard state == .detached, other != nil || detachedState?.toOne.isEmpty == false else { return }
        setToOne(relationship, column, to: other)
    }

    public func initializeToMany<M: PersistentModel>(_ relationship: Int, to others: [M]) {
        guard state == .detached, !others.isEmpty || detachedState?.toMany.isEmpty == false else { return }
        setToMany(relationship, to: others)
    }
}

/// Chosen by the compiler when nothing else fits, for the sake of the message.
extension ManagedObject {
    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func get<T>(_ column: Int) -> T { preconditionFailure("not an attribute") }

    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func set<T>(_ column: Int, to value: T) {}

    @available(
        *, unavailable, message: "this type cannot be stored; conform it to CodableAttribute, or mark the property @Transient"
    )
    public func initialize<T>(_ column: Int, to value: T) {}

    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func get<M: PersistentModel>(_ column: Int) -> M? { nil }

    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func get<M: PersistentModel>(_ column: Int) -> [M] { [] }

    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func set<M: PersistentModel>(_ column: Int, to value: M?) {}

    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func set<M: PersistentModel>(_ column: Int, to value: [M]) {}

    @available(*, unavailable, message: "a property that is a model needs @Relationship")
    public func initialize<M: PersistentModel>(_ column: Int, to value: M?) {}

    @available(*, unavailable, message: "a property that is a list of models needs @Relationship")
    public func initialize<M: PersistentModel>(_ column: Int, to value: [M]) {}
}
