import StoreInterface

/// Inserting, deleting and finding objects.
extension ManagedObjectContext {
    // MARK: Insert

    /// Makes a new object of an entity known by name, with the model's defaults. O(columns); reads nothing.
    ///
    /// A programmer error if the model has no such entity.
    @discardableResult
    public func insert(_ entityName: String) -> ManagedObject {
        guard let entity = model.entity(named: entityName) else {
            preconditionFailure("the model has no entity named \(entityName)")
        }
        return insert(entity)
    }

    @discardableResult
    public func insert(_ entity: Entity) -> ManagedObject {
        checkIsolation()
        let key = nextKey(entity.number)
        let object = ManagedObject(context: self, entity: entity.number, key: key)
        let row = Row.make(kind: .insert, layer: topID, columnCount: entity.columns.count)
        row.fill(with: entity.defaults)
        attach(object, row)
        if traits.hasLifecycle[entity.number] { awakeFromInsert(object) }
        return object
    }

    /// Makes a new object with these values by column, in declaration order of attributes and to-one relationships: the fastest
    /// way in, for imports. A programmer error if there are not as many values as columns.
    @discardableResult
    public func insert(_ entity: Entity, values: [Value]) -> ManagedObject {
        checkIsolation()
        precondition(values.count == entity.columns.count, "\(entity.name) has \(entity.columns.count) columns")
        let object = ManagedObject(context: self, entity: entity.number, key: nextKey(entity.number))
        let row = Row.make(kind: .insert, layer: topID, columnCount: values.count)
        row.fill(with: values)
        attach(object, row)
        if traits.hasLifecycle[entity.number] { awakeFromInsert(object) }
        return object
    }

    /// Takes a new object, and the new objects that it refers to, into the context. Its id is final from here on (S002).
    ///
    /// Inserting an object that is in the context already does nothing. A programmer error if the object belongs to another
    /// context or its type is not in the model.
    public func insert<M: PersistentModel>(_ model: M) {
        checkIsolation()
        let object = model.managedObject
        guard object.state == .detached else {
            precondition(object.context === self, "an object belongs to one context; it cannot be inserted into another")
            return
        }
        guard let entity = self.model.entity(for: M.self) else {
            preconditionFailure("\(M.self) is not in the model of the context \(name)")
        }
        object.model = model
        attachDetached(object, entity)
    }

    private func attachDetached(_ object: ManagedObject, _ entity: Entity) {
        // A detached object always has a row, made with it.
        guard let row = object.row else { preconditionFailure("a new object has lost its values") }
        object.context = self
        object.entityNumber = Int32(entity.number)
        object.key = nextKey(entity.number)
        object.state = .registered
        row.layer = top.id
        if row.set.count < row.columnCount {
            row.fill(with: entity.defaults)
        }
        let relations = object.detachedState
        object.detachedState = nil
        attach(object, row)
        if let relations { connect(object, entity, relations) }
        awakeFromInsert(object)
    }

    private func attach(_ object: ManagedObject, _ row: Row) {
        object.row = row
        registry.register(object)
        registry.retain(object)
        top.put(row, entity: object.entity, key: object.key)
        changeLog.note(object.entity, object.key)
    }

    /// Sets the relationships that were set before the object had a key.
    private func connect(_ object: ManagedObject, _ entity: Entity, _ relations: DetachedState) {
        for (number, other) in relations.toOne.sorted(by: { $0.key < $1.key }) {
            setToOne(object, entity.relationships[number], to: adopted(other.object))
        }
        for (number, others) in relations.toMany.sorted(by: { $0.key < $1.key }) {
            for other in others { addToMany(object, entity.relationships[number], adopted(other.object)) }
        }
    }

    /// An object of this context: inserted now when it is new.
    func adopted(_ object: ManagedObject) -> ManagedObject {
        if object.state == .detached {
            guard let name = object.detachedState?.entity.name, let entity = model.entity(named: name) else {
                preconditionFailure("a related object's type is not in the model of the context \(self.name)")
            }
            attachDetached(object, entity)
        }
        precondition(object.context === self, "objects of two contexts cannot be related; take the other by its id")
        return object
    }

    /// The next key of an entity; a page's worth is taken from the pool at a time.
    @inline(__always)
    private func nextKey(_ entity: Int) -> ObjectKey {
        if keys[entity].isEmpty { keys[entity] = setup.writer.takeKeys(entity) }
        let key = keys[entity].lowerBound
        keys[entity] = key + 1..<keys[entity].upperBound
        return key
    }

    // MARK: Look up

    /// The registered object with this id, or nil. Never reads the store (S004).
    public func registeredObject(for id: ObjectID) -> ManagedObject? {
        checkIsolation()
        guard id.store == storeIdentity, id.entity < model.entities.count else { return nil }
        return registry.object(id.entity, id.key)
    }

    /// The object with this id: registered, or a fault made now. Does no I/O and never fails (S005).
    ///
    /// A programmer error for an id of another store.
    public func object(with id: ObjectID) -> ManagedObject {
        checkIsolation()
        precondition(
            id.store == storeIdentity && id.entity < model.entities.count,
            "the id \(id) belongs to another store than that of the context \(name)")
        return object(id.entity, id.key)
    }

    /// The object with this id, known to exist. Throws ``ContextError/objectNotFound(_:)`` (S005).
    public func existingObject(with id: ObjectID) throws -> ManagedObject {
        checkIsolation()
        try checkOpen()
        guard id.store == storeIdentity, id.entity < model.entities.count, try exists(id.entity, id.key) else {
            throw ContextError.objectNotFound(id)
        }
        return object(id.entity, id.key)
    }

    /// The typed object with this id. Throws ``ContextError/objectNotFound(_:)`` also when it is of another type.
    public func existingObject<M: PersistentModel>(_ type: M.Type = M.self, with id: ObjectID) throws -> M {
        guard let entity = model.entity(for: M.self), entity.number == id.entity else {
            throw ContextError.objectNotFound(id)
        }
        return wrapped(try existingObject(with: id), as: M.self)
    }

    /// The typed object with this id: registered, or a fault. A programmer error for an id of another entity or store.
    public func object<M: PersistentModel>(_ type: M.Type = M.self, with id: ObjectID) -> M {
        precondition(model.entity(for: M.self)?.number == id.entity, "the id \(id) is not of \(M.self)")
        return wrapped(object(with: id), as: M.self)
    }

    func object(_ entity: Int, _ key: ObjectKey) -> ManagedObject {
        if let known = registry.object(entity, key) { return known }
        let object = ManagedObject(context: self, entity: entity, key: key)
        registry.register(object)
        if hasLayers, let row = newestOwnRow(entity, key) {
            object.row = row
            object.isDeletedHere = row.kind == .delete
            registry.retain(object)
        } else if retainsRegisteredObjects {
            registry.retain(object)
        }
        return object
    }

    /// The one typed object around an object.
    func wrapped<M: PersistentModel>(_ object: ManagedObject, as type: M.Type) -> M {
        if let model = object.model {
            if ObjectIdentifier(Swift.type(of: model)) == ObjectIdentifier(M.self) {
                return unsafeDowncast(model as AnyObject, to: M.self)
            }
            preconditionFailure("\(object.objectID) is a \(Swift.type(of: model)), not a \(M.self)")
        }
        let model = M(managedObject: object)
        object.model = model
        registry.didWrap(object)
        return model
    }

    func newestOwnRow(_ entity: Int, _ key: ObjectKey) -> Row? {
        for layer in view.layers.prefix(sealed.count + 1) {
            if let row = layer.row(entity, key) { return row }
        }
        return nil
    }

    /// Whether the context shows an object.
    func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool {
        if let isThere = view.existsInLayers(entity, key) { return isThere }
        let page = try pages.page(entity, PageAddress.page(of: key), in: view.base)
        return try page?.contains(PageAddress.slot(of: key)) ?? false
    }

    // MARK: Sets

    /// The registered objects. O(registered).
    public var registeredObjects: [ManagedObject] {
        var all: [ManagedObject] = []
        registry.forEach { all.append($0) }
        return all
    }

    public var insertedObjects: [ManagedObject] { pendingObjects(.insert) }
    public var updatedObjects: [ManagedObject] { pendingObjects(.update) }
    /// Deleted and not yet saved. Objects that were never saved are not among them (S041).
    public var deletedObjects: [ManagedObject] { pendingObjects(.delete) }

    private func pendingObjects(_ kind: RowKind) -> [ManagedObject] {
        checkIsolation()
        var objects: [ManagedObject] = []
        forEachPending { if $2 == kind { objects.append(object($0, $1)) } }
        return objects
    }

    /// Calls `body` with the entity, the key and what becomes of it, of each object with unsaved changes. The ends of a pair that was
    /// linked or unlinked count as updated (S007). O(changed objects).
    func forEachPending(of wanted: (Int) -> Bool = { _ in true }, _ body: (Int, ObjectKey, RowKind) -> Void) {
        let changes = foldedChanges()
        var ends: [Int: Set<ObjectKey>] = [:]
        for (link, pairs) in changes.links.enumerated() where !pairs.isEmpty {
            let schema = model.storeSchema.links[link]
            ends[schema.source, default: []].formUnion(pairs.forward.keys)
            ends[schema.destination, default: []].formUnion(pairs.backward.keys)
        }
        for entity in 0..<changes.entityCount where wanted(entity) {
            for number in changes.entity(entity)?.sortedPageNumbers ?? [] {
                guard let page = changes.entity(entity)?.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    if let row = page[slot] { body(entity, PageAddress.key(page: number, slot: slot), row.kind) }
                }
            }
            for key in (ends[entity] ?? []).sorted() where changes.row(entity, key) == nil {
                if trapOnStoreError({ try exists(entity, key) }) { body(entity, key, .update) }
            }
        }
    }

    /// What becomes of an object with the next save, changed pairs included; nil when nothing does.
    func changeKind(_ entity: Int, _ key: ObjectKey) -> RowKind? {
        if let kind = pendingKind(entity, key) { return kind }
        for layer in sealed + [top] {
            for (link, pairs) in layer.links.enumerated() where !pairs.isEmpty {
                let schema = model.storeSchema.links[link]
                if schema.source == entity && pairs.forward[key] != nil { return .update }
                if schema.destination == entity && pairs.backward[key] != nil { return .update }
            }
        }
        return nil
    }

    func didChangeRetention() {
        registry.forEach { object in
            if retainsRegisteredObjects {
                registry.retain(object)
            } else if object.row == nil {
                registry.release(object)
            }
        }
    }
}

/// What a context cannot do.
public enum ContextError: Error, Sendable, CustomStringConvertible {
    case objectNotFound(ObjectID)
    case notAChild(context: String)

    public var description: String {
        switch self {
        case .objectNotFound(let id): "there is no object \(id); it was deleted, never saved, or belongs to another store"
        case .notAChild(let context): "the context \(context) has no parent; use mergeChanges or refreshAllObjects"
        }
    }
}
