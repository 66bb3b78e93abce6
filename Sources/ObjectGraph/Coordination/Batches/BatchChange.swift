import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A change that a batch makes to each of its objects, typed by key path (S139).
///
/// ```swift
/// try await coordinator.batchUpdate(
///     FetchRequest<Track>(where: #Predicate { $0.playCount > 100 }), .set(\.playCount, to: 0), .set(\.album, to: album))
/// ```
public struct BatchChange<M: PersistentModel>: Sendable {
    enum NewValue: Sendable {
        case value(Value)
        case object(ObjectID?)
    }

    /// The name of the property; nil if the key path refers to no stored property. The batch then throws.
    private let name: String?
    /// The name of the property, or the path from it to a unique attribute of its destination.
    let property: String?
    let keyPathText: String
    let newValue: NewValue

    private init(_ keyPath: AnyKeyPath, _ newValue: NewValue) {
        name = M.columnsByKeyPath[keyPath]
        property = name
        keyPathText = RowText.property(keyPath)
        self.newValue = newValue
    }

    private init<N: PersistentModel>(_ keyPath: AnyKeyPath, _ newValue: NewValue, by unique: PartialKeyPath<N>) {
        name = M.columnsByKeyPath[keyPath]
        property = name.map { "\($0).\(N.name(of: unique))" }
        keyPathText = RowText.property(keyPath)
        self.newValue = newValue
    }

    /// Sets an attribute.
    public static func set<V: AttributeValue>(_ keyPath: KeyPath<M, V>, to value: V) -> BatchChange {
        BatchChange(keyPath, .value(value.storeValue))
    }

    /// Sets an attribute of a raw-value type.
    @_disfavoredOverload
    public static func set<V: RawRepresentable>(_ keyPath: KeyPath<M, V>, to value: V) -> BatchChange
    where V.RawValue: AttributeValue {
        BatchChange(keyPath, .value(value.rawValue.storeValue))
    }

    /// Sets an attribute of an optional raw-value type.
    @_disfavoredOverload
    public static func set<V: RawRepresentable>(_ keyPath: KeyPath<M, V?>, to value: V?) -> BatchChange
    where V.RawValue: AttributeValue {
        BatchChange(keyPath, .value((value?.rawValue).storeValue))
    }

    /// Sets an attribute of a raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func set<V: RawRepresentable & Codable>(_ keyPath: KeyPath<M, V>, to value: V) -> BatchChange
    where V.RawValue: AttributeValue {
        BatchChange(keyPath, .value(value.rawValue.storeValue))
    }

    /// Sets an attribute of an optional raw-value type that is also `Codable`.
    @_disfavoredOverload
    public static func set<V: RawRepresentable & Codable>(_ keyPath: KeyPath<M, V?>, to value: V?) -> BatchChange
    where V.RawValue: AttributeValue {
        BatchChange(keyPath, .value((value?.rawValue).storeValue))
    }

    /// Sets an attribute of a `Codable` type, which may be optional.
    @_disfavoredOverload
    public static func set<V: Codable>(_ keyPath: KeyPath<M, V>, to value: V) -> BatchChange {
        BatchChange(keyPath, .value(EncodedAttribute(value).storeValue))
    }

    /// Sets a to-one relationship to the object with an id, which must exist when the batch runs; nil removes the reference.
    public static func set<N: PersistentModel>(_ keyPath: KeyPath<M, N?>, to id: ObjectID?) -> BatchChange {
        BatchChange(keyPath, .object(id))
    }

    /// Sets a to-one relationship that is not optional to the object with an id, which must exist when the batch runs.
    public static func set<N: PersistentModel>(_ keyPath: KeyPath<M, N>, to id: ObjectID) -> BatchChange {
        BatchChange(keyPath, .object(id))
    }

    /// Sets a to-one relationship to the object with a value of a unique attribute, which must exist when the batch runs.
    ///
    /// ```swift
    /// let change = BatchChange.set(\Track.album, \.title, to: "Live")
    /// ```
    public static func set<N: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, N?>, _ unique: KeyPath<N, V>, to value: V
    ) -> BatchChange {
        BatchChange(keyPath, .value(value.storeValue), by: unique)
    }

    /// Sets a to-one relationship that is not optional to the object with a value of a unique attribute.
    public static func set<N: PersistentModel, V: AttributeValue>(
        _ keyPath: KeyPath<M, N>, _ unique: KeyPath<N, V>, to value: V
    ) -> BatchChange {
        BatchChange(keyPath, .value(value.storeValue), by: unique)
    }

    /// Returns the name of the changed property; the property as a batch takes it, which is its name or the path to a unique attribute of
    /// its destination; and the value of the column there.
    func storeValue(_ entity: Entity, _ store: StoreIdentity) throws -> (name: String, property: String, value: Value) {
        guard let name, let property, let column = entity.column(named: name) else {
            throw FetchError.unknownProperty(entity: entity.name, property: keyPathText)
        }
        switch newValue {
        case .value(let value): return (name, property, value)
        case .object(nil): return (name, property, .null)
        case .object(let id?):
            guard id.store == store, id.entity == entity.columns[column].destination else {
                throw BatchError.wrongValue(entity: entity.name, property: property, value: .reference(id.key))
            }
            return (name, property, .reference(id.key))
        }
    }
}

extension PersistentStoreCoordinator {
    /// Sets properties of all objects that a request selects, in one atomic save. Values are typed by key path.
    ///
    /// Of two changes of one property, the last one applies. A one-to-one relationship changes at both ends, and the request must select at
    /// most one object, unless it is set to nil. Needs about 150 bytes of memory per object until it is saved.
    ///
    /// - Throws: ``FetchError``, ``BatchError``, ``SaveError``, `StoreError`. Then nothing is written, unless the
    ///   code is `.notOnDisk`.
    @discardableResult
    public func batchUpdate<M: PersistentModel>(
        _ request: FetchRequest<M>, _ first: BatchChange<M>, _ others: BatchChange<M>..., options: BatchOptions = BatchOptions()
    ) async throws -> BatchResult {
        guard let entity = model.entity(for: M.self) else { throw FetchError.unknownEntity("\(M.self)") }
        var values: [String: Value] = [:]
        var properties: [String: String] = [:]
        for change in [first] + others {
            let (name, property, value) = try change.storeValue(entity, store.identity)
            // A relationship may have been set in another way, by a key or by another attribute.
            if let earlier = properties.updateValue(property, forKey: name) { values[earlier] = nil }
            values[property] = value
        }
        return try await batchUpdate(request, set: values, options: options)
    }
}
