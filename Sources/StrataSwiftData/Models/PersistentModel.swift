import ObjectGraph

/// A class whose objects are stored. ``Model()`` generates the conformance.
public protocol PersistentModel: ObjectGraph.PersistentModel {}

extension PersistentModel {
    /// The object's identifier: final from the insertion on, and provisional before.
    public var persistentModelID: PersistentIdentifier { PersistentIdentifier(of: self) }

    /// The object's ``persistentModelID``. A model that declares a property `id` has that one instead.
    public var id: PersistentIdentifier { PersistentIdentifier(of: self) }

    /// The context that the object is inserted into. nil before the insertion, and after a deletion was saved.
    public var modelContext: ModelContext? {
        guard let context = managedObjectContext else { return nil }
        if managedObject.isDeleted, !managedObject.hasChanges { return nil }
        return ModelContext.wrapping(context)
    }

    /// A Boolean value that indicates whether the object has unsaved changes.
    public var hasChanges: Bool { objectHasChanges(self) }

    /// A Boolean value that indicates whether the object is deleted, by an unsaved or a saved deletion.
    public var isDeleted: Bool { managedObject.isDeleted }

    /// Returns whether two references refer to one object. Two contexts have different objects of one record.
    public static func == (a: Self, b: Self) -> Bool { a === b || a.managedObject === b.managedObject }

    /// Hashes the identity of the object, which never changes.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(managedObject)) }
}

private func objectHasChanges(_ model: some ObjectGraph.PersistentModel) -> Bool { model.hasChanges }

/// Returns the id of an object; nil before its insertion and after its removal.
func objectID(of model: some ObjectGraph.PersistentModel) -> ObjectID? {
    model.managedObjectContext == nil ? nil : model.persistentModelID
}
