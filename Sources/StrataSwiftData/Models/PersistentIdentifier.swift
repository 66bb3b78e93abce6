import ObjectGraph
import StoreInterface
import StoreModel

/// The identifier of an object.
///
/// It never changes once the object is inserted, and is the same in each context, process and run. Before the insertion it is
/// provisional. Until the insertion is saved, the context finds the object by both. An encoded provisional identifier is not that of any
/// object in another process.
///
/// ```swift
/// let id = trip.persistentModelID  // for another context
/// if let same = context.model(for: id) as? Trip { print(same.name) }
/// ```
public struct PersistentIdentifier: Sendable, Identifiable, Codable {
    package let objectID: ObjectID
    /// The name of the model class.
    public let entityName: String

    /// The identity of the identifier.
    public struct ID: Sendable, Hashable {
        fileprivate let objectID: ObjectID
    }

    init(_ objectID: ObjectID, entityName: String) {
        self.objectID = objectID
        self.entityName = entityName
    }

    init<M: PersistentModel>(of model: M) {
        self.init(model.managedObject.identifier, entityName: Swift.type(of: model).entityName)
    }

    /// The identity of the identifier.
    public var id: ID { ID(objectID: objectID) }

    /// The identity of the store; nil before the object is inserted.
    public var storeIdentifier: String? { objectID.store == .provisional ? nil : objectID.store.uuid.uuidString }

    /// Creates an identifier from its parts.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The identity of the store, as ``storeIdentifier`` gives it.
    ///   - entityName: The entity of the object.
    ///   - primaryKey: The text of the object's id, as an encoded identifier contains it.
    /// - Throws: ``SwiftDataError/unknownSchema`` if the text is not that of an id in this store.
    public static func identifier(
        for storeIdentifier: String, entityName: String, primaryKey: some LosslessStringConvertible
    ) throws -> PersistentIdentifier {
        guard let id = ObjectID(primaryKey.description), id.store.uuid.uuidString == storeIdentifier else {
            throw SwiftDataError.unknownSchema.saying(
                "cannot make an identifier of \(entityName) from \"\(primaryKey)\": it is not the id of an object in the store "
                    + "\(storeIdentifier). Pass the id that an encoded identifier of this store contains.")
        }
        return PersistentIdentifier(id, entityName: entityName)
    }
}

extension PersistentIdentifier: Hashable, Comparable {
    /// Returns whether two identifiers are of one object.
    public static func == (a: Self, b: Self) -> Bool { a.objectID == b.objectID }
    /// Hashes the id of the object.
    public func hash(into hasher: inout Hasher) { hasher.combine(objectID) }
    /// Orders identifiers by store, model, and insertion.
    public static func < (a: Self, b: Self) -> Bool {
        if a.objectID.store != b.objectID.store { return a.objectID.store.uuid.uuidString < b.objectID.store.uuid.uuidString }
        return (a.objectID.entity, a.objectID.key) < (b.objectID.entity, b.objectID.key)
    }
}

extension PersistentIdentifier: CustomStringConvertible {
    /// The name of the model class and the id.
    public var description: String { storeIdentifier == nil ? "\(entityName) (not inserted)" : "\(entityName) \(objectID)" }
}

extension PersistentIdentifier: ObjectIDConvertible {
    package init(objectID: ObjectID, entityName: String) { self.init(objectID, entityName: entityName) }
}
