import StoreInterface

/// Fetching. Synchronous, on the context's executor; reads the context's own snapshot and never waits for a writer.
///
/// Throws ``FetchError`` before any row is read, `StoreError` when the store cannot be read. Results hold until the caller
/// drops them; objects among them are registered, and faults until a property is read.
extension ManagedObjectContext {
    /// The objects that a request selects, in its order, pending changes included (S130).
    public func fetch<M: PersistentModel>(_ request: FetchRequest<M>) throws -> [M] {
        let query = try request.storeQuery(in: requestScope)
        let keys = try keys(query, request.options)
        return keys.map { wrapped(object(query.entity, $0), as: M.self) }
    }

    /// The objects that a request by names selects.
    public func fetch(_ request: EntityFetchRequest) throws -> [ManagedObject] {
        let query = try request.storeQuery(in: requestScope)
        return try keys(query, request.options).map { object(query.entity, $0) }
    }

    private func keys(_ query: StoreQuery, _ options: FetchOptions) throws -> [ObjectKey] {
        let prefetching = PrefetchPlan(options)
        if let prefetching { try check(prefetching, query.entity) }
        let keys = try answer(options.includesPendingChanges) { try $0.keys(query) }
        if let prefetching { try prefetch(prefetching, of: keys, query.entity) }
        return keys
    }

    /// The ids of what a request selects: no object is made.
    public func fetchIDs<M: PersistentModel>(_ request: FetchRequest<M>) throws -> [ObjectID] {
        try fetchIDs(request.storeQuery(in: requestScope), request.includesPendingChanges)
    }

    /// The ids of what a request by names selects: no object is made.
    public func fetchIDs(_ request: EntityFetchRequest) throws -> [ObjectID] {
        try fetchIDs(request.storeQuery(in: requestScope), request.includesPendingChanges)
    }

    /// How many objects `fetch` would return (S131).
    public func count<M: PersistentModel>(_ request: FetchRequest<M>) throws -> Int {
        let query = try request.storeQuery(in: requestScope)
        return try answer(request.includesPendingChanges) { try $0.count(query) }
    }

    /// How many objects `fetch` would return (S131).
    public func count(_ request: EntityFetchRequest) throws -> Int {
        let query = try request.storeQuery(in: requestScope)
        return try answer(request.includesPendingChanges) { try $0.count(query) }
    }

    /// What `fetch` would do, in words: which indexes are read and how, or a scan, and what unsaved objects add (S135).
    public func explain<M: PersistentModel>(_ request: FetchRequest<M>) throws -> String {
        let query = try request.storeQuery(in: requestScope)
        return try answer(request.includesPendingChanges) { try $0.explain(query) }
    }

    /// What `fetch` would do, in words: which indexes are read and how, or a scan, and what unsaved objects add (S135).
    public func explain(_ request: EntityFetchRequest) throws -> String {
        let query = try request.storeQuery(in: requestScope)
        return try answer(request.includesPendingChanges) { try $0.explain(query) }
    }

    private func fetchIDs(_ query: StoreQuery, _ includesPendingChanges: Bool) throws -> [ObjectID] {
        let keys = try answer(includesPendingChanges) { try $0.keys(query) }
        return keys.map { ObjectID(store: storeIdentity, entity: query.entity, key: $0) }
    }

    /// Without pending changes, what lies below the context's own layers answers.
    func answer<R>(_ includesPendingChanges: Bool, _ ask: (LayeredView) throws -> R) throws -> R {
        checkIsolation()
        if includesPendingChanges { return try ask(view) }
        return try ask(LayeredView(base: view.base, layers: Array(view.layers.dropFirst(sealed.count + 1))))
    }
}
