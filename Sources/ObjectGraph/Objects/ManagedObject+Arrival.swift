/// Relating detached objects. A detached object that is related to an object of a context is inserted into that context (S175).
extension ManagedObject {
    /// Inserts the object now if it waits for its insertion.
    @inline(__always)
    func arrive() {
        if state == .detached { detachedState?.arrival?.admitArrivals() }
    }

    /// The context in which the object is, or into which it will be inserted.
    private var futureContext: ManagedObjectContext? {
        if state == .detached { detachedState?.arrival } else { requiredContext }
    }

    /// Returns the state of a detached object, for a change of one of its relationships. Returns nil if the object is in a context.
    ///
    /// - Parameter replaces: Whether the relationship has destinations. An object that waits for its insertion is inserted before they
    ///   are replaced, so that they are inserted with it.
    private func detachedState(relatingTo others: some Collection<ManagedObject>, replaces: Bool) -> DetachedState? {
        guard state == .detached else { return nil }
        if replaces { arrive() }
        var context = detachedState?.arrival
        for other in others {
            guard let next = other.futureContext else { continue }
            // A former relation may have left the objects with different contexts.
            if let context, context !== next {
                arrive()
                others.forEach { $0.arrive() }
                break
            }
            context = next
        }
        return detachedState
    }

    private func didRelate(to other: ManagedObject, _ detached: DetachedState) {
        if other.state == .detached {
            detached.didRelate(self, to: other)
        } else {
            let context = other.requiredContext
            if let arrival = detached.arrival {
                precondition(arrival === context, other.isElsewhere(than: arrival))
            } else {
                context.awaitArrival(of: self, detached)
            }
        }
    }

    /// Returns the message for an object that was related to objects of another context.
    func isElsewhere(than other: ManagedObjectContext) -> String {
        "\(entityName) of the context \(context?.name ?? "that was released") cannot be related to objects of the context \(other.name); "
            + "look it up there by its id"
    }

    /// Sets a to-one relationship of a detached object. Returns false if the object is in a context.
    func setDetachedToOne(_ relationship: Int, to other: ManagedObject?) -> Bool {
        let old = detachedState?.toOne[relationship]?.object
        let replaces = old != nil && old !== other
        let state =
            if let other { detachedState(relatingTo: CollectionOfOne(other), replaces: replaces) } else {
                detachedState(relatingTo: EmptyCollection(), replaces: replaces)
            }
        guard let detached = state else { return false }
        let isKnown = other != nil || detached.hasReferrers
        detached.toOne[relationship] = isKnown ? DetachedState.Partner(other) : nil
        if let other { didRelate(to: other, detached) }
        return true
    }

    /// Sets a to-many relationship of a detached object. Returns false if the object is in a context.
    func setDetachedToMany(_ relationship: Int, to others: [ManagedObject]) -> Bool {
        let old = detachedState?.toMany[relationship] ?? []
        // An array that grows by appending has few new objects. The others keep their order among all relations.
        let known = Dictionary(old.map { ($0.object, $0) }) { first, _ in first }
        // While the object waits, those that others have related to it belong to the relationship, and are replaced too.
        let replaces = !old.isEmpty && !Set(old.map(\.object)).isSubset(of: others) || detachedState?.hasReferrers == true
        guard let detached = detachedState(relatingTo: others, replaces: replaces) else { return false }
        detached.toMany[relationship] = others.map { known[$0] ?? DetachedState.Partner($0) }
        for other in others where known[other] == nil { didRelate(to: other, detached) }
        return true
    }
}
