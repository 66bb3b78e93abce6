import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Short forms of requests with one predicate (S139). Like all fetching, they include unsaved changes.
extension ManagedObjectContext {
    /// Returns the objects that satisfy a predicate. Without a sort, they are in the order of their keys.
    ///
    /// ```swift
    /// let played = try context.fetch(where: #Predicate<Track> { $0.playCount > 0 }, sortBy: [.init(\.title)])
    /// ```
    public func fetch<M: PersistentModel>(
        where predicate: Predicate<M>, sortBy: [SortBy<M>] = [], limit: Int? = nil
    ) throws -> [M] { try fetch(FetchRequest(where: predicate, sortBy: sortBy, limit: limit)) }

    /// Returns the first object that satisfies a predicate; nil if there is none. Without a sort, it is the object with the lowest key.
    ///
    /// ```swift
    /// let longest = try context.first(where: #Predicate<Track> { $0.playCount > 0 }, sortBy: [.init(\.playCount, .descending)])
    /// ```
    public func first<M: PersistentModel>(where predicate: Predicate<M>, sortBy: [SortBy<M>] = []) throws -> M? {
        try fetch(FetchRequest(where: predicate, sortBy: sortBy, limit: 1)).first
    }

    /// Returns the number of objects that satisfy a predicate, without creating objects.
    public func count<M: PersistentModel>(where predicate: Predicate<M>) throws -> Int {
        try count(FetchRequest(where: predicate))
    }

    /// Deletes all objects that satisfy a predicate, like ``delete(_:)-(PersistentModel)`` for each. Nothing is written before a save.
    ///
    /// To delete in the store without objects, see ``PersistentStoreCoordinator/batchDelete(_:options:)-(FetchRequest<M>,_)``.
    /// - Returns: The number of objects that satisfied the predicate. Delete rules may delete more.
    @discardableResult
    public func delete<M: PersistentModel>(where predicate: Predicate<M>) throws -> Int {
        let query = try FetchRequest(where: predicate).storeQuery(in: requestScope)
        let keys = try answer(query, includesPendingChanges: true) { try $0.keys(query) }
        // A delete rule may have deleted an object before its turn.
        for key in keys where try exists(query.entity, key) { delete(object(query.entity, key)) }
        return keys.count
    }

    /// Returns the object with a value of a unique attribute; nil if there is none, and for nil, which several objects may have. O(log n) if
    /// the store has an index of it.
    ///
    /// ```swift
    /// let track = try context.find(unique: \Track.isrc, "FRZ039800212")
    /// ```
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint.
    public func find<M: PersistentModel, V: AttributeValue>(unique attribute: KeyPath<M, V>, _ value: V) throws -> M? {
        let (unique, value) = (try uniqueColumn(attribute), value.storeValue)
        if value.isNull { return nil }
        let condition = Condition.equal(unique.definition.name, unique.definition.type.stored(value))
        return try fetch(FetchRequest<M>(matching: condition, limit: 1)).first
    }

    /// Returns the object with a value of a unique attribute of a raw-value type; nil if there is none.
    ///
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint.
    @_disfavoredOverload
    public func find<M: PersistentModel, V: RawRepresentable>(unique attribute: KeyPath<M, V>, _ value: V) throws -> M?
    where V.RawValue: AttributeValue { try find(attribute, value.rawValue.storeValue) }

    /// Returns the object with a value of a unique attribute of an optional raw-value type; nil if there is none, and for nil.
    ///
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint.
    @_disfavoredOverload
    public func find<M: PersistentModel, V: RawRepresentable>(unique attribute: KeyPath<M, V?>, _ value: V?) throws -> M?
    where V.RawValue: AttributeValue { try find(attribute, (value?.rawValue).storeValue) }

    private func find<M: PersistentModel>(_ attribute: PartialKeyPath<M>, _ value: Value) throws -> M? {
        let (entity, name) = try property(attribute)
        let type = try entity.uniqueColumn(named: name).definition.type
        if value.isNull { return nil }
        return try fetch(FetchRequest<M>(matching: .equal(name, type.stored(value)), limit: 1)).first
    }

    /// Returns the object with a value of a unique attribute of a raw-value type, and inserts one with that value if there is none.
    ///
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint; the errors of `update`.
    @_disfavoredOverload @discardableResult
    public func upsert<M: PersistentModel, V: RawRepresentable>(
        unique attribute: KeyPath<M, V>, _ value: V, update: (M) throws -> Void = { _ in }
    ) throws -> M where V.RawValue: AttributeValue { try upsert(attribute, value.rawValue.storeValue, update: update) }

    /// Returns the object with a value of a unique attribute of an optional raw-value type, and inserts one with that value if there is
    /// none.
    ///
    /// - Throws: ``FetchError/notUnique(entity:property:)`` if the attribute has no unique constraint; the errors of `update`.
    @_disfavoredOverload @discardableResult
    public func upsert<M: PersistentModel, V: RawRepresentable>(
        unique attribute: KeyPath<M, V?>, _ value: V, update: (M) throws -> Void = { _ in }
    ) throws -> M where V.RawValue: AttributeValue { try upsert(attribute, value.rawValue.storeValue, update: update) }

    private func upsert<M: PersistentModel>(
        _ attribute: PartialKeyPath<M>, _ value: Value, update: (M) throws -> Void
    ) throws -> M {
        let (entity, name) = try property(attribute)
        let object = try upsert(entity.name, unique: name, value) { try update(wrapped($0, as: M.self)) }
        return wrapped(object, as: M.self)
    }

    private func property<M: PersistentModel>(_ attribute: PartialKeyPath<M>) throws -> (entity: Entity, name: String) {
        guard let entity = storedModel.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        guard let name = M.columnsByKeyPath[attribute] else {
            throw FetchError.unknownProperty(entity: entity.name, property: RowText.property(attribute))
        }
        return (entity, name)
    }
}
