internal import Platform
import StoreInterface
import StoreModel

/// The storage of a model's property. It is empty, because the values are in the model's ``ManagedObject``.
///
/// It uses no memory. Its presence makes Swift require a value for the property in each initializer.
public struct ModelPlaceholder: Sendable {
    /// Creates a placeholder, which has no content.
    @inlinable public init() {}
}

extension ModelAnchor {
    /// Creates the anchor of a model that is being created. It wraps the object passed to ``wrapNext(_:)``, or else a new detached
    /// object.
    public init(for entity: DetachedEntity) {
        if let object = ObjectToWrap.take(for: entity) {
            self.init(object)
        } else {
            self.init(ManagedObject(detached: entity))
            object.isBeingInitialized = true
        }
    }

    /// Sets the object for the next anchor created on this thread for its entity.
    ///
    /// Swift runs the initial values of stored properties before the body of an initializer. An anchor that is such a property
    /// cannot receive the object as an argument. Call this directly before the initializer that creates the anchor.
    public static func wrapNext(_ object: ManagedObject) { ObjectToWrap.put(object) }
}

/// The object for the next anchor, one per thread.
enum ObjectToWrap {
    /// The thread-specific value. It needs no destructor, because nothing suspends and no thread ends between `put` and `take`.
    private static let pointer = ThreadPointer()
    /// The objects that wait while an initial value of their model reads another model, as a retained ``Waiting``; nil if there are none.
    private static let outer = ThreadPointer()

    private final class Waiting {
        let object: UnsafeMutableRawPointer
        let next: UnsafeMutableRawPointer?

        init(_ object: UnsafeMutableRawPointer, _ next: UnsafeMutableRawPointer?) { (self.object, self.next) = (object, next) }
    }

    static func put(_ object: ManagedObject) {
        if let current = pointer.current { outer.current = Unmanaged.passRetained(Waiting(current, outer.current)).toOpaque() }
        pointer.current = Unmanaged.passUnretained(object).toOpaque()
    }

    private static func pop() {
        guard let first = outer.current else { return pointer.current = nil }
        // Balances the retain of `put`.
        let waiting = Unmanaged<Waiting>.fromOpaque(first).takeRetainedValue()
        (pointer.current, outer.current) = (waiting.object, waiting.next)
    }

    /// Returns the object for the next anchor. The object is alive, because a caller has it as an argument.
    static func take(for entity: DetachedEntity) -> ManagedObject? {
        guard let named = pointer.current else { return nil }
        let object = Unmanaged<ManagedObject>.fromOpaque(named).takeUnretainedValue()
        // A transient property whose initial value is another model creates that model's anchor first.
        let name = object.detachedState?.entity.name ?? object.definition.name
        guard name == entity.name else { return nil }
        pop()
        return object
    }
}
