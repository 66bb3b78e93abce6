import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Identifiers of new objects. A typed model has an id at any time.
extension ManagedObject {
    /// The object's id, or a provisional id while the object is detached.
    ///
    /// A provisional id stays the same until the object is inserted, which gives the object its final id. Until the save of the insertion,
    /// ``ManagedObjectContext/model(for:)`` and ``ManagedObjectContext/registeredModel(for:)`` find the object by both ids.
    /// An object that its context has removed, as a rollback removes new objects, has a provisional id again. A saved object keeps its
    /// final id after its context was released.
    package var identifier: ObjectID {
        arrive()
        if state == .detached, let detachedState {
            return ObjectID(store: .provisional, entity: 0, key: detachedState.takeProvisionalKey())
        }
        if context == nil, releasedContext == nil { return ObjectID(store: .provisional, entity: entity.next, key: key) }
        return objectID
    }

    /// A Boolean value that indicates whether the object's record is gone: its deletion was saved, by this context or another one.
    package var isGone: Bool { state == .registered && isDeleted && row == nil }
}

/// The part of a released context that its saved objects keep for their ids. All of them share one.
final class ReleasedContext {
    let storeIdentity: StoreIdentity

    init(storeIdentity: StoreIdentity) { self.storeIdentity = storeIdentity }
}

extension StoreIdentity {
    /// The store of provisional ids. It differs from process to process, so that no process mistakes the ids of another one for its own.
    package static let provisional = StoreIdentity(.random())
}

extension ManagedObjectContext {
    /// Remembers the provisional id of an object that is being inserted, if it has one.
    @inline(__always)
    func noteProvisionalID(of object: ManagedObject, _ relations: DetachedState) {
        guard relations.provisionalKey != 0 else { return }
        tracker.provisional[relations.provisionalKey] = ObjectAddress(entity: object.entity, key: object.key)
    }

    /// Returns the final id of an inserted object with a provisional id. Returns other ids unchanged.
    func finalID(_ id: ObjectID) -> ObjectID {
        // Ids of dropped objects have another entity than 0, and keys of the store.
        guard id.store == .provisional, id.entity == 0, let address = tracker.provisional[id.key] else { return id }
        return ObjectID(store: storeIdentity, entity: address.entity, key: address.key)
    }
}
