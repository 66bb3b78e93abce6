internal import Platform
import StoreInterface
import StoreModel

/// The objects of models whose initializers have not yet reached the class at the head of their hierarchy, by the addresses of the models.
enum ModelsInCreation {
    /// `@unchecked Sendable` is safe because an entry is used only by the thread that creates the model with its address.
    private struct Entry: @unchecked Sendable {
        var object: Unmanaged<ManagedObject>
    }

    private static let entries = Mutex<[UInt: Entry]>([:])
    private static let count = Atomic(0)

    /// Whether no model of a subclass is being created. One atomic read.
    static var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Adds the object of a model, which keeps it alive.
    static func add(_ object: ManagedObject, at address: UnsafeRawPointer) {
        let (entry, place) = (Entry(object: .passUnretained(object)), UInt(bitPattern: address))
        entries.withLock { $0[place] = entry }
        count.add(1, ordering: .relaxed)
    }

    static func object(at address: UnsafeRawPointer) -> ManagedObject? {
        if isEmpty { return nil }
        let place = UInt(bitPattern: address)
        return entries.withLock { $0[place] }?.object.takeUnretainedValue()
    }

    static func takeObject(at address: UnsafeRawPointer) -> ManagedObject? {
        let place = UInt(bitPattern: address)
        guard let found = entries.withLock({ $0.removeValue(forKey: place) }) else { return nil }
        count.subtract(1, ordering: .relaxed)
        return found.object.takeUnretainedValue()
    }

    /// Removes the object of a model that is released. Returns false if the model was completed.
    static func remove(_ object: ManagedObject) -> Bool {
        if isEmpty { return false }
        let reference = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
        let isFound = entries.withLock { entries in
            let place = entries.first { UInt(bitPattern: $0.value.object.toOpaque()) == reference }?.key
            return place.map { entries.removeValue(forKey: $0) != nil } ?? false
        }
        if isFound { count.subtract(1, ordering: .relaxed) }
        return isFound
    }
}

/// The offsets of anchors in instances of a class, computed once per class.
enum AnchorOffsets {
    private static let known = Mutex<[ObjectIdentifier: [Int]]>([:])

    static func of(_ type: any PersistentModel.Type) -> [Int] {
        known.withLock { known in
            if let found = known[ObjectIdentifier(type)] { return found }
            let found = ModelAnchor.offsets(in: type)
            known[ObjectIdentifier(type)] = found
            return found
        }
    }
}
