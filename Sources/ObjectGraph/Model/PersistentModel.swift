import Observation
import StoreInterface
import StoreModel

/// A class whose objects are stored. The `@Model` macro generates the conformance.
///
/// A model object wraps a ``ManagedObject``. There is one model object per record and context (S001).
/// Without the macro, a class conforms like this:
///
/// ```swift
/// final class Album: PersistentModel {
///     private let anchor: ModelAnchor
///     var managedObject: ManagedObject { anchor.object }
///
///     var title: String {
///         get { managedObject.get(0) }
///         set { managedObject.set(0, to: newValue) }
///     }
///
///     init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }
///
///     convenience init(title: String) {
///         self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
///         self.title = title
///     }
///
///     static let entityDescription = EntityDescription(
///         name: "Album", properties: [.attribute(AttributeDescription("title", of: \Album.title))])
///     // Immutable: it is created once, and key paths do not change.
///     nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Album.title: "title"]
/// }
/// ```
public protocol PersistentModel: AnyObject, Hashable, Identifiable, Observable, SendableMetatype, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The description of the class as an entity.
    static var entityDescription: EntityDescription { get }
    /// The name of the entity. The macro generates it, because descriptions of relationships need it before the description of their
    /// destination exists.
    static var entityName: String { get }
    /// The name of the property of each key path, for predicates and sorting.
    static var columnsByKeyPath: [AnyKeyPath: String] { get }
    /// The managed object that the model wraps.
    var managedObject: ManagedObject { get }
    /// Creates a model that wraps a context's object. Called by contexts if the object has no model yet.
    init(managedObject: ManagedObject)
}

extension PersistentModel {
    /// The name in ``entityDescription``.
    public static var entityName: String { entityDescription.name }

    /// The object's id, which is final from its insertion on (S002), and provisional before. A model that declares a property `id` has that
    /// one instead, and ``persistentModelID`` for this.
    ///
    /// A provisional id identifies a new object in its process, for example in a list that shows it. No other object has it, and the
    /// insertion replaces it by the final id. So read `id` after the insertion to store it or to use it in another context. Until the
    /// insertion is saved, ``ManagedObjectContext/model(for:)`` finds the object by both ids. A new object that a rollback removes from its
    /// context has a provisional id again.
    ///
    /// - Precondition: The context of an inserted object still exists, or was released after it saved the insertion. It was not reset.
    public var id: ObjectID { currentID }

    /// The object's id, as ``id`` is without a property `id` in the model: final from the insertion on, and provisional before.
    ///
    /// - Precondition: The context of an inserted object still exists, or was released after it saved the insertion. It was not reset.
    public var persistentModelID: ObjectID { currentID }

    private var currentID: ObjectID {
        let object = managedObject
        guard object.state == .detached else { return object.objectID }
        object.claim(self)
        return object.identifier
    }

    /// Returns whether two references refer to one object. Two contexts have different objects of one record.
    public static func == (a: Self, b: Self) -> Bool { a === b || a.managedObject === b.managedObject }

    /// Hashes the identity of the object, which never changes.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(managedObject)) }

    /// The context in which the object is registered; nil before insertion.
    public var managedObjectContext: ManagedObjectContext? {
        if managedObject.state == .detached { managedObject.claim(self) }
        return managedObject.managedObjectContext
    }

    /// A Boolean value that indicates whether the object has an unsaved deletion, or its record is gone.
    public var isDeleted: Bool { managedObject.isDeleted }
    /// A Boolean value that indicates whether the object has unsaved changes.
    public var hasChanges: Bool {
        if managedObject.state == .detached { managedObject.claim(self) }
        return managedObject.hasChanges
    }
}

/// Lifecycle hooks of an object. Models that do not conform have no cost for them.
///
/// ```swift
/// extension Album: ManagedObjectLifecycle {
///     struct NoTitle: Error {}
///
///     func validateForInsert() throws {
///         if title.isEmpty { throw NoTitle() }
///     }
/// }
/// ```
public protocol ManagedObjectLifecycle: PersistentModel {
    /// Called once in an object's lifetime, after its insertion (S040).
    func awakeFromInsert()
    /// Called once per instance, when it is first read from the store (S021). Use it to set transient properties.
    ///
    /// Changes to stored properties of the object are dropped.
    func awakeFromFetch()
    /// Called before each save that includes the object, and again until nothing changes (S060).
    func willSave()
    /// Called after each save that includes the object.
    func didSave()
    /// Called before the object's relationships are removed by their delete rules (S042).
    func prepareForDeletion()
    /// Throws an error if the inserted object is invalid. Called before each save that inserts it (S061).
    func validateForInsert() throws
    /// Throws an error if the updated object is invalid. Called before each save that updates it (S061).
    func validateForUpdate() throws
    /// Throws an error if the object must not be deleted. Called before each save that deletes it (S061).
    func validateForDelete() throws
}

extension ManagedObjectLifecycle {
    /// Does nothing.
    public func awakeFromInsert() {}
    /// Does nothing.
    public func awakeFromFetch() {}
    /// Does nothing.
    public func willSave() {}
    /// Does nothing.
    public func didSave() {}
    /// Does nothing.
    public func prepareForDeletion() {}
    /// Accepts every object.
    public func validateForInsert() throws {}
    /// Accepts every object.
    public func validateForUpdate() throws {}
    /// Accepts every object.
    public func validateForDelete() throws {}
}
