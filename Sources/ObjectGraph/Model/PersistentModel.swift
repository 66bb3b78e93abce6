import StoreInterface

/// A class whose objects are stored: what `@Model` makes of a class.
///
/// A model object wraps a ``ManagedObject``; there is one of each for a record and context (S001).
public protocol PersistentModel: AnyObject, Hashable, Identifiable, SendableMetatype {
    static var entityDescription: EntityDescription { get }
    /// The name of the property behind each key path, for predicates and sorting.
    static var columnsByKeyPath: [AnyKeyPath: String] { get }
    var managedObject: ManagedObject { get }
    /// Wraps an object of a context, for which no model exists yet. Contexts call it.
    init(managedObject: ManagedObject)
}

extension PersistentModel {
    /// The object's id: final from its insertion on. A programmer error before.
    public var id: ObjectID { managedObject.objectID }

    public static func == (a: Self, b: Self) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// The context in which the object is registered; nil before insertion.
    public var managedObjectContext: ManagedObjectContext? { managedObject.managedObjectContext }

    public var isDeleted: Bool { managedObject.isDeleted }
    public var hasChanges: Bool { managedObject.hasChanges }
}

/// Hooks of an object's life. A model that does not conform pays nothing for them.
public protocol ManagedObjectLifecycle: PersistentModel {
    /// Once in an object's life, after its insertion (S040).
    func awakeFromInsert()
    /// Once an instance, when it is first read from below (S021): the place to set transient properties. Stored properties of the
    /// object itself are not changed in it: what it sets of them is dropped.
    func awakeFromFetch()
    /// Before each save that includes the object, again until nothing changes any more (S060).
    func willSave()
    func didSave()
    /// Before its relationships are torn down (S042).
    func prepareForDeletion()
    func validateForInsert() throws
    func validateForUpdate() throws
    func validateForDelete() throws
}

extension ManagedObjectLifecycle {
    public func awakeFromInsert() {}
    public func awakeFromFetch() {}
    public func willSave() {}
    public func didSave() {}
    public func prepareForDeletion() {}
    public func validateForInsert() throws {}
    public func validateForUpdate() throws {}
    public func validateForDelete() throws {}
}
