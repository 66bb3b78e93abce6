import ObjectGraph

extension ModelContext {
    /// Inserts a new object, with the new objects that it is related to.
    ///
    /// Takes back the unsaved deletion of an object. The object has its values again, and refers to the objects to which it referred, if
    /// they exist. Changes that the deletion made to other objects stay: cleared references to it, also in one-to-one relationships,
    /// removed pairs of many-to-many relationships, and objects that were deleted with it.
    public func insert<T: PersistentModel>(_ model: T) { context.insert(model) }

    /// Deletes an object by its delete rules, at the next save. A new object is no longer saved.
    public func delete<T: PersistentModel>(_ model: T) {
        guard objectID(of: model) != nil else { return }
        context.delete(model)
    }

    /// Deletes the saved objects that satisfy a predicate, by their delete rules, at once: it needs no save, and a rollback does not undo it.
    ///
    /// The predicate selects by saved values. Unsaved objects stay. This context drops its unsaved changes of the deleted objects, keeps all
    /// others, and shows the deletion when this returns, as other contexts do at their next fetch.
    ///
    /// If the store can evaluate the predicate, one save finds and deletes the objects. Otherwise the objects are found first, and deleted
    /// by a save after that. Saves of other contexts between the two are not considered: an object that no longer satisfies the predicate
    /// is deleted, and one that satisfies it only since then is kept.
    ///
    /// - Parameters:
    ///   - model: The model class.
    ///   - predicate: The condition; nil for all objects.
    ///   - includeSubclasses: Whether to delete objects of subclasses too. If false, only objects whose class is `model` itself are deleted.
    /// - Throws: Strata's `SaveError` if a delete rule denies the deletion, ``SwiftDataError``, or the store's error. Then nothing is deleted.
    public func delete<T: PersistentModel>(
        model: T.Type, where predicate: Predicate<T>? = nil, includeSubclasses: Bool = true
    ) throws {
        let selection = FetchDescriptor<T>(predicate: predicate)
        guard !isMigrating else { return try deleteObjects(selection, includeSubclasses: includeSubclasses) }
        try checkSaving()
        var options = BatchOptions()
        options.durability = .deferred
        options.author = author ?? ""
        let classes: Condition = includeSubclasses ? .always : noSubclass(of: model)
        do {
            var request = selection.request(isFiltered: true, sorted: [])
            request.condition = classes
            try context.batchDeleteNow(request, options: options)
        } catch let error as FetchError where error.isAnsweredInMemory {
            // Another context reads only what is saved.
            let ids = try ModelContext(container).fetchIdentifiers(selection).map(\.objectID)
            try context.batchDeleteNow(
                EntityFetchRequest(T.entityName, matching: .all([.ids(ids), classes])), options: options)
        }
        noteUnlessChanged()
    }

    /// Returns the condition that an object belongs to no subclass of a model class.
    private func noSubclass<T: PersistentModel>(of model: T.Type) -> Condition {
        let subclasses = context.model.subentities.filter { $0.superentityName == T.entityName }
        return .all(subclasses.map { .not(.isKind(of: $0.name)) })
    }

    /// Deletes the objects of a description at the next save.
    func deleteObjects<T: PersistentModel>(_ selection: FetchDescriptor<T>, includeSubclasses: Bool = true) throws {
        for object in try fetch(selection) where !object.isDeleted && (includeSubclasses || type(of: object) == T.self) {
            context.delete(object)
        }
    }

    /// Returns the object with an identifier: the registered one, or one that is read when it is used.
    ///
    /// For an object that the context has not registered, it first shows newer saves, as a fetch does: the identifier may come from another
    /// context that has just saved the object. Unsaved changes stay.
    ///
    /// - Precondition: The identifier is of an object of this container's store.
    public func model(for persistentModelID: PersistentIdentifier) -> any PersistentModel {
        catchUp(with: persistentModelID)
        guard let model = model(with: persistentModelID.objectID) else {
            preconditionFailure("cannot find \(persistentModelID): it is of another store, or its object was not inserted")
        }
        return model
    }

    /// Shows newer saves if the context has no object with an identifier, because another context may have saved it just now.
    func catchUp(with id: PersistentIdentifier) {
        // The program may have looked the object up before the save that made it, or brought it back.
        if let known = context.registeredModel(for: id.objectID), !known.managedObject.isGone { return }
        context.catchUpWithSaves()
        // A context with unsaved changes has not moved. Without the object, changes of it would be lost.
        if (try? context.existingObject(with: id.objectID)) == nil { context.refreshAllObjects() }
    }

    /// Returns the object with an identifier if the context has it already; nil otherwise.
    public func registeredModel<T: PersistentModel>(for persistentModelID: PersistentIdentifier) -> T? {
        context.registeredModel(for: persistentModelID.objectID) as? T
    }

    /// The objects with unsaved insertions.
    public var insertedModelsArray: [any PersistentModel] { models(context.insertedObjects) }
    /// The objects with unsaved updates.
    public var changedModelsArray: [any PersistentModel] { models(context.updatedObjects) }
    /// The objects with unsaved deletions.
    public var deletedModelsArray: [any PersistentModel] { models(context.deletedObjects) }

    private func models(_ objects: [ManagedObject]) -> [any PersistentModel] {
        objects.compactMap { model(with: $0.objectID) }
    }

    private func model(with id: ObjectID) -> (any PersistentModel)? {
        context.model(for: id) as? any PersistentModel
    }

    /// Discards all unsaved changes.
    public func rollback() {
        context.rollback()
        noteUnlessChanged()
    }

    /// Notifies observers of the changes made so far.
    public func processPendingChanges() { context.processPendingChanges() }
}
