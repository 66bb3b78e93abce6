import StoreInterface
import StoreModel

/// Inserting detached objects: explicitly, or because they were related to an object of the context (S175).
///
/// An initializer that relates a new object cannot insert it, because the object is not complete yet. The object waits, and the next
/// use of the context that could show it inserts it first. Attribute accesses are no such use.
extension ManagedObjectContext {
    /// Inserts a detached object before the next use of this context.
    func awaitArrival(of object: ManagedObject, _ state: DetachedState) {
        state.awaitArrival(in: self)
        phase.arrivals.append(object)
        tracker.log.noteUnsavedChange()
        if phase.arrivals.count == 1 { announceArrivals() }
    }

    /// Makes observers see the objects that wait, after the present job of the executor, if no other use of the context comes before.
    func announceArrivals() {
        if let onFirstChange = tracker.log.onFirstChange { return onFirstChange() }
        guard tracker.log.isOn || !observed.isEmpty else { return }
        contextExecutor?.enqueue {
            // The end of the suspension inserts them. An insertion before it may open the file again.
            if $0.isWaitingForResumption { return }
            $0.admitArrivals()
            $0.postPendingChanges()
        }
    }

    /// Inserts the objects that wait. Call this before anything that could show whether they are inserted.
    @inline(__always)
    func admitArrivals() {
        if !phase.arrivals.isEmpty { insertArrivals() }
    }

    @inline(never)
    private func insertArrivals() {
        if phase.arrivals.count == 1 {
            let object = phase.arrivals.removeLast()
            if object.state == .detached { insertGraph(of: object) }
        } else {
            let arrivals = phase.arrivals
            phase.arrivals = []
            insertGraphs(of: arrivals)
        }
    }

    /// Forgets an object that waits and whose initializer has failed. Called when the object's model is released, complete or not.
    func withdrawIncomplete(_ object: ManagedObject, _ state: DetachedState) {
        guard let anchor = state.anchorAddress, let entity = storedModel.entity(named: state.entity.name),
            let type = storedModel.type(of: entity), let offset = capabilities.anchorOffsets[entity.number],
            ModelAnchor.isIncomplete(type, withAnchorAt: anchor, offset: offset)
        else { return }
        phase.arrivals.removeAll { $0 === object }
        state.withdraw()
    }

    /// Deletes an object that was inserted while its model's initializer ran, after the initializer has failed. Related objects stay, and
    /// lose their references to it.
    func withdrawInserted(_ object: ManagedObject) {
        // The initializer has the last reference to the model, which it releases without deallocating the model.
        registry.release(object)
        object.model = nil
        unrelate(object)
        delete(object)
    }

    /// Removes an object from all its relationships.
    func unrelate(_ object: ManagedObject) {
        for relationship in definition(of: object).relationships {
            switch relationship.kind {
            case .toOne: setToOne(object, relationship, to: nil)
            case .toMany: setToMany(object, relationship, to: [])
            }
        }
    }

    /// Forgets the objects that wait, because the context is being released.
    func cancelArrivals() {
        for object in phase.arrivals { object.detachedState?.cancelArrival() }
        phase.arrivals = []
    }

    /// Inserts a detached object with all objects that it is related to.
    ///
    /// - Parameter entity: The object's entity, if the caller knows it.
    func insertGraph(of object: ManagedObject, _ entity: Entity? = nil) {
        guard let relations = object.detachedState else { return }
        guard relations.graph == nil else { return insertGraphs(of: [object]) }
        register(object, relations: relations, known: entity)
        if relations.hasRelations { connect(CollectionOfOne((object, relations))) }
        awakeFromInsert(object)
    }

    /// Inserts detached objects, each with all objects that it is related to.
    ///
    /// Keys follow the order of relating: an object, then its destinations in the order of its relationships, then the objects that
    /// refer to it. Hooks run after all relationships are set.
    private func insertGraphs(of roots: [ManagedObject]) {
        var inserted: [(object: ManagedObject, relations: DetachedState)] = []
        inserted.reserveCapacity(roots.count)
        // A stack instead of recursion, because a chain of objects may be longer than the program's stack allows.
        var waiting: [ManagedObject] = []
        for root in roots {
            waiting.append(root)
            while let object = waiting.popLast() {
                guard object.state == .detached, let relations = object.detachedState else { continue }
                let related = relations.graph == nil ? [] : relations.related(to: object)
                register(object, relations: relations)
                inserted.append((object, relations))
                waiting.append(contentsOf: related.reversed())
            }
        }
        connect(inserted)
        for (object, relations) in inserted { relations.leaveGraph(object) }
        for (object, _) in inserted { awakeFromInsert(object) }
    }

    /// Assigns a key to a detached object, and registers the object in the context.
    private func register(_ object: ManagedObject, relations: DetachedState, known: Entity? = nil) {
        guard let entity = known ?? storedModel.entity(named: relations.entity.name) else {
            preconditionFailure(
                "cannot insert a \(relations.entity.name) into the context \(name): the model has no such entity. "
                    + "Give the container that type.")
        }
        precondition(!entity.isAbstract, "cannot insert \(entity.name): it is abstract. Insert an object of a subclass")
        // A detached object always has a row, created with it.
        guard var row = object.row else { preconditionFailure("a new object has lost its values") }
        if let inheritance = entity.inheritance {
            row = row.copy(to: inheritance.properties, of: entity.columns.count)
            object.observation?.renumber(entity, inheritance)
        } else if row.columnCount < entity.columns.count {
            row = row.copy(columnCount: entity.columns.count)
        }
        claimModel(of: object, relations, entity)
        object.context = self
        object.entity = entity.number
        note(entity, of: object)
        object.key = nextKey(entity.number)
        object.state = .registered
        noteProvisionalID(of: object, relations)
        row.layer = layerStack.top.id
        if row.set.count < row.columnCount {
            row.fill(with: entity.defaults)
        }
        object.detachedState = nil
        attach(object, row)
    }

    /// Makes an object detached again whose insertion is rolled back, with its values and without its relationships. An object without a
    /// model becomes invalid, because only the class of a model describes detached objects.
    func detach(_ object: ManagedObject, _ row: Row) {
        // The entity of an object without a model may have to be read from the store.
        let known = object.hasModel ? definition(of: object) : nil
        object.context = nil
        guard let entity = known, let detached = InitialValues.detachedEntity(of: entity, in: storedModel) else {
            object.state = .invalid
            return
        }
        let values = Row.make(kind: .insert, layer: 0, columnCount: detached.columnCount)
        for own in values.columnIndices {
            let column = entity.inheritance?.properties[own] ?? own
            if row.isSet(column), entity.columns[column].destination == nil { values[own] = row[column] }
        }
        // Detached objects of a hierarchy have other numbers of properties, by which observers are found.
        if entity.inheritance != nil { object.observation = nil }
        object.becomeDetached(values, detached)
    }

    /// Finds the model of an object whose initializer has related it, and which no accessor has handed over since.
    private func claimModel(of object: ManagedObject, _ relations: DetachedState, _ entity: Entity) {
        guard object.model == nil, object.unattachedAnchors > 0, let anchor = relations.anchorAddress,
            let type = storedModel.type(of: entity), let offset = capabilities.anchorOffsets[entity.number]
        else { return }
        object.claim(ModelAnchor.model(type, withAnchorAt: anchor, offset: offset))
    }

    /// Sets the relationships that were set before the objects had keys, in the order in which the program set them, so that the last
    /// of contradicting ones holds.
    private func connect(_ inserted: some Collection<(object: ManagedObject, relations: DetachedState)>) {
        var claims: [(order: Int, set: (object: ManagedObject, relationship: Relationship, other: ManagedObject?))] = []
        for (object, relations) in inserted where relations.hasRelations {
            let relationships = definition(of: object).relationships
            for (number, other) in relations.toOne { claims.append((other.order, (object, relationships[number], other.object))) }
            for (number, others) in relations.toMany {
                for other in others { claims.append((other.order, (object, relationships[number], other.object))) }
            }
        }
        claims.sort { $0.order < $1.order }
        // An observer may have rolled back since.
        for (_, (object, relationship, other)) in claims where isHere(object) && other.map(isHere) ?? true {
            if case .toOne = relationship.kind {
                setToOne(object, relationship, to: other)
            } else if let other {
                addToMany(object, relationship: relationship, other: other)
            }
        }
        arrange(inserted)
    }

    /// Gives lists that were reordered before their objects had keys their last order. Others have it, because they were filled in it.
    private func arrange(_ inserted: some Collection<(object: ManagedObject, relations: DetachedState)>) {
        for (object, relations) in inserted where !relations.toMany.isEmpty && isHere(object) {
            let relationships = definition(of: object).relationships
            for (number, others) in relations.toMany where relationships[number].isOrdered {
                guard zip(others, others.dropFirst()).contains(where: { $0.order > $1.order }) else { continue }
                arrange(object, relationships[number], as: others.compactMap(\.object).filter(isHere).map(\.key))
            }
        }
    }

    /// Returns an object of this context, after inserting it if it is new.
    func adopted(_ object: ManagedObject) -> ManagedObject {
        if object.state == .detached {
            if let arrival = object.detachedState?.arrival { arrival.admitArrivals() }
            if object.state == .detached { insertGraph(of: object) }
        }
        precondition(object.context === self, object.isElsewhere(than: self))
        return object
    }
}
