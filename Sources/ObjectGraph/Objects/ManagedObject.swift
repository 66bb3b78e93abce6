import StoreInterface
import StoreModel

/// A record in a context: its identity, its unsaved values, and access to its stored values.
///
/// A typed model (`@Model`) wraps a managed object. For a model known only at run time, use this class directly, by property name.
///
/// An object belongs to its context and is not `Sendable`. Use it, and release its last reference, only on the context's executor.
/// A class on the main actor that retains objects needs an `isolated deinit`; otherwise they may be released on another executor.
///
/// A clean object contains no values. Each read uses the newest layer that has the property, else the snapshot, and decodes only that
/// property.
///
/// The fields are accessed without the run-time check of exclusive access. This is safe because one executor uses an object, and no
/// access to a field calls other code while it lasts.
///
/// ```swift
/// let album = context.insert("Album")
/// let track = context.insert("Track")
/// track["title"] = "Baguette"
/// track.setRelatedObject("album", to: album)
/// ```
public final class ManagedObject {
    /// The relation of an object to a context.
    enum State: UInt8 {
        /// Created, but not yet inserted into a context. The object owns its row.
        case detached
        /// Registered in ``context``.
        case registered
        /// The context was reset or released, or it was rolled back past the insertion of an object without a model.
        case invalid
    }

    /// The user's code that is running for the object, and that treats its properties differently.
    private struct Activity {
        var isAwaking = false
        var isBeingInitialized = false
        var hasRunInsertHook = false
        var isPreparingForDeletion = false
    }

    /// The data of an object outside of a context. One reference, because every object has room for it.
    private enum Unregistered {
        case nothing
        case detached(DetachedState)
        case released(ReleasedContext)
    }

    /// The numbers of the object's entity.
    private struct Kind {
        var entity: Int32 = -1
        var member = ManagedObject.unknownMember
    }

    /// Unmanaged is safe, because a context clears this reference in each of its objects before it is released.
    @exclusivity(unchecked) private var contextReference: Unmanaged<ManagedObjectContext>?
    /// The typed model that wraps this object, if there is one.
    ///
    /// `unowned(unsafe)` is safe because the model's ``ModelAnchor`` clears it when the model is released.
    @exclusivity(unchecked) unowned(unsafe) var model: (any PersistentModel)?
    /// The newest row in this context's own unsaved layers; nil for a clean object.
    @exclusivity(unchecked) var row: Row?
    @exclusivity(unchecked) var key: ObjectKey = 0
    @exclusivity(unchecked) private var kind = Kind()
    @exclusivity(unchecked) var state: State
    /// Whether the context retains the object (and its model) because it has unsaved changes.
    @exclusivity(unchecked) var isRetained = false
    /// Whether the context retains the model instead of the object.
    @exclusivity(unchecked) var retainsModel = false
    @exclusivity(unchecked) var isDeletedHere = false
    @exclusivity(unchecked) var hasAwoken = false
    /// Whether a read has nothing to do besides reading: the object has awoken, and its context does not record reads for observers.
    @exclusivity(unchecked) var readsDirectly = false
    @exclusivity(unchecked) private var activity = Activity()
    /// The number of models of this object that ``model`` does not refer to, because the object has not seen them yet.
    @exclusivity(unchecked) var unattachedAnchors: UInt8 = 0
    @exclusivity(unchecked) private var unregistered = Unregistered.nothing
    /// The observers of the object's properties; nil before the first read inside `withObservationTracking`.
    @exclusivity(unchecked) var observation: ObservedObject?

    /// Creates a detached object, to be inserted into a context later.
    public init(detached entity: DetachedEntity) {
        state = .detached
        row = Row.make(kind: .insert, layer: 0, columnCount: entity.columnCount)
        detachedState = DetachedState(entity: entity)
    }

    /// Leaves the context that has forgotten the object.
    func becomeDetached(_ values: Row, _ entity: DetachedEntity) {
        state = .detached
        (row, key) = (values, 0)
        detachedState = DetachedState(entity: entity)
        (isDeletedHere, hasAwoken, readsDirectly) = (false, false, false)
    }

    /// Creates a fault in a context.
    init(context: ManagedObjectContext, entity: EntityIndex, key: ObjectKey) {
        contextReference = .passUnretained(context)
        kind.entity = Int32(entity.rawValue)
        self.key = key
        state = .registered
    }

    deinit {
        guard state == .registered else { return }
        contextReference?._withUnsafeGuaranteedRef { context in
            // The registry has no lock, so the last release must also happen on the context's executor.
            context.checkAccess()
            context.registry.forget(self)
            if observation != nil { context.observed.remove(self) }
        }
    }

    var entity: EntityIndex {
        get { EntityIndex(rawValue: Int(kind.entity)) }
        set { kind.entity = Int32(newValue.rawValue) }
    }

    /// The number of the object's entity in its hierarchy, once it is known.
    var member: UInt8 {
        get { kind.member }
        set { kind.member = newValue }
    }

    static let unknownMember = UInt8.max

    /// Relationships set while the object is detached; otherwise nil.
    var detachedState: DetachedState? {
        get { if case .detached(let relations) = unregistered { relations } else { nil } }
        set {
            if let newValue { unregistered = .detached(newValue) } else { unregistered = .nothing }
        }
    }

    /// The context in which the object was saved, after that context was released; otherwise nil. The object keeps its id (S002).
    var releasedContext: ReleasedContext? {
        if case .released(let context) = unregistered { context } else { nil }
    }

    /// Leaves a context that is being released.
    ///
    /// - Parameter context: The source of the object's id; nil if the object's insertion is unsaved, so that it has no id any more.
    func leave(_ context: ReleasedContext?) {
        contextReference = nil
        state = .invalid
        if let context { unregistered = .released(context) }
    }

    /// Whether `awakeFromFetch` is running. Stored properties are not written during the hook.
    var isAwaking: Bool {
        get { activity.isAwaking }
        set { activity.isAwaking = newValue }
    }

    /// Whether the object's model is being created with it, so that initial values of properties are its values.
    var isBeingInitialized: Bool {
        get { activity.isBeingInitialized }
        set { activity.isBeingInitialized = newValue }
    }

    /// Whether `awakeFromInsert` has run.
    var hasRunInsertHook: Bool {
        get { activity.hasRunInsertHook }
        set { activity.hasRunInsertHook = newValue }
    }

    /// Whether `prepareForDeletion` is running.
    var isPreparingForDeletion: Bool {
        get { activity.isPreparingForDeletion }
        set { activity.isPreparingForDeletion = newValue }
    }

    var context: ManagedObjectContext? {
        get { contextReference?.takeUnretainedValue() }
        set { contextReference = newValue.map { .passUnretained($0) } }
    }

    /// Calls `body` with the object's context, without counting a reference to it, which would take longer than reading a property.
    ///
    /// This is safe because the object is used only on its context's executor, and `body` calls no user code that might release the
    /// context. Using an object after its context was reset or released is a programmer error. It stops the program with a message.
    @inline(__always)
    func withContext<R>(_ body: (ManagedObjectContext) -> R) -> R {
        guard let contextReference, state == .registered else { stopWithoutContext() }
        return contextReference._withUnsafeGuaranteedRef { context in
            context.checkAccess()
            #if DEBUG
                return context.occupied { body(context) }
            #else
                return body(context)
            #endif
        }
    }

    var requiredContext: ManagedObjectContext { withContext { $0 } }

    private func stopWithoutContext() -> Never {
        preconditionFailure(
            "the object \(entity)/\(key) is used after its context was reset, rolled back or released. "
                + "Keep its objectID and look it up in a context.")
    }
}

extension ManagedObject {
    /// The object's id.
    ///
    /// A saved object keeps its id after its context was released (S002).
    ///
    /// - Precondition: The object is inserted into a context, because a detached object has no id yet. Its typed model has a provisional
    ///   one, ``PersistentModel/persistentModelID``. If the insertion is unsaved, the context still
    ///   exists. The context was not reset.
    public var objectID: ObjectID {
        arrive()
        precondition(state != .detached, "cannot give the id of a new object: it is in no context. Insert it first.")
        guard let store = context?.storeIdentity ?? releasedContext?.storeIdentity else {
            preconditionFailure(
                "cannot give the id of an object: its context was reset, or released before it saved the object. "
                    + "Take the objectID before that.")
        }
        return ObjectID(store: store, entity: entity, key: key)
    }

    /// The context in which the object is registered; nil before its insertion and after its removal.
    public var managedObjectContext: ManagedObjectContext? {
        arrive()
        return state == .registered ? context : nil
    }

    /// A Boolean value that indicates whether the object has an unsaved deletion in this context, or its record is gone. Looks for the record,
    /// which takes as long as reading a property.
    public var isDeleted: Bool {
        willRead(.isDeleted)
        if isDeletedHere { return true }
        guard row == nil, state == .registered, let context else { return false }
        context.checkAccess()
        return (try? context.exists(entity, key)) == false
    }

    /// A Boolean value that indicates whether the object has an unsaved insertion in this context.
    public var isInserted: Bool { isRegistered && requiredContext.layerStack.pendingKind(entity, key) == .insert }

    /// A Boolean value that indicates whether the object has an unsaved update in this context.
    public var isUpdated: Bool { isRegistered && requiredContext.changeKind(entity, key) == .update }

    /// A Boolean value that indicates whether the object has an unsaved insertion, update or deletion in this context.
    public var hasChanges: Bool { isRegistered && requiredContext.changeKind(entity, key) != nil }

    /// A Boolean value that indicates whether the object contains no values of its own, so that every read goes to the context's state.
    public var isFault: Bool { isRegistered && row == nil }

    /// Whether the object is in a context, after inserting the objects that wait for their insertion.
    private var isRegistered: Bool {
        arrive()
        guard state == .registered else { return false }
        requiredContext.admitArrivals()
        return true
    }
}

extension ManagedObject: Hashable {
    /// Returns whether two references refer to one object.
    public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a === b }
    /// Hashes the identity of the object, which never changes.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
