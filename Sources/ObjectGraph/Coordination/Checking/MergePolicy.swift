import StoreInterface

/// What a save does when the store's version of an object is newer than the one the context read.
public enum MergePolicy: Sendable {
    /// The save throws ``SaveError/conflicts(_:)``; nothing is written.
    case error
    /// By property: changed on both sides takes the store's value, changed on one side takes that side's.
    case storeTrump
    /// By property: changed on both sides takes the context's value, changed on one side takes that side's.
    case objectTrump
    /// The context's whole object is written.
    case overwrite
    /// The context's changes to the objects in conflict are dropped; the rest of the save goes on.
    case rollback
    /// A function of yours gets every conflict of the save, by entity and key, with base, ours and theirs, and says for each what is to be
    /// written (S109). Conflicts that it leaves out, and what it throws, end the save. Values of unique attributes that another
    /// object has still throw.
    ///
    /// Called on the writer's thread, inside the transaction when there is one, and again when that is repeated: it must be quick,
    /// have no effects, and not wait for a context.
    case custom(@Sendable ([MergeConflict]) throws -> [ObjectID: ConflictResolution])
}

/// What a ``MergePolicy/custom(_:)`` policy does about one object.
public enum ConflictResolution: Sendable, Hashable {
    /// As the policy of this name.
    case storeTrump, objectTrump, overwrite, rollback
    /// The object gets these values by property, attributes and to-one relationships; all else is as in the store. An object that was
    /// deleted there comes back with the context's other values, one that was deleted here stays.
    case values([String: Value])
}

/// One object that was changed here and in the store since it was read.
public struct MergeConflict: Sendable, CustomStringConvertible {
    /// One property in the three states; nil where the object did not or does not exist.
    public struct Property: Sendable {
        public var name: String
        public var base: Value?
        public var ours: Value?
        public var theirs: Value?
    }

    public var objectID: ObjectID
    public var entityName: String
    /// The properties that one side or both changed.
    public var properties: [Property]
    public var isDeletedHere: Bool
    public var isDeletedInStore: Bool

    public var description: String {
        let what =
            isDeletedHere
            ? "deleted here, changed in the store"
            : isDeletedInStore
                ? "changed here, deleted in the store" : "changed here and in the store"
        return "\(entityName) \(objectID): \(what) (\(properties.map(\.name).joined(separator: ", ")))"
    }
}

/// Why a save did not happen. The context keeps its pending changes, the store is as it was.
public enum SaveError: Error, Sendable, CustomStringConvertible {
    case conflicts([MergeConflict])
    /// Another object already has these values of the properties of a unique constraint (S108).
    case uniqueConstraint(entity: String, properties: [String], values: [Value], objects: [ObjectID])
    /// A relationship with delete rule deny still has objects at its far end.
    case deleteDenied(object: ObjectID, relationship: String, blocking: [ObjectID])
    /// A relationship of an object leads to an object that does not exist: deleted by this save, or by another one before it (S050).
    case danglingReference(object: ObjectID, property: String, target: ObjectID)
    /// One or more objects refused; each error with its object.
    case validation([(ObjectID, any Error)])
    /// `willSave` kept changing objects.
    case willSaveDoesNotSettle(rounds: Int)
    /// The parent of the context was released or reset.
    case parentGone(context: String)
    /// Of a flush: deferred saves that were acknowledged and could not be written. The others are on disk.
    case deferredSavesFailed([DeferredSaveFailure])

    public var description: String {
        switch self {
        case .conflicts(let conflicts):
            "\(conflicts.count) object(s) changed in the store since they were read: "
                + conflicts.map(\.description).joined(separator: "; ")
                + "; merge and save again, or choose a merge policy"
        case .uniqueConstraint(let entity, let properties, let values, let objects):
            "\(entity).\(properties.joined(separator: " + ")) must be unique, but "
                + values.map { "\($0)" }.joined(separator: ", ") + " belongs to "
                + objects.map(\.description).joined(separator: " and ")
        case .deleteDenied(let object, let relationship, let blocking):
            "\(object) cannot be deleted: its \(relationship) still holds "
                + blocking.map(\.description).joined(separator: ", ") + "; delete or move them first"
        case .danglingReference(let object, let property, let target):
            "\(property) of \(object) leads to \(target), which does not exist: it was deleted, or never saved; "
                + "set another object or nil and save again"
        case .validation(let failures):
            "\(failures.count) object(s) are not valid: "
                + failures.map { "\($0.0): \($0.1)" }.joined(separator: "; ")
        case .willSaveDoesNotSettle(let rounds):
            "willSave changed objects in each of \(rounds) rounds; it must stop changing them at some point"
        case .parentGone(let context):
            "the parent of the context \(context) was released or reset; nothing was saved"
        case .deferredSavesFailed(let failures):
            "\(failures.count) deferred save(s) could not be written: " + failures.map(\.description).joined(separator: "; ")
                + ". Save those changes again"
        }
    }
}
