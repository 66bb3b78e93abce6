import StoreInterface
import StoreModel

/// Typed access by number, for the accessors that the `@Model` macro generates. Relationship numbers are positions among the
/// relationships.
extension ManagedObject {
    /// Returns the destination of a to-one relationship, or nil.
    public func toOne<M: PersistentModel>(_ relationship: Int, _ column: Int, as type: M.Type = M.self) -> M? {
        let column = ColumnIndex(rawValue: column)
        arrive()
        if state == .detached {
            willRead(.column(column))
            return detachedState?.toOne[relationship]?.model as? M
        }
        let context = requiredContext
        context.catchUp()
        context.admitArrivals()
        if context.observed.isOn { willRead(.column(column)) }
        let destination = context.storedModel.entities[entity].relationships[relationship].destination
        return context.toOne(self, column, destination: destination).map { context.wrapped($0, as: M.self) }
    }

    /// Sets the destination of a to-one relationship.
    public func setToOne<M: PersistentModel>(_ relationship: Int, _ column: Int, to other: M?) {
        let column = ColumnIndex(rawValue: column)
        if let other, other.managedObject.state == .detached { other.managedObject.claim(other) }
        if state == .detached { return changeDetached(.column(column)) { setToOne(relationship, to: other?.managedObject) } }
        setToOne(relationship, to: other?.managedObject)
    }

    func setToOne(_ relationship: Int, to other: ManagedObject?) {
        if state == .detached, setDetachedToOne(relationship, to: other) { return }
        let context = requiredContext
        context.admitArrivals()
        context.setToOne(self, context.storedModel.entities[entity].relationships[relationship], to: other)
    }

    /// Returns the destinations of a to-many relationship, in its order or else in the order of their keys. O(objects), and
    /// O(objects · log objects) for an ordered relationship.
    public func toMany<M: PersistentModel>(_ relationship: Int, as type: M.Type = M.self) -> [M] {
        arrive()
        if state == .detached {
            willRead(.toMany(relationship))
            return (detachedState?.toMany[relationship] ?? []).compactMap { $0.model as? M }
        }
        let context = requiredContext
        return related(relationship).map { context.wrapped($0, as: M.self) }
    }

    /// Replaces the destinations of a to-many relationship.
    public func setToMany<M: PersistentModel>(_ relationship: Int, to others: [M]) {
        for other in others where other.managedObject.state == .detached { other.managedObject.claim(other) }
        setToMany(relationship, to: others.map(\.managedObject))
    }

    func setToMany(_ relationship: Int, to others: [ManagedObject]) {
        if state == .detached {
            var isDone = false
            changeDetached(.toMany(relationship)) { isDone = setDetachedToMany(relationship, to: others) }
            if isDone { return }
        }
        let context = requiredContext
        context.admitArrivals()
        context.setToMany(self, context.storedModel.entities[entity].relationships[relationship], to: others)
    }

    func related(_ relationship: Int) -> [ManagedObject] {
        withContext { context in
            context.catchUp()
            context.admitArrivals()
            if context.observed.isOn { willRead(.toMany(relationship)) }
            let description = context.storedModel.entities[entity].relationships[relationship]
            guard case .toMany(let relation) = description.kind else { return [] }
            let keys =
                description.isOrdered ? context.orderedKeys(self, description) : context.toManyKeys(self, relation)
            return keys.map { context.object(description.destination, $0) }
        }
    }
}

/// Access by name, for models that are known only at run time. A wrong name or cardinality is a programmer error.
extension ManagedObject {
    /// Returns the destination of a to-one relationship, or nil.
    public func relatedObject(_ name: String) -> ManagedObject? {
        let relationship = relationship(name)
        guard case .toOne(let column) = relationship.kind else {
            preconditionFailure("\(definition.name).\(name) is a to-many relationship")
        }
        let context = arrivedContext
        context.catchUp()
        if context.observed.isOn { willRead(.column(column)) }
        return context.toOne(self, column, destination: relationship.destination)
    }

    /// Sets the destination of a to-one relationship.
    public func setRelatedObject(_ name: String, to other: ManagedObject?) {
        arrivedContext.setToOne(self, relationship(name), to: other)
    }

    /// Returns the destinations of a to-many relationship, in its order or else in the order of their keys. O(objects), and
    /// O(objects · log objects) for an ordered relationship.
    public func relatedObjects(_ name: String) -> [ManagedObject] { related(relationship(name).number) }

    /// Replaces the destinations of a to-many relationship. Sets the order of an ordered one, in which each object occurs once.
    ///
    /// Only objects that are new in the relationship or that moved are changed: moving one of many changes one.
    public func setRelatedObjects(_ name: String, to others: [ManagedObject]) {
        arrivedContext.setToMany(self, relationship(name), to: others)
    }

    /// Adds one object to a to-many relationship, at the end of an ordered one. O(1), except for the check whether it is related already,
    /// and except for the first object that a context adds to an ordered relationship, which reads all positions.
    public func add(_ other: ManagedObject, to name: String) {
        arrivedContext.addToMany(self, relationship: relationship(name), other: other)
    }

    /// Removes one object from a to-many relationship.
    public func remove(_ other: ManagedObject, from name: String) {
        arrivedContext.removeFromMany(self, relationship: relationship(name), other: other)
    }

    /// The object's context, after inserting the objects that wait for their insertion.
    private var arrivedContext: ManagedObjectContext {
        let context = requiredContext
        context.admitArrivals()
        return context
    }

    private func relationship(_ name: String) -> Relationship {
        guard let relationship = definition.relationship(named: name) else {
            preconditionFailure("\(definition.name) has no relationship named \(name)")
        }
        return relationship
    }
}
