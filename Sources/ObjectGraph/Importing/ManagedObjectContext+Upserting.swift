import StoreInterface
import StoreModel

/// Finding or inserting an object by a unique value (S139).
extension ManagedObjectContext {
    /// Returns the object with a value of a unique attribute, and inserts one with that value if there is none. A new object has the
    /// initial values of its class in its other properties.
    ///
    /// Finds saved and unsaved objects, as `find(unique:_:)` does. nil equals no value, so that nil always inserts an object. If another
    /// context saves an object with the same value first, the merge policy settles it at the save (S108).
    ///
    /// ```swift
    /// let track = try context.upsert(unique: \Track.isrc, "FRZ039800212") { track in
    ///     track.title = "Baguette"
    /// }
    /// ```
    /// - Parameters:
    ///   - attribute: An attribute that is unique alone, not only together with other attributes.
    ///   - value: The value of the object.
    ///   - update: Sets the other properties. If it throws, the object that this call inserted is deleted again, with the initial objects
    ///     of its relationships.
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint; the errors of `update`.
    @discardableResult
    public func upsert<M: PersistentModel, V: AttributeValue>(
        unique attribute: KeyPath<M, V>, _ value: V, update: (M) throws -> Void = { _ in }
    ) throws -> M {
        let unique = try uniqueColumn(attribute)
        return wrapped(
            try upsert(unique, value: value.storeValue) { object in try update(wrapped(object, as: M.self)) }, as: M.self)
    }

    /// Returns the object of an entity with a value of a unique attribute, and inserts one with that value if there is none.
    ///
    /// - Throws: ``FetchError``, ``BatchError/wrongValue(entity:property:value:)``; the errors of `update`.
    @discardableResult
    public func upsert(
        _ entityName: String, unique attribute: String, _ value: Value, update: (ManagedObject) throws -> Void = { _ in }
    ) throws -> ManagedObject {
        guard let entity = storedModel.entity(named: entityName) else { throw FetchError.unknownEntity(entityName) }
        let unique = try entity.uniqueColumn(named: attribute)
        guard unique.definition.accepts(value), unique.definition.type.keepsFinite(value) else {
            throw BatchError.wrongValue(entity: entityName, property: attribute, value: value)
        }
        return try upsert(unique, value: value, update)
    }

    private func upsert(_ unique: UniqueColumn, value: Value, _ update: (ManagedObject) throws -> Void) throws
        -> ManagedObject
    {
        checkIsolation()
        let value = unique.definition.type.stored(value)
        if let key = try keys(of: [value], in: unique)[value] {
            let object = self.object(unique.entity.number, key)
            try update(object)
            return object
        }
        if unique.entity.isAbstract { throw BatchError.abstractEntity(unique.entity.name) }
        let initial = InitialValues(unique.entity, in: storedModel)
        let (object, related) = insertNew(unique.entity, initial, setting: [(unique.column, value)])
        do { try update(object) } catch {
            // Delete rules must not reach objects that the closure has related.
            for inserted in [object] + related where isHere(inserted) { unrelate(inserted) }
            for inserted in [object] + related { delete(inserted) }
            throw error
        }
        return object
    }

    func uniqueColumn<M: PersistentModel, V: AttributeValue>(_ attribute: KeyPath<M, V>) throws -> UniqueColumn {
        guard let entity = storedModel.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        guard let name = M.columnsByKeyPath[attribute] else {
            throw FetchError.unknownProperty(entity: entity.name, property: RowText.property(attribute))
        }
        return try entity.uniqueColumn(named: name)
    }

    /// Returns the keys of the objects that have these values, unsaved objects included. Null equals no value.
    func keys(of values: Set<Value>, in unique: UniqueColumn) throws -> [Value: ObjectKey] {
        let wanted = values.filter { !$0.isNull }
        guard !wanted.isEmpty else { return [:] }
        let (entity, column) = (unique.entity.number, unique.column)
        let predicate: StorePredicate =
            wanted.count == 1 ? .compare(column, .equal, to: wanted.first ?? .null) : .isIn(column, wanted)
        let parts = [predicate, unique.entity.selection].compactMap(\.self)
        let query = StoreQuery(entity: entity, predicate: .all(parts))
        let keys = try answer(query, includesPendingChanges: true) { try $0.keys(query) }
        var found: [Value: ObjectKey] = [:]
        // Not earlier: the request may move the context to a newer state.
        let view = layerStack.view
        for key in keys {
            // The lowest key, if unsaved objects have equal values.
            if let value = try view.value(entity, key: key, column: column), found[value] == nil { found[value] = key }
        }
        return found
    }
}
