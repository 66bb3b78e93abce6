import Observation
internal import Platform
import StoreInterface
import StoreModel

/// The entries of a range of keys, as a collection that follows its context (S192).
///
/// Use it on the context's executor, like the collection of the range. Reading it never shows a state from before a save that was awaited
/// (S068), if the context has merged the save. The keys follow unsaved changes of the context when the running job of its executor ends,
/// or after ``ManagedObjectContext/processPendingChanges()``. So a loop over positions may change and remove entries. Values are read from
/// the context at each access.
///
/// An update reads the changed keys on the executor, in time that grows with the difference. Reading a position takes a look-up of its key.
/// Releasing the collection ends its updates.
///
/// ```swift
/// let spring = try KeyedResults(drafts.range(withPrefix: "2026-03"))
/// for (name, draft) in spring { print(name, draft?.title ?? "unreadable") }
/// withObservationTracking {
///     show(spring.count)
/// } onChange: {
///     scheduleRedraw()
/// }
/// for await difference in spring.differences { apply(difference) }
/// ```
///
/// **Errors.** If the store cannot be read, or the container was closed, the collection keeps its keys, and ``error`` contains the reason
/// until a later update succeeds.
public final class KeyedResults<Key, Value: Codable & Sendable>: Observable {
    /// The collection that contains the range.
    public let collection: KeyedCollection<Key, Value>
    private let observer: KeyedResultsObserver
    private let reference: WeakBox<KeyedResults>
    private let registrar = ObservationRegistrar()
    private var rows: Rows
    private var failure: (any Error)?
    private(set) var continuations: [Int: AsyncStream<ResultDifference>.Continuation] = [:]
    private var lastContinuation = 0
    private var isUpdating = false
    // Key paths of a generic type are created at each use, so keep them.
    private let rowsPath: KeyPath<KeyedResults, Rows>
    private let failurePath: KeyPath<KeyedResults, (any Error)?>

    /// The objects of the entries at one moment, in order, and their keys.
    fileprivate struct Rows {
        var list = ResultList(order: SortOrder([]))
        var window = 0..<0
        var keys: [ObjectKey: Key] = [:]

        func object(_ position: Int) -> ObjectKey { list.key(at: window.lowerBound + position) }

        func key(_ position: Int) -> Key? { keys[object(position)] }
    }

    /// Reads the keys of a range and follows its context from then on. O(range).
    ///
    /// - Parameters:
    ///   - range: The entries to follow.
    ///   - direction: The order of the keys.
    ///   - limit: The maximum number of entries; nil for all.
    /// - Throws: ``CollectionError/unreadableKey(collection:)``; the store's error.
    public init(_ range: KeyedRange<Key, Value>, _ direction: StoreSort.Direction = .ascending, limit: Int? = nil) throws {
        collection = range.collection
        let context = collection.context
        let reference = WeakBox<KeyedResults>()
        self.reference = reference
        observer = KeyedResultsObserver(context.requiredContextExecutor) { reference.owner?.update() }
        rows = Rows()
        rowsPath = \KeyedResults.rows
        failurePath = \KeyedResults.failure
        reference.owner = self
        try context.checkOpen()
        // A file without collections that is opened read-only stays without them. Only closing the container changes this result.
        guard let query = context.keyedQuery(from: range.lower, to: range.upper, direction, limit: limit) else {
            _ = context.addViewObserver(observer)
            return
        }
        // The first view contains changes that were not processed yet. Process them now, so that they are no update.
        context.postPendingChanges()
        let view = context.addViewObserver(observer)
        do {
            let live = try LiveQuery(query.storeQuery, in: view)
            try follow(live, added: keys(of: live, at: 0..<live.window.count), removed: [])
        } catch {
            context.removeViewObserver(observer)
            throw error
        }
        context.processChangesAutomatically()
    }

    deinit {
        collection.context.removeViewObserver(observer)
        endDifferences()
    }

    /// The error of the last update; nil if it succeeded. The keys are those of the last update that succeeded.
    public var error: (any Error)? {
        settle()
        registrar.access(self, keyPath: failurePath)
        return failure
    }

    /// The differences from now on, in order and without gaps. The sequence ends when the collection is released, the container is closed,
    /// or the iteration ends.
    ///
    /// Positions are those before and after each update. When you receive a difference, the collection may show a later state already. No
    /// entry moves, because an entry keeps its key.
    public var differences: AsyncStream<ResultDifference> {
        // A read shows what is pending, so it is no later difference.
        settle()
        let (stream, continuation) = AsyncStream<ResultDifference>.makeStream()
        let context = collection.context
        if context.phase.closure != nil {
            continuation.finish()
            return stream
        }
        lastContinuation += 1
        let (number, reference) = (lastContinuation, reference)
        continuations[number] = continuation
        let contextExecutor = WeakContext(contextExecutor: context.contextExecutor)
        continuation.onTermination = { _ in
            contextExecutor.contextExecutor?.enqueue { _ in reference.owner?.continuations[number] = nil }
        }
        return stream
    }

    private func endDifferences() {
        for continuation in continuations.values { continuation.finish() }
        continuations = [:]
    }

    // MARK: Updating

    /// Merges saves that were announced, and applies the changes that the context has processed. Costs one lock if there are none.
    private func settle() {
        collection.context.checkIsolation()
        update()
    }

    /// Applies the changes that the context has processed.
    private func update() {
        // An observer may read the collection while it is notified. What arrives meanwhile is applied afterwards.
        guard !isUpdating else { return }
        isUpdating = true
        defer { isUpdating = false }
        while let step = observer.take() {
            switch step {
            case .closed(let error):
                fail(error)
                endDifferences()
            case .advanced(var live, let view, let changes, let saved):
                do {
                    let difference = try live.advance(to: view, changes: changes, saved: saved)
                    let added = try keys(of: live, at: difference.insertions)
                    fail(nil)
                    if difference.isEmpty { observer.follow(live) } else { show(live, difference, added: added) }
                } catch {
                    observer.forgetChanges()
                    return fail(error)
                }
            }
        }
    }

    private func show(_ live: LiveQuery, _ difference: ResultDifference, added: [(ObjectKey, Key)]) {
        registrar.withMutation(of: self, keyPath: rowsPath) {
            follow(live, added: added, removed: difference.deletions.map(rows.object))
        }
        for continuation in continuations.values { continuation.yield(difference) }
    }

    /// Adopts a result. Changes the keys in place, because a copy would cost O(range).
    private func follow(_ live: LiveQuery, added: [(ObjectKey, Key)], removed: [ObjectKey]) {
        observer.follow(live)
        (rows.list, rows.window) = (live.list, live.window)
        for object in removed { rows.keys[object] = nil }
        for (object, key) in added { rows.keys[object] = key }
    }

    /// Returns the objects at some positions of a result, with their keys.
    private func keys(of live: LiveQuery, at positions: some Sequence<Int>) throws -> [(ObjectKey, Key)] {
        try positions.map { position in
            let object = live.list.key(at: live.window.lowerBound + position)
            guard case .data(let bytes)? = try live.view.value(live.query.entity, key: object, column: KeyedColumn.key) else {
                throw CollectionError.unreadableKey(collection: collection.name)
            }
            return (object, try collection.key(of: ArraySlice(bytes)))
        }
    }

    private func fail(_ error: (any Error)?) {
        guard failure != nil || error != nil else { return }
        registrar.withMutation(of: self, keyPath: failurePath) { failure = error }
    }
}

extension KeyedResults: RandomAccessCollection {
    /// An entry. The value is nil if it does not decode, or if the entry was removed since the last update.
    public typealias Element = (key: Key, value: Value?)

    /// The entries of one moment, in order. Later changes of the collection do not affect the keys that the iteration returns.
    public struct Iterator: IteratorProtocol {
        fileprivate let collection: KeyedCollection<Key, Value>
        fileprivate let rows: Rows
        fileprivate var position = 0

        /// Returns the next entry; nil after the last.
        public mutating func next() -> Element? {
            guard position < rows.window.count else { return nil }
            defer { position += 1 }
            return rows.key(position).map { ($0, collection[$0]) }
        }
    }

    /// The position of the first entry, always 0.
    public var startIndex: Int { 0 }
    /// The position after the last entry, which is the number of entries.
    public var endIndex: Int { shown.window.count }

    /// The entry at a position. Its value is read from the context now, as by the collection's subscript.
    ///
    /// - Precondition: The position is in the collection.
    public subscript(position: Int) -> Element {
        let rows = shown
        precondition(position >= 0 && position < rows.window.count, "position \(position) is not in \(rows.window.count) entries")
        guard let key = rows.key(position) else { preconditionFailure("an entry has no key") }
        return (key, collection[key])
    }

    /// Returns an iterator over the entries of this moment.
    public func makeIterator() -> Iterator { Iterator(collection: collection, rows: shown) }

    /// The keys of the entries, in order. Reads no value.
    public var keys: [Key] {
        let rows = shown
        return rows.list.keys(rows.window).compactMap { rows.keys[$0] }
    }

    private var shown: Rows {
        settle()
        registrar.access(self, keyPath: rowsPath)
        return rows
    }
}

extension KeyedResults: CustomStringConvertible, CustomReflectable {
    /// The collection, the number of entries, and the first keys: `drafts: 2 entries, "spring", "summer"`. Reads no value.
    public var description: String {
        let keys = keys
        guard !keys.isEmpty else { return "\(collection.name): no entries" }
        let first = keys.prefix(8).map(collection.text).joined(separator: ", ") + (keys.count > 8 ? ", …" : "")
        return "\(collection.name): \(keys.count) \(keys.count == 1 ? "entry" : "entries"), \(first)"
    }

    /// The keys as children.
    public var customMirror: Mirror { Mirror(self, unlabeledChildren: keys, displayStyle: .collection) }
}

/// Collects the views and changes of a context. The results take them when they are read, or after the running job of the executor.
private final class KeyedResultsObserver: ViewObserver {
    /// The work for the results.
    enum Step {
        case advanced(LiveQuery, to: LayeredView, changes: [ChangeSet]?, saved: [ChangeSet])
        case closed(any Error)
    }

    private struct State {
        /// The context's executor. The reference is weak, because the context retains the observer.
        weak var contextExecutor: (any ContextExecutor)?
        var live: LiveQuery?
        var arrived = ArrivedChanges()
        var closed: (any Error)?
        var isScheduled = false
    }

    private let state: Mutex<State>
    private let update: @Sendable () -> Void

    /// - Parameter update: A closure called on the context's executor when there is something to take.
    init(_ contextExecutor: any ContextExecutor, update: @escaping @Sendable () -> Void) {
        state = Mutex(State(contextExecutor: contextExecutor))
        self.update = update
    }

    func follow(_ live: LiveQuery) { state.withLock { $0.live = live } }

    /// Lets the next step compare whole results, after one that failed.
    func forgetChanges() { state.withLock { $0.arrived.changes = nil } }

    /// Returns what has arrived; nil if nothing has.
    func take() -> Step? {
        state.withLock { state in
            if let error = state.closed {
                state.closed = nil
                return .closed(error)
            }
            guard let live = state.live, let view = state.arrived.view else { return nil }
            defer { state.arrived = ArrivedChanges() }
            return .advanced(live, to: view, changes: state.arrived.changes, saved: state.arrived.saved)
        }
    }

    func viewDidChange(_ view: LayeredView, _ changes: ChangeSet?, saved: ChangeSet) {
        let isFollowing = state.withLock { state in
            guard state.live != nil else { return false }
            state.arrived.add(view, changes: changes, saved: saved)
            return true
        }
        if isFollowing { schedule() }
    }

    func contextDidClose(_ error: any Error) {
        state.withLock { state in
            state.closed = error
            (state.live, state.arrived.view) = (nil, nil)
        }
        schedule()
    }

    func releaseViews(_ ended: LayeredView) {
        let dropped = state.withLock { state in
            defer {
                state.arrived.view = nil
                state.live?.detach(ended)
            }
            return (state.arrived.view, state.live?.view)
        }
        withExtendedLifetime(dropped) {}
    }

    private func schedule() {
        let contextExecutor = state.withLock { state -> (any ContextExecutor)? in
            defer { state.isScheduled = true }
            return state.isScheduled ? nil : state.contextExecutor
        }
        contextExecutor?.enqueue { [self] _ in
            state.withLock { $0.isScheduled = false }
            update()
        }
    }
}
