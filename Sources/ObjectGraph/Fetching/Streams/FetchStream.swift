import StoreInterface
import StoreModel

/// The objects of a request as an asynchronous sequence: `for try await track in context.stream(request)` (S136).
///
/// Iterate on the context's executor. Objects are created one batch at a time and released if the program does not retain them. The
/// task may be suspended between batches. A cancelled task throws there. The sequence returns the state that the context had when
/// the iteration began, without objects deleted since then. Later saves do not change it. The iteration keeps that snapshot alive.
///
/// ```swift
/// for try await track in context.stream(FetchRequest<Track>()) { plays += track.playCount }
/// ```
public struct FetchStream<Element>: AsyncSequence {
    let context: ManagedObjectContext
    let makeSource: () throws -> BatchSource
    let prefetching: PrefetchPlan?
    let wrap: (ManagedObject) -> Element

    /// Returns an iterator, which reads nothing until its first object is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// An iterator that creates one batch of objects at a time.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: FetchStream<Element>
        private var source: BatchSource?
        private var batch: ArraySlice<(key: ObjectKey, object: ManagedObject)> = []

        fileprivate init(stream: FetchStream<Element>) { self.stream = stream }

        /// Returns the next object, or nil at the end. Call it on the context's executor, as `for try await` does.
        /// - Throws: `CancellationError` between batches; ``FetchError``, `StoreError`.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Element? {
            while true {
                while let source, let (key, object) = batch.popFirst() {
                    if let present = try stream.context.present(object, entity: source.query.entity, key: key) {
                        return stream.wrap(present)
                    }
                }
                if source != nil {
                    try Task.checkCancellation()
                    await Task.yield()
                }
                let source = try self.source ?? stream.makeSource()
                self.source = source
                guard let objects = try stream.context.nextObjects(of: source, stream.prefetching) else { return nil }
                batch = objects.map { (key: $0.key, object: $0) }[...]
            }
        }

        /// Returns the next object without the caller's isolation. Call ``next(isolation:)`` instead, because a context may be
        /// used only on its executor.
        public mutating func next() async throws -> Element? { try await next(isolation: nil) }
    }
}

extension ManagedObjectContext {
    /// Returns a stream of the objects of a request, in batches of `fetchBatchSize`. Iterating reads the objects and throws as `fetch`
    /// does.
    public func stream<M: PersistentModel>(_ request: FetchRequest<M>) -> FetchStream<M> {
        FetchStream(
            context: self, makeSource: { try self.source(request.storeQuery(in: self.requestScope), request.options) },
            prefetching: PrefetchPlan(request.options), wrap: { self.wrapped($0, as: M.self) })
    }

    /// Returns a stream of the objects of a request by names, in batches.
    public func stream(_ request: EntityFetchRequest) -> FetchStream<ManagedObject> {
        FetchStream(
            context: self, makeSource: { try self.source(request.storeQuery(in: self.requestScope), request.options) },
            prefetching: PrefetchPlan(request.options), wrap: { $0 })
    }

    /// Calls `body` with each batch of a request's objects, for code that does not suspend, as in `perform`.
    ///
    /// After `body` returns, the objects are released if they have no changes and the program does not retain them.
    public func forEachBatch<M: PersistentModel>(of request: FetchRequest<M>, _ body: ([M]) throws -> Void) throws {
        let source = try source(request.storeQuery(in: requestScope), request.options)
        while let objects = try nextObjects(of: source, PrefetchPlan(request.options)) {
            try body(objects.map { wrapped($0, as: M.self) })
        }
    }

    /// Calls `body` with each batch of the objects of a request by names.
    public func forEachBatch(of request: EntityFetchRequest, _ body: ([ManagedObject]) throws -> Void) throws {
        let source = try source(request.storeQuery(in: requestScope), request.options)
        while let objects = try nextObjects(of: source, PrefetchPlan(request.options)) { try body(objects) }
    }

    func source(_ query: StoreQuery, _ options: FetchOptions) throws -> BatchSource {
        checkIsolation()
        if let prefetching = PrefetchPlan(options) { try check(prefetching, query.entity) }
        let batchSize = options.fetchBatchSize > 0 ? options.fetchBatchSize : 256
        let source = try reading(includesPendingChanges: options.includesPendingChanges) { shown in
            // Later changes go to another top layer, so the layers below it stay unchanged. Not earlier: to prepare the request, a merge may
            // have made sealed layers writable again.
            let view = options.includesPendingChanges ? sealedView() : shown
            // Without a sort, nothing is read yet: each batch reads its own pages.
            if query.sort.isEmpty { return try BatchSource(query, in: view, batchSize: batchSize) }
            return try reporting(query, of: storedModel.entities[query.entity].name, in: view) {
                try BatchSource(query, in: $0, batchSize: batchSize)
            }
        }
        if observers.openSources.count >= 16 { observers.openSources.removeAll { $0.source == nil } }
        observers.openSources.append(WeakSource(source: source))
        return source
    }

    /// Returns the objects of the next batch, which is never empty; nil at the end.
    func nextObjects(of source: BatchSource, _ prefetching: PrefetchPlan?) throws -> [ManagedObject]? {
        checkIsolation()
        try checkOpen()
        while let keys = try nextKeys(of: source) {
            let entity = source.query.entity
            let present = try keys.filter { try exists(entity, $0) }
            if let prefetching { try prefetch(prefetching, of: present, entity) }
            if !present.isEmpty { return present.map { object(entity, $0) } }
        }
        return nil
    }

    /// Returns the keys of the next batch; nil at the end. Each read of pages is reported and logged as a fetch.
    private func nextKeys(of source: BatchSource) throws -> [ObjectKey]? {
        if source.needsPages {
            let query = source.query
            try reporting(query, of: storedModel.entities[query.entity].name, in: source.view) { _ in try source.readPages() }
        }
        return try source.next()
    }

    /// Returns an object of a batch, again if the context has forgotten it since; nil if it is deleted now.
    func present(_ object: ManagedObject, entity: EntityIndex, key: ObjectKey) throws -> ManagedObject? {
        checkIsolation()
        guard try exists(entity, key) else { return nil }
        return object.context === self ? object : self.object(entity, key)
    }
}

/// The options that both kinds of requests have.
struct FetchOptions {
    var fetchBatchSize: Int
    var relationshipKeyPathsForPrefetching: [String]
    var includesPendingChanges: Bool
}

extension FetchRequest {
    var options: FetchOptions {
        FetchOptions(
            fetchBatchSize: fetchBatchSize, relationshipKeyPathsForPrefetching: relationshipKeyPathsForPrefetching,
            includesPendingChanges: includesPendingChanges)
    }
}

extension EntityFetchRequest {
    var options: FetchOptions {
        FetchOptions(
            fetchBatchSize: fetchBatchSize, relationshipKeyPathsForPrefetching: relationshipKeyPathsForPrefetching,
            includesPendingChanges: includesPendingChanges)
    }
}
