/// First values of relationships, for the `@Model` macro's init accessors.
///
/// Swift runs the initial values of properties also when a model is made around an object that is stored already; there they
/// do nothing.
extension ManagedObject {
    public func initializeToOne<M: PersistentModel>(_ relationship: Int, _ column: Int, to other: M?) {
        if state == .detached { setToOne(relationship, column, to: other) }
    }

    public func initializeToMany<M: PersistentModel>(_ relationship: Int, to others: [M]) {
        if state == .detached { setToMany(relationship, to: others) }
    }
}

/// Chosen by the compiler when a property that is a model lacks `@Relationship`, for the sake of the message.
extension ManagedObject {
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
