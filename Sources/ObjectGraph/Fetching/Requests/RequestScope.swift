import StoreInterface

/// What a request is lowered for: the model that its names are of, and the store that its ids must be of.
struct RequestScope: Sendable {
    let model: Model
    let store: StoreIdentity

    /// The keys of those ids that name objects of an entity here. Ids of other stores and other entities name none (S003).
    func keys(_ ids: [ObjectID], of entity: Int) -> Set<ObjectKey> {
        Set(ids.lazy.filter { $0.store == store && $0.entity == entity }.map(\.key))
    }
}

extension ManagedObjectContext {
    var requestScope: RequestScope { RequestScope(model: model, store: storeIdentity) }
}

extension PersistentStoreCoordinator {
    var requestScope: RequestScope { RequestScope(model: model, store: store.identity) }
}
