import StoreInterface
import StoreModel

/// An asynchronous sequence of values that a background context computes from the objects of a request (S136).
///
/// The context reads and transforms one batch of objects at a time on its executor. The iterator buffers one batch of results.
///
/// ```swift
/// let titles = importer.stream(FetchRequest<Track>()) { $0.title }
/// for try await title in titles { print(title) }
/// ```
public struct BackgroundStream<Element: Sendable>: AsyncSequence, Sendable {
    let context: BackgroundContext
    let start: @Sendable (ManagedObjectContext) throws -> BatchSource
    let transform: @Sendable (ManagedObjectContext, BatchSource) throws -> [Element]?

    /// Returns an iterator that takes its own snapshot when the first value is read.
    public func makeAsyncIterator() -> Iterator { Iterator(stream: self) }

    /// `@unchecked Sendable` is safe because the state is used only on the context's executor, inside `perform`.
    private final class State: @unchecked Sendable {
        var source: BatchSource?
    }

    /// An iterator that asks the context for one batch of values at a time.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let stream: BackgroundStream<Element>
        private let state = State()
        private var batch: ArraySlice<Element> = []

        fileprivate init(stream: BackgroundStream<Element>) { self.stream = stream }

        /// Returns the next value, or nil at the end. Suspends while the context computes a batch.
        /// - Throws: `CancellationError` between batches; ``FetchError``, `StoreError`, and the errors of the transformation.
        public mutating func next() async throws -> Element? {
            while batch.isEmpty {
                try Task.checkCancellation()
                let (state, stream) = (state, stream)
                let next = try await stream.context.perform { context throws in
                    let source = try state.source ?? stream.start(context)
                    state.source = source
                    return try stream.transform(context, source)
                }
                guard let next else { return nil }
                batch = next[...]
            }
            return batch.removeFirst()
        }
    }
}

extension BackgroundContext {
    /// Returns a sequence that transforms each object of a request on this context's executor, in batches of `fetchBatchSize`.
    ///
    /// The iteration keeps the snapshot that it began with until it ends.
    public nonisolated func stream<M: PersistentModel, R: Sendable>(
        _ request: FetchRequest<M>, _ transform: @escaping @Sendable (M) throws -> R
    ) -> BackgroundStream<R> {
        BackgroundStream(context: self) { context in
            try context.source(request.storeQuery(in: context.requestScope), request.options)
        } transform: { context, source in
            try context.nextObjects(of: source, PrefetchPlan(request.options))?.map {
                try transform(context.wrapped($0, as: M.self))
            }
        }
    }

    /// Returns a sequence that transforms each object of a request by entity and property names.
    public nonisolated func stream<R: Sendable>(
        _ request: EntityFetchRequest, _ transform: @escaping @Sendable (ManagedObject) throws -> R
    ) -> BackgroundStream<R> {
        BackgroundStream(context: self) { context in
            try context.source(request.storeQuery(in: context.requestScope), request.options)
        } transform: { context, source in
            try context.nextObjects(of: source, PrefetchPlan(request.options))?.map(transform)
        }
    }
}
