internal import Platform
import StoreInterface

/// The storage of a model's property: nothing, since the values lie in its ``ManagedObject``.
///
/// It takes no room. That it is there makes Swift demand a value for the property in each initializer.
public struct ModelPlaceholder: Sendable {
    @inlinable public init() {}
}

extension ModelAnchor {
    /// The anchor of a model that is being made: around the object that ``wrapNext(_:)`` named, else around a new one that is in
    /// no context yet.
    public init(for entity: DetachedEntity) {
        self.init(ObjectToWrap.take(for: entity) ?? ManagedObject(detached: entity))
    }

    /// Names the object for the next anchor made on this thread for its entity.
    ///
    /// Swift runs the initial values of stored properties before the body of an initializer, so that an anchor that is one
    /// cannot be an argument. Called directly before the initializer that makes the anchor.
    public static func wrapNext(_ object: ManagedObject) { ObjectToWrap.put(object) }
}

/// The object named for the next anchor, one a thread.
private enum ObjectToWrap {
    /// Made once, never deleted. nil destructor: between `put` and `take` nothing suspends and no thread ends.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "the process has no thread-specific storage left (code \(code))")
        return key
    }()

    static func put(_ object: ManagedObject) {
        pthread_setspecific(key, Unmanaged.passUnretained(object).toOpaque())
    }

    /// The object is alive: it is an argument of the caller's caller.
    static func take(for entity: DetachedEntity) -> ManagedObject? {
        guard let pointer = pthread_getspecific(key) else { return nil }
        let object = Unmanaged<ManagedObject>.fromOpaque(pointer).takeUnretainedValue()
        // A transient property whose initial value is another model makes that model's anchor first.
        guard object.description.name == entity.name else { return nil }
        pthread_setspecific(key, nil)
        return object
    }
}
