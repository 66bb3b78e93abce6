import StoreInterface
import StoreModel

/// Fetching is synchronous, on the context's executor. It reads the context's own snapshot and never waits for a writer.
///
/// Methods throw ``FetchError`` before any row is read, and `StoreError` if the store cannot be read. Fetched objects are
/// registered in the context. They are faults until a property is read.
extension ManagedObjectContext {
    /// Returns the objects that a request selects, in its order, including pending changes (S130).
    public func fetch<M: PersistentModel>(_ request: FetchRequest<M>) throws -> [M] {
        let query = try request.storeQuery(in: requestScope)
        let keys = try keys(query, request.options)
        return keys.map { wrapped(object(query.entity, $0), as: M.self) }
    }

    /// Returns the objects that a request by names selects.
    public func fetch(_ request: EntityFetchRequest) throws -> [ManagedObject] {
        let query = try request.storeQuery(in: requestScope)
        return try keys(query, request.options).map { object(query.entity, $0) }
    }

    private func keys(_ query: StoreQuery, _ options: FetchOptions) throws -> [ObjectKey] {
        let prefetching = PrefetchPlan(options)
        if let prefetching { try check(prefetching, query.entity) }
        let keys = try answer(query, includesPendingChanges: options.includesPendingChanges) { try $0.keys(query) }
        if let prefetching { try prefetch(prefetching, of: keys, query.entity) }
        return keys
    }

    /// Returns the ids of the objects that a request selects, without creating objects.
    public func fetchIDs<M: PersistentModel>(_ request: FetchRequest<M>) throws -> [ObjectID] {
        try fetchIDs(request.storeQuery(in: requestScope), request.includesPendingChanges)
    }

    /// Returns the ids of the objects that a request by names selects, without creating objects.
    public func fetchIDs(_ request: EntityFetchRequest) throws -> [ObjectID] {
        try fetchIDs(request.storeQuery(in: requestScope), request.includesPendingChanges)
    }

    /// Returns the number of objects that `fetch` would return (S131).
    public func count<M: PersistentModel>(_ request: FetchRequest<M>) throws -> Int {
        let query = try request.storeQuery(in: requestScope)
        return try answer(query, includesPendingChanges: request.includesPendingChanges) { try $0.count(query) }
    }

    /// Returns the number of objects that `fetch` would return (S131).
    public func count(_ request: EntityFetchRequest) throws -> Int {
        let query = try request.storeQuery(in: requestScope)
        return try answer(query, includesPendingChanges: request.includesPendingChanges) { try $0.count(query) }
    }

    /// Returns a description of what `fetch` would do: the indexes or scans that it uses, and the unsaved objects that it adds (S135).
    public func explain<M: PersistentModel>(_ request: FetchRequest<M>) throws -> String {
        let query = try request.storeQuery(in: requestScope)
        return try view(request.includesPendingChanges).explain(query)
    }

    /// Returns a description of what `fetch` would do: the indexes or scans that it uses, and the unsaved objects that it adds (S135).
    public func explain(_ request: EntityFetchRequest) throws -> String {
        let query = try request.storeQuery(in: requestScope)
        return try view(request.includesPendingChanges).explain(query)
    }

    private func fetchIDs(_ query: StoreQuery, _ includesPendingChanges: Bool) throws -> [ObjectID] {
        let keys = try answer(query, includesPendingChanges: includesPendingChanges) { try $0.keys(query) }
        return keys.map { ObjectID(store: storeIdentity, entity: query.entity, key: $0) }
    }

    /// Runs a query on the context's view, and reports and logs it if the program wants that.
    func answer<R>(_ query: StoreQuery, includesPendingChanges: Bool, _ ask: (LayeredView) throws -> R) throws -> R {
        try reading(includesPendingChanges: includesPendingChanges) { view in
            try reporting(query, of: storedModel.entities[query.entity].name, in: view, ask)
        }
    }

    /// Runs `body` on the context's view, without a report.
    @inline(__always)
    func reading<R>(includesPendingChanges: Bool, _ body: (LayeredView) throws -> R) throws -> R {
        let view = view(includesPendingChanges)
        return try using { try occupied { try body(view) } }
    }

    /// Runs a query on a view, and reports and logs it under a name if the program wants that. Else it costs one relaxed atomic read.
    @inline(__always) @discardableResult
    func reporting<R>(
        _ query: @autoclosure () -> StoreQuery, of name: @autoclosure () -> String, in view: LayeredView,
        _ ask: (LayeredView) throws -> R
    ) throws -> R {
        guard configuration.coordinator.watchesFetches.load(ordering: .relaxed) else { return try ask(view) }
        return try watching(query(), of: name(), in: view, ask)
    }

    private func watching<R>(
        _ query: StoreQuery, of fetched: String, in view: LayeredView, _ ask: (LayeredView) throws -> R
    ) throws -> R {
        let coordinator = configuration.coordinator
        func run() throws -> R {
            guard let log = coordinator.slowFetches.withLock({ $0 }) else { return try ask(view) }
            return try log.timing(query, from: FetchSource(self, fetched), view: view) { try ask(view) }
        }
        guard let instruments = coordinator.instruments else { return try run() }
        return try instruments.fetch(fetched, in: name, of: coordinator.writer, run)
    }

    /// Returns the context's view. Without pending changes, it leaves out the context's own layers.
    private func view(_ includesPendingChanges: Bool) -> LayeredView {
        checkIsolation()
        prepareRequest()
        let view = layerStack.view
        if includesPendingChanges { return view }
        return LayeredView(base: view.base, layers: Array(view.layers.dropFirst(layerStack.sealed.count + 1)))
    }
}
