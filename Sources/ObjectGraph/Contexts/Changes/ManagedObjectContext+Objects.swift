import StoreInterface
import StoreModel

/// Inserting, deleting and looking up objects.
extension ManagedObjectContext {
    // MARK: Insert

    /// Creates an object of the entity with this name, with the model's default values. O(columns), without reading the store.
    ///
    /// - Precondition: The model has an entity with this name.
    @discardableResult
    public func insert(_ entityName: String) -> ManagedObject {
        guard let entity = storedModel.entity(named: entityName) else {
            preconditionFailure("the model has no entity named \(entityName)")
        }
        return insert(entity)
    }

    /// Creates an object of an entity, with the model's default values. O(columns), without reading the store.
    @discardableResult
    public func insert(_ entity: Entity) -> ManagedObject {
        checkIsolation()
        let entity = entity.concrete()
        let key = nextKey(entity.number)
        let object = ManagedObject(context: self, entity: entity.number, key: key)
        note(entity, of: object)
        let row = Row.make(kind: .insert, layer: layerStack.topID, columnCount: entity.columns.count)
        row.fill(with: entity.defaults)
        attach(object, row)
        if capabilities.hasLifecycle[entity.number] { awakeFromInsert(object) }
        return object
    }

    /// Creates an object with these values, in declaration order of attributes and to-one relationships.
    /// This is the fastest way to insert objects, intended for imports. The object is the last in ordered relationships that lead to it.
    ///
    /// - Precondition: There are as many values as attributes and to-one relationships.
    @discardableResult
    public func insert(_ entity: Entity, values: [Value]) -> ManagedObject {
        checkIsolation()
        let count = entity.columns.count
        // A whole row of a hierarchy has the type of its object.
        let entity = entity.hasTypes && values.count == count ? entity : entity.concrete()
        precondition(
            values.count == entity.declaredColumnCount || values.count == count,
            "\(entity.name) has \(entity.declaredColumnCount) columns")
        let object = ManagedObject(context: self, entity: entity.number, key: nextKey(entity.number))
        let row = Row.make(kind: .insert, layer: layerStack.topID, columnCount: count)
        row.fill(with: values.count == count ? values : entity.row(of: values))
        if values.count != count { note(entity, of: object) }
        if observed.isEmpty { attach(object, row) } else { attachObserved(object, row, of: entity) }
        if !entity.orderedReferences.isEmpty { appendToLists(object) }
        if capabilities.hasLifecycle[entity.number] { awakeFromInsert(object) }
        return object
    }

    /// Inserts a new object into the context, with the new objects that it is related to. From then on its id is final (S002).
    ///
    /// Inserting an object that already is in the context does nothing. An object that was related to an object of the context needs
    /// no explicit insertion (S175).
    ///
    /// Inserting an object whose deletion is unsaved takes the deletion back (S048). The object has its id and its values again, and refers
    /// to the objects that it referred to, if they exist. Changes that the deletion made to other objects stay: cleared references to the
    /// object, also in one-to-one relationships, removed pairs of many-to-many relationships, and objects that were deleted with it. Pairs
    /// that the rule deny or no action has kept have their order again. A deletion that is saved, or that another context has made, stays,
    /// and a warning is logged.
    ///
    /// ```swift
    /// let album = Album(title: "Live")
    /// context.insert(album)
    /// let track = Track(title: "Intro")
    /// track.album = album  // Inserts the track, too.
    /// ```
    ///
    /// - Precondition: The object belongs to no other context, and its type is in the model.
    public func insert<M: PersistentModel>(_ model: M) {
        let object = model.managedObject
        object.claim(model)
        object.arrive()
        checkIsolation()
        guard object.state == .detached else {
            precondition(
                object.context === self,
                "cannot insert a \(Swift.type(of: model)) into the context \(name): it belongs to another context. "
                    + "Look it up here by its objectID.")
            return insertAgain(object)
        }
        // A reference to the superclass may refer to an object of a subclass.
        guard let entity = self.storedModel.entity(for: Swift.type(of: model)) else {
            preconditionFailure(
                "cannot insert a \(Swift.type(of: model)) into the context \(name): the model has no such entity. "
                    + "Give the container that type.")
        }
        insertGraph(of: object, entity)
    }

    /// Attaches a new object, and notifies the observers of the objects to which it refers.
    private func attachObserved(_ object: ManagedObject, _ row: Row, of entity: Entity) {
        changingObserved {
            for relationship in entity.relationships {
                guard case .toOne(let column) = relationship.kind, let other = row[column].referenceKey,
                    let inverse = relationship.inverse
                else { continue }
                let back = storedModel.entities[relationship.destination].relationships[inverse]
                willChange(relationship.destination, key: other, property: back.observed)
            }
            // Observers may have sealed the top layer.
            row.layer = layerStack.topID
            attach(object, row)
        }
    }

    func attach(_ object: ManagedObject, _ row: Row) {
        object.row = row
        // An object that is inserted here gets `awakeFromInsert`, and never `awakeFromFetch`.
        object.hasAwoken = true
        registry.register(object)
        registry.retain(object)
        if object.observation != nil { observed.add(object) }
        layerStack.top.put(row, entity: object.entity, key: object.key)
        tracker.log.noteInsertion(object.entity, object.key)
    }

    /// Returns the next key of an entity. Keys are taken from the pool one page's worth at a time.
    @inline(__always)
    func nextKey(_ entity: EntityIndex) -> ObjectKey {
        if tracker.keys[entity].isEmpty { tracker.keys[entity] = configuration.writer.takeKeys(entity) }
        let key = tracker.keys[entity].lowerBound
        tracker.keys[entity] = key.advanced(by: 1)..<tracker.keys[entity].upperBound
        return key
    }

    // MARK: Look up

    /// Returns the registered object with this id, or nil. Never reads the store (S004).
    public func registeredObject(for id: ObjectID) -> ManagedObject? {
        checkIsolation()
        guard id.store == storeIdentity, model.entities.indices().contains(id.entity) else { return nil }
        return registry.object(id.entity, id.key)
    }

    /// Returns the object with this id: the registered object, or a new fault. Does no I/O and never fails (S005).
    ///
    /// - Precondition: The id belongs to the context's store.
    public func object(with id: ObjectID) -> ManagedObject {
        checkIsolation()
        precondition(
            id.store == storeIdentity && storedModel.entities.indices().contains(id.entity),
            id.store == .provisional
                ? "cannot find the object \(id): the id is provisional. Insert the object, then read its id again."
                : "the id \(id) belongs to another store than that of the context \(name)")
        return object(id.entity, id.key)
    }

    /// Returns the typed object with this id, whatever its entity: the registered object, or a new fault. Does no I/O.
    ///
    /// If no such object exists, the returned object reads as deleted (S022). To check, use ``existingObject(with:)``.
    ///
    /// ```swift
    /// for id in selection {
    ///     if let track = context.model(for: id) as? Track { track.playCount += 1 }
    /// }
    /// ```
    /// - Returns: The object; nil if the id belongs to another store, or if its entity has no class in the model.
    public func model(for id: ObjectID) -> (any PersistentModel)? {
        checkIsolation()
        let id = finalID(id)
        guard id.store == storeIdentity, model.entities.indices().contains(id.entity) else { return nil }
        return typed(object(id.entity, id.key))
    }

    /// Returns the typed object with this id if it is registered in the context. Never reads the store (S004).
    ///
    /// - Returns: The object; nil if the context does not have it, or if its entity has no class in the model.
    public func registeredModel(for id: ObjectID) -> (any PersistentModel)? { registeredObject(for: finalID(id)).flatMap(typed) }

    private func typed(_ object: ManagedObject) -> (any PersistentModel)? {
        func wrap<M: PersistentModel>(_ type: M.Type) -> any PersistentModel { wrapped(object, as: type) }
        return model.type(of: definition(of: object)).map { wrap($0) }
    }

    /// Returns the object with this id after checking that it exists (S005).
    ///
    /// - Throws: ``ContextError/objectNotFound(_:)`` if there is no such object.
    public func existingObject(with id: ObjectID) throws -> ManagedObject {
        checkIsolation()
        prepareRequest()
        try checkOpen()
        guard id.store == storeIdentity, storedModel.entities.indices().contains(id.entity), try exists(id.entity, id.key) else {
            // The parent of a child may be closed already, and then shows no objects.
            try configuration.coordinator.checkOpen()
            throw ContextError.objectNotFound(id)
        }
        return object(id.entity, id.key)
    }

    /// Returns the typed object with this id after checking that it exists.
    ///
    /// - Throws: ``ContextError/objectNotFound(_:)`` if there is no such object, or if it has another type.
    public func existingObject<M: PersistentModel>(_ type: M.Type = M.self, with id: ObjectID) throws -> M {
        guard let entity = storedModel.entity(for: M.self), entity.number == id.entity else {
            throw ContextError.objectNotFound(id)
        }
        let object = try existingObject(with: id)
        guard isObject(object, of: entity) else { throw ContextError.objectNotFound(id) }
        return wrapped(object, as: M.self)
    }

    /// Returns the typed object with this id: the registered object, or a new fault.
    ///
    /// - Precondition: The id belongs to the entity of `type` and to the context's store.
    public func object<M: PersistentModel>(_ type: M.Type = M.self, with id: ObjectID) -> M {
        precondition(storedModel.entity(for: M.self)?.number == id.entity, "the id \(id) is not of \(M.self)")
        return wrapped(object(with: id), as: M.self)
    }

    func object(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject {
        if let known = registry.object(entity, key) { return known }
        let object = ManagedObject(context: self, entity: entity, key: key)
        registry.register(object)
        if layerStack.hasLayers, let row = newestOwnRow(entity, key) {
            object.row = row
            object.isDeletedHere = row.kind == .delete
            registry.retain(object)
        } else if retainsRegisteredObjects {
            registry.retain(object)
        }
        return object
    }

    /// Returns the typed wrapper of an object. There is one wrapper per object.
    func wrapped<M: PersistentModel>(_ object: ManagedObject, as type: M.Type) -> M {
        if let model = object.model {
            if ObjectIdentifier(Swift.type(of: model)) == ObjectIdentifier(M.self) {
                return unsafeDowncast(model as AnyObject, to: M.self)
            }
            if storedModel.hasInheritance {
                if let model = model as? M { return model }
                if let asked = storedModel.entity(for: M.self), isObject(object, of: asked) {
                    return wrappedAgain(object, as: M.self)
                }
            }
            preconditionFailure("\(object.objectID) is a \(Swift.type(of: model)), not a \(M.self)")
        }
        let model = storedModel.hasInheritance ? wrappedMember(object, as: M.self) : M(managedObject: object)
        object.claim(model)
        registry.didWrap(object)
        return model
    }

    func newestOwnRow(_ entity: EntityIndex, _ key: ObjectKey) -> Row? {
        layerStack.view.layers.prefix(layerStack.sealed.count + 1).newestRow(entity, key)
    }

    /// Returns whether an object exists in the context's view.
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        if let isThere = layerStack.view.existsInLayers(entity, key) { return isThere }
        let page = try layerStack.pages.page(entity, key.page, in: layerStack.view.base)
        return try page?.contains(key.slot) ?? false
    }

    // MARK: Sets

    /// The registered objects. O(registered).
    public var registeredObjects: [ManagedObject] {
        admitArrivals()
        var all: [ManagedObject] = []
        registry.forEach { all.append($0) }
        return all
    }

    /// The objects with unsaved insertions. Keyed values are no objects of the model, and are in none of these lists.
    public var insertedObjects: [ManagedObject] { pendingObjects(.insert) }
    /// The objects with unsaved updates.
    public var updatedObjects: [ManagedObject] { pendingObjects(.update) }
    /// The objects with unsaved deletions. Objects that were never saved are not included (S041).
    public var deletedObjects: [ManagedObject] { pendingObjects(.delete) }

    private func pendingObjects(_ kind: RowKind) -> [ManagedObject] {
        checkIsolation()
        var objects: [ManagedObject] = []
        forEachPending(of: { $0.rawValue < model.entities.count }) { if $2 == kind { objects.append(object($0, $1)) } }
        return objects
    }

    /// Calls `body` with the entity, key and kind of change of each object with unsaved changes. O(changed objects).
    ///
    /// Both ends of a pair that was linked or unlinked count as updated (S007).
    func forEachPending(
        of wanted: (EntityIndex) -> Bool = { _ in true }, _ body: (EntityIndex, ObjectKey, RowKind) -> Void
    ) {
        let changes = layerStack.folded()
        let ends = objectsWithChangedLists(in: changes)
        for entity in changes.entityIndices where wanted(entity) {
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

    /// Returns the ends of the pairs that a layer changes, and the objects with lists whose order it changes.
    func objectsWithChangedLists(in changes: Layer) -> [EntityIndex: Set<ObjectKey>] {
        var ends: [EntityIndex: Set<ObjectKey>] = [:]
        for (link, pairs) in changes.links.enumerated(as: LinkIndex.self) where !pairs.isEmpty {
            let schema = storedModel.storeSchema.links[link]
            ends[schema.source, default: []].formUnion(pairs.forward.keys)
            ends[schema.destination, default: []].formUnion(pairs.backward.keys)
        }
        for order in capabilities.rules.orders.joined() {
            forEachListChanged(in: changes, order) { ends[order.ownerEntity, default: []].insert($0) }
        }
        return ends
    }

    /// Returns the kind of an object's unsaved change, changed pairs included; nil if the object is unchanged.
    func changeKind(_ entity: EntityIndex, _ key: ObjectKey) -> RowKind? {
        if let kind = layerStack.pendingKind(entity, key) { return kind }
        // An object that is deleted elsewhere has no pairs.
        return hasChangedPairs(entity, key) && trapOnStoreError { try exists(entity, key) } ? .update : nil
    }

    private func hasChangedPairs(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        let layers = layerStack.sealed + [layerStack.top]
        guard hasChangedPairs(entity, key, in: layers) else { return false }
        // Deletions may cancel changes of pairs in older layers. Folding costs more than looking, so it comes second.
        guard hasDeletes, layers.count > 1 else { return true }
        return hasChangedPairs(entity, key, in: [layerStack.folded()])
    }

    private func hasChangedPairs(_ entity: EntityIndex, _ key: ObjectKey, in layers: [Layer]) -> Bool {
        for layer in layers {
            for order in capabilities.rules.orders.joined() where order.ownerEntity == entity {
                var isMoved = false
                forEachListChanged(in: layer, order) { if $0 == key { isMoved = true } }
                if isMoved { return true }
            }
            for (link, pairs) in layer.links.enumerated(as: LinkIndex.self) where !pairs.isEmpty {
                let schema = storedModel.storeSchema.links[link]
                if schema.source == entity && pairs.forward[key] != nil { return true }
                if schema.destination == entity && pairs.backward[key] != nil { return true }
            }
        }
        return false
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

/// An error in the use of a context.
///
/// ```swift
/// do {
///     show(try context.existingObject(Track.self, with: id).title)
/// } catch ContextError.objectNotFound {
///     show("This track was deleted.")
/// }
/// ```
public enum ContextError: Error, Sendable, Hashable, CustomStringConvertible {
    /// No object with this id exists in the context.
    case objectNotFound(ObjectID)
    /// The operation needs a child context, but the context with this name is a root.
    case notAChild(context: String)

    /// The reason for the error, and usually the remedy.
    public var description: String {
        switch self {
        case .objectNotFound(let id):
            "there is no object \(id): it was deleted, never saved or saved after the backup that was restored, has another type, or "
                + "belongs to another store; fetch it again, or save it first"
        case .notAChild(let context): "the context \(context) has no parent; use mergeChanges or refreshAllObjects"
        }
    }
}
