import StoreInterface
import StoreModel

/// The objects of one context that have observers, and the group of changes that is being made to them.
final class ObservedObjects {
    /// Whether reads are recorded for observers.
    @exclusivity(unchecked) var isOn: Bool
    /// The registered objects with observers. Each removes itself when it is deallocated.
    @exclusivity(unchecked) private var objects: [ObjectIdentifier: Unmanaged<ManagedObject>] = [:]
    /// The number of groups of changes that have begun and not ended. Inner groups belong to the outermost.
    @exclusivity(unchecked) private var depth = 0
    /// The objects with announced changes of the present group. They are retained, because observers may release them.
    @exclusivity(unchecked) private var changing: [ManagedObject] = []
    @exclusivity(unchecked) private var probe = TrackingProbe()

    init(isOn: Bool) { self.isOn = isOn }

    var isEmpty: Bool { objects.isEmpty }

    /// The registered objects with observers, retained.
    var all: [ManagedObject] { objects.values.map { $0.takeUnretainedValue() } }

    /// Whether the calling code is tracked by an observer, and reads are recorded.
    func isTracking() -> (Bool, TrackingProbe.Worn?) { isOn ? probe.isTracking() : (false, nil) }

    func add(_ object: ManagedObject) { objects[ObjectIdentifier(object)] = .passUnretained(object) }

    func remove(_ object: ManagedObject) { objects[ObjectIdentifier(object)] = nil }

    /// Forgets all objects and their observers, none of which is notified any more.
    ///
    /// - Returns: The observers, for the caller to release where other code may run. One that has captured its object or context would
    ///   otherwise keep it.
    func removeAll() -> [AnyObject] {
        var ended: [AnyObject] = []
        for object in all {
            if let observation = object.observation { ended.append(observation) }
            object.observation = nil
        }
        objects = [:]
        if let worn = probe.wear() { ended.append(worn) }
        return ended
    }

    // MARK: Groups of changes

    /// Begins a group of changes, in which observers are notified once per property.
    func begin() { depth += 1 }

    func end() {
        depth -= 1
        guard depth == 0, !changing.isEmpty else { return }
        let changed = changing
        changing = []
        for object in changed { object.observation?.didSet(of: object) }
    }

    /// Notifies the observers of a property that is about to change. Observers may use the context. Call this between ``begin()`` and
    /// ``end()``, while the context is consistent.
    func willChange(_ object: ManagedObject?, _ property: ObservedProperty) {
        // An earlier observer of this group may have reset the context, or rolled an insertion back.
        guard let object, object.state != .invalid, let observation = object.observation else { return }
        if observation.willSet(property, of: object) { changing.append(object) }
    }

    /// Notifies the observers of all properties of an object.
    func willChangeAll(of object: ManagedObject) {
        for property in object.observation?.properties ?? [] { willChange(object, property) }
    }
}
