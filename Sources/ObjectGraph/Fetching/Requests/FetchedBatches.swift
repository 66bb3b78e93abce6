import StoreInterface
import StoreModel

/// The result of a request, whose objects are created one batch at a time, on access (S025).
///
/// It stores the keys, eight bytes per object, and the batch used last. Objects of other batches are released if the program does
/// not retain them. Batches also work in child contexts and for unsaved objects. Use the result on its context's executor, like
/// objects. The keys are those at the time of the fetch: an object deleted later reads as deleted.
///
/// ```swift
/// let tracks = try context.fetchInBatches(FetchRequest<Track>(sortBy: [.init(\.title)]))
/// let middle = tracks[tracks.count / 2]  // creates the objects of one batch
/// ```
public struct FetchedBatches<Element>: RandomAccessCollection {
    private final class Batch {
        var number = -1
        var objects: [ManagedObject] = []
    }

    let context: ManagedObjectContext
    let entity: EntityIndex
    let keys: [ObjectKey]
    let batchSize: Int
    let prefetching: PrefetchPlan?
    let wrap: (ManagedObject) -> Element
    private let last = Batch()

    init(
        _ context: ManagedObjectContext, query: StoreQuery, options: FetchOptions, wrap: @escaping (ManagedObject) -> Element
    ) throws {
        self.context = context
        entity = query.entity
        prefetching = PrefetchPlan(options)
        if let prefetching { try context.check(prefetching, entity) }
        keys = try context.answer(query, includesPendingChanges: options.includesPendingChanges) { try $0.keys(query) }
        batchSize = options.fetchBatchSize > 0 ? options.fetchBatchSize : 64
        self.wrap = wrap
    }

    /// The position of the first object, always 0.
    public var startIndex: Int { 0 }
    /// The position after the last object, which is the number of objects.
    public var endIndex: Int { keys.count }

    /// Returns the object at a position. If its batch is not the last one used, its objects are created and relationships prefetched.
    ///
    /// A damaged page stops the program, as it does when a property is read.
    public subscript(position: Int) -> Element {
        precondition(keys.indices.contains(position), "no object at \(position) of \(keys.count)")
        // Prefetching must not read the state of a context that is behind or suspended.
        context.checkIsolation()
        let number = position / batchSize
        // A reset, and the rollback of an insertion, make a context forget objects.
        if last.number != number || last.objects[position % batchSize].context !== context {
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
    /// Fetches the objects of a request in batches of `fetchBatchSize` (default 64). Reads only the keys.
    public func fetchInBatches<M: PersistentModel>(_ request: FetchRequest<M>) throws -> FetchedBatches<M> {
        checkIsolation()
        return try FetchedBatches(self, query: request.storeQuery(in: requestScope), options: request.options) {
            self.wrapped($0, as: M.self)
        }
    }

    /// Fetches the objects of a request by names in batches of `fetchBatchSize` (default 64). Reads only the keys.
    public func fetchInBatches(_ request: EntityFetchRequest) throws -> FetchedBatches<ManagedObject> {
        checkIsolation()
        return try FetchedBatches(self, query: request.storeQuery(in: requestScope), options: request.options) { $0 }
    }
}

extension FetchedBatches: CustomStringConvertible {
    /// The number of objects. Printing reads no batch.
    public var description: String { "\(count) fetched object\(count == 1 ? "" : "s")" }
}
