import StoreInterface
import StoreModel

/// The model and store for which a request is converted: the model defines its names, and the store its ids.
struct RequestScope: Sendable {
    let model: Model
    let store: StoreIdentity

    /// Returns the keys of the ids that belong to an entity of this store. Other ids are left out (S003).
    func keys(_ ids: [ObjectID], of entity: EntityIndex) -> Set<ObjectKey> {
        Set(ids.lazy.filter { $0.store == store && $0.entity == entity }.map(\.key))
    }
}

extension ManagedObjectContext {
    var requestScope: RequestScope { RequestScope(model: storedModel, store: storeIdentity) }
}

extension PersistentStoreCoordinator {
    var requestScope: RequestScope { RequestScope(model: model, store: store.identity) }
}
