internal import Platform
import StoreInterface

/// The newest state of a store, taken when it is first read: until then it keeps nothing of the file from reuse (S154).
///
/// The writer's resting state, and contexts that have read nothing since they moved, hold one each. If other processes commit before
/// it is read, it shows their saves too; nothing that was read can tell. The writer takes all of them before a commit of its own, so
/// that no context sees another's save without merging it. From the first read on it is one immutable snapshot.
final class LazySnapshot: StoreSnapshot {
    let schema: StoreSchema
    private let store: any ObjectStore
    private let state: Mutex<State>
    /// Set once, after which ``taken`` does not change any more.
    private let isTaken = Atomic(false)
    /// Written before ``isTaken`` is set and read after it: right because of that order.
    private nonisolated(unsafe) var taken: (any StoreSnapshot)?
    private let onTaking: @Sendable (any StoreSnapshot) -> Void

    private enum State {
        /// The generation of the commit after which it was made.
        case untaken(Generation)
        case taken
    }

    /// - Parameter onTaking: called once, with the snapshot, when it is taken.
    init(_ store: any ObjectStore, generation: Generation, onTaking: @escaping @Sendable (any StoreSnapshot) -> Void) {
        self.store = store
        schema = store.schema
        state = Mutex(.untaken(generation))
        self.onTaking = onTaking
    }

    /// The snapshot that is read; nil until then. Never takes one.
    var current: (any StoreSnapshot)? { isTaken.load(ordering: .acquiring) ? taken : nil }

    /// Takes the snapshot now if nobody has.
    /// - Throws: `StoreError` of the store's `snapshot()`.
    @discardableResult
    func take() throws -> any StoreSnapshot {
        if isTaken.load(ordering: .acquiring), let taken { return taken }
        // Outside the lock: a store with one connection waits here for the writer's transaction, in which the writer takes this
        // snapshot. If two callers take one, the first is kept: it precedes every later commit of this process.
        let snapshot: any StoreSnapshot
        do { snapshot = try store.snapshot() } catch {
            if let current { return current }
            throw error
        }
        return state.withLock { state in
            if case .taken = state, let taken { return taken }
            taken = snapshot
            state = .taken
            isTaken.store(true, ordering: .releasing)
            onTaking(snapshot)
            return snapshot
        }
    }

    var generation: Generation {
        if let current { return current.generation }
        return switch state.withLock({ $0 }) {
        case .untaken(let generation): generation
        case .taken: taken?.generation ?? 0
        }
    }

    // MARK: Reading

    var pagesWorthKeeping: Int { (try? take().pagesWorthKeeping) ?? 0 }

    func page(_ entity: Int, _ number: UInt64) throws -> (any StorePage)? { try take().page(entity, number) }
    func pageNumbers(_ entity: Int) throws -> [UInt64] { try take().pageNumbers(entity) }
    func value(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value? { try take().value(entity, key, column) }
    func exists(_ entity: Int, _ key: ObjectKey) throws -> Bool { try take().exists(entity, key) }
    func version(_ entity: Int, _ key: ObjectKey) throws -> Generation? { try take().version(entity, key) }
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { try take().related(relation, to: key) }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try take().keys(query) }
    func count(_ query: StoreQuery) throws -> Int { try take().count(query) }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { try take().groups(aggregation) }
    func explain(_ query: StoreQuery) throws -> String { try take().explain(query) }

    func lookup(_ entity: Int, column: Int, value: Value) throws -> [ObjectKey] {
        try take().lookup(entity, column: column, value: value)
    }

    func lookup(_ entity: Int, columns: [Int], values: [Value]) throws -> [ObjectKey] {
        try take().lookup(entity, columns: columns, values: values)
    }

    func parts(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> (any ValueParts)? {
        try take().parts(entity, key, column)
    }
}
