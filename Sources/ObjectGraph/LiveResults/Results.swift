import Observation
import StoreInterface
import StoreModel

/// The objects of a request, as a collection that follows its context.
///
/// Use it on the context's executor, like the context's objects. Reading it never shows a state from before a save that was awaited
/// (S068), if the context has merged the save. Unsaved changes of the context appear when the running job of its executor ends, or after
/// ``ManagedObjectContext/processPendingChanges()``. So a loop over positions may change and delete objects.
///
/// A difference is computed off the executor, at most once per frame. A read that comes before computes it at once, in time that grows with
/// the difference. Reading a position is O(log count). Releasing the collection ends its updates. With a limit or an offset, it still has
/// the keys of all objects that the predicate selects, because others take the places of those that leave.
///
/// ```swift
/// let favorites = try Results(
///     FetchRequest<Track>(where: #Predicate { $0.playCount > 100 }, sortBy: [.init(\.title)]), context: context)
/// for track in favorites { print(track.title) }
/// withObservationTracking {
///     show(favorites.count)
/// } onChange: {
///     scheduleRedraw()
/// }
/// for await update in favorites.updates { apply(update.difference) }
/// ```
///
/// **Errors.** If the store cannot be read, or the container was closed, the collection keeps its objects, and ``error`` contains the
/// reason until a later read succeeds.
public final class Results<Element>: Observable {
    private let controller: FetchedResultsController<Element>
    private let registrar = ObservationRegistrar()
    private var rows: ResultSnapshot
    /// The number of the last update that ``rows`` contains. Observers that are notified of an update still see the rows before it.
    private var lastUpdate: Int
    private var failure: (any Error)?
    // Key paths of a generic type are created at each use, so keep them.
    private let rowsPath: KeyPath<Results, ResultSnapshot>
    private let failurePath: KeyPath<Results, (any Error)?>

    private init(_ controller: FetchedResultsController<Element>) throws {
        try controller.performFetch()
        self.controller = controller
        rows = controller.snapshot
        lastUpdate = controller.lastUpdate
        rowsPath = \Results.rows
        failurePath = \Results.failure
        controller.context.processChangesAutomatically()
        controller.onChange = { [weak self] _ in self?.show() }
        controller.onFailure = { [weak self] in self?.fail($0) }
        controller.onRecovery = { [weak self] in self?.fail(nil) }
    }

    private func show() {
        fail(nil)
        // An observer that reads the collection while it is notified may have received a later update.
        registrar.withMutation(of: self, keyPath: rowsPath) {
            (rows, lastUpdate) = (controller.snapshot, controller.lastUpdate)
        }
    }

    private func fail(_ error: (any Error)?) {
        guard failure != nil || error != nil else { return }
        registrar.withMutation(of: self, keyPath: failurePath) { failure = error }
    }

    /// The context of the objects.
    public var context: ManagedObjectContext { controller.context }

    /// The ids of the objects at this moment, as a `Sendable` value. O(1).
    public var snapshot: ResultSnapshot {
        controller.settle()
        registrar.access(self, keyPath: rowsPath)
        return rows
    }

    /// The sections of the objects, in order; empty if the collection was made without sections.
    public var sections: [ResultSection] { snapshot.sections }

    /// The error of the last update; nil if it succeeded. The objects are those of the last update that succeeded.
    public var error: (any Error)? {
        controller.settle()
        registrar.access(self, keyPath: failurePath)
        return failure
    }

    /// The updates from now on, in order and without gaps, each with its difference from the state before. The sequence ends when the
    /// collection is released, the container is closed, or the iteration ends.
    public var updates: AsyncStream<ResultUpdate> {
        // A read shows what is pending, so it is no later update.
        controller.settle()
        return controller.updates(after: lastUpdate)
    }
}

extension Results where Element: PersistentModel {
    /// Fetches the objects of a request and follows the context from then on. O(result).
    ///
    /// Without a sort, the objects are in the order of their keys, which is that of their insertion in one context.
    ///
    /// - Throws: ``FetchError``, or `StoreError` if the store cannot be read.
    public convenience init(_ request: FetchRequest<Element>, context: ManagedObjectContext) throws {
        try self.init(FetchedResultsController(anyOrder: request, context: context))
    }
}

extension Results where Element: PersistentModel {
    /// Fetches the objects of a request in sections, and follows the context from then on (S141). O(result).
    ///
    /// The objects are sorted by the section first, then by the request.
    ///
    /// ```swift
    /// let songs = try Results(
    ///     FetchRequest<Track>(sortBy: [.init(\.title)]), sectionedBy: .init(\.album, by: \.title), context: context)
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request. It needs no sort.
    ///   - section: The property that gives an object its section, also of a related object, and the direction of the sections.
    ///   - context: The context to follow.
    /// - Throws: ``FetchError``, or `StoreError` if the store cannot be read.
    public convenience init(
        _ request: FetchRequest<Element>, sectionedBy section: SortBy<Element>, context: ManagedObjectContext
    ) throws {
        try self.init(FetchedResultsController(request, sectionedBy: section, context: context))
    }
}

extension Results where Element == ManagedObject {
    /// Fetches the objects of a request by names in sections, and follows the context from then on (S141). O(result).
    ///
    /// - Parameters:
    ///   - request: The request. It needs no sort.
    ///   - section: The attribute that gives an object its section, or a path of names to an attribute of a related object.
    ///   - context: The context to follow.
    /// - Throws: ``FetchError``, or `StoreError` if the store cannot be read.
    public convenience init(
        _ request: EntityFetchRequest, sectionedBy section: AttributeSort, context: ManagedObjectContext
    ) throws {
        try self.init(FetchedResultsController(request, sectionedBy: section, context: context))
    }

    /// Fetches the objects of a request by names and follows the context from then on. O(result).
    ///
    /// - Throws: ``FetchError``, or `StoreError` if the store cannot be read.
    public convenience init(_ request: EntityFetchRequest, context: ManagedObjectContext) throws {
        try self.init(FetchedResultsController(anyOrder: request, context: context))
    }
}

extension Results: RandomAccessCollection {
    /// The objects of one moment, in order. Later changes of the collection do not affect the iteration.
    public struct Iterator: IteratorProtocol {
        fileprivate let results: Results
        fileprivate let snapshot: ResultSnapshot
        fileprivate var position = 0

        /// Returns the next object; nil after the last.
        public mutating func next() -> Element? {
            guard position < snapshot.endIndex else { return nil }
            defer { position += 1 }
            return results.controller.object(snapshot[position])
        }
    }

    /// The position of the first object, always 0.
    public var startIndex: Int { 0 }
    /// The position after the last object, which is the number of objects.
    public var endIndex: Int { snapshot.endIndex }

    /// The object at a position: a registered object, or a fault. O(log count).
    ///
    /// - Precondition: The position is in the collection.
    public subscript(position: Int) -> Element { controller.object(snapshot[position]) }

    /// Returns an iterator over the objects of this moment.
    public func makeIterator() -> Iterator { Iterator(results: self, snapshot: snapshot) }
}

extension Results: CustomStringConvertible, CustomReflectable {
    /// The number of objects, and the keys of the first: `3 objects: 12, 7, 9`.
    public var description: String { snapshot.description }

    /// The ids of the objects as children.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: snapshot, displayStyle: .collection) }
}
