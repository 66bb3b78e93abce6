import StoreInterface
import StoreModel

/// The model and store for which a request is converted: the model defines its names, and the store its ids.
struct RequestScope: Sendable {
    let model: Model
    let store: StoreIdentity
    /// The context's objects that have had provisional ids, by the keys of these.
    var provisional: [ObjectKey: ObjectAddress] = [:]

    /// Returns the keys of the ids that belong to an entity of this store. Other ids are left out (S003).
    func keys(_ ids: [ObjectID], of entity: EntityIndex) -> Set<ObjectKey> {
        Set(
            ids.lazy.compactMap { id in
                if id.store == store { return id.entity == entity ? id.key : nil }
                // Ids of dropped objects have another entity than 0, and keys of the store.
                guard id.store == .provisional, id.entity == 0, let found = provisional[id.key], found.entity == entity else {
                    return nil
                }
                return found.key
            })
    }
}

extension ManagedObjectContext {
    /// The scope of the context's requests. Objects that wait for their insertion (S175) are inserted first, so that requests know them.
    var requestScope: RequestScope {
        checkIsolation()
        return RequestScope(model: storedModel, store: storeIdentity, provisional: tracker.provisional)
    }
}

extension PersistentStoreCoordinator {
    var requestScope: RequestScope { RequestScope(model: model, store: store.identity) }
}
