import StoreInterface

/// The result of a request whose objects are made a batch at a time, when they are asked for (S025).
///
/// It holds the keys, eight bytes an object, and the batch that was used last; others go when nobody holds them. In child contexts
/// and for unsaved objects too. It belongs to its context, as objects do. The keys are those of the time of the fetch: an
/// object that is deleted later reads as one.
public struct FetchedBatches<Element>: RandomAccessCollection {
    private final class Batch {
        var number = -1
        var objects: [ManagedObject] = []
    }

    let context: ManagedObjectContext
    let entity: Int
    let keys: [ObjectKey]
    let batchSize: Int
    let prefetching: PrefetchPlan?
    let wrap: (ManagedObject) -> Element
    private let last = Batch()

    init(
        _ context: ManagedObjectContext, _ query: StoreQuery, _ options: FetchOptions, wrap: @escaping (ManagedObject) -> Element
    ) throws {
        self.context = context
        entity = query.entity
        prefetching = PrefetchPlan(options)
        if let prefetching { try context.check(prefetching, entity) }
        keys = try context.answer(options.includesPendingChanges) { try $0.keys(query) }
        batchSize = options.fetchBatchSize > 0 ? options.fetchBatchSize : 64
        self.wrap = wrap
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { keys.count }

    /// Makes the objects of the batch and reads the relationships to prefetch, unless it is the last one used. A damaged page stops
    /// the program, as it does when a property is read.
    public subscript(position: Int) -> Element {
        precondition(keys.indices.contains(position), "no object at \(position) of \(keys.count)")
        let number = position / batchSize
        if last.number != number {
            let range = number * batchSize..<Swift.min(keys.count, (number + 1) * batchSize)
            do {
                if let prefetching { try context.prefetch(prefetching, of: Array(keys[range]), entity) }
            } catch {
                preconditionFailure("prefetching failed: \(error)")
            }
            last.objects = keys[range].map { context.object(entity, $0) }
            last.number = number
        }
        return wrap(last.objects[position % batchSize])
    }
}

extension ManagedObjectContext {
    /// What a request selects, made `fetchBatchSize` objects at a time (64 when the request does not say). Costs the keys.
    public func fetchInBatches<M: PersistentModel>(_ request: FetchRequest<M>) throws -> FetchedBatches<M> {
        checkIsolation()
        return try FetchedBatches(self, request.storeQuery(in: requestScope), request.options) { self.wrapped($0, as: M.self) }
    }

    /// The same by names.
    public func fetchInBatches(_ request: EntityFetchRequest) throws -> FetchedBatches<ManagedObject> {
        checkIsolation()
        return try FetchedBatches(self, request.storeQuery(in: requestScope), request.options) { $0 }
    }
}
