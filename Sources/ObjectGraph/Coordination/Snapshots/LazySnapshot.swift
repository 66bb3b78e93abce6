internal import Platform
import StoreInterface
import StoreModel

/// The newest state of a store, acquired at the first read. Until then it keeps no pages of the file from reuse (S154).
///
/// The writer's resting state uses one, and so does each context that has read nothing since its last move. If other processes
/// commit before the first read, the snapshot contains their saves too, which no earlier read can contradict. The writer acquires
/// all of them before its own commits, so that no context sees another context's save without merging it. After the first read the
/// snapshot is immutable.
///
/// While saves are deferred, a resting context reads the snapshot below those saves through a lazy one. If the context has read nothing
/// from it when the saves are in the file, the context can release it.
final class LazySnapshot: StoreSnapshot {
    let schema: StoreSchema
    private let acquire: @Sendable () throws -> any StoreSnapshot
    /// The snapshot that the first read returns; nil if the first read acquires one.
    private let underlying: (any StoreSnapshot)?
    private let state: Mutex<State>
    /// Set once. After that, ``taken`` does not change.
    private let isTaken = Atomic(false)
    /// The acquired snapshot, retained until `deinit`. Unchecked access is safe, because it is written before ``isTaken`` is set and
    /// read only after that. It is unmanaged because a read would count a reference to it, which costs more than finding a page.
    private nonisolated(unsafe) var taken: Unmanaged<Acquired>?
    private let onTaking: @Sendable (any StoreSnapshot) -> Void
    /// Whether no earlier read can contradict the snapshot. A suspended context has read an older one.
    let isFixed: Bool

    private final class Acquired: Sendable {
        let snapshot: any StoreSnapshot
        init(_ snapshot: any StoreSnapshot) { self.snapshot = snapshot }
    }

    private enum State {
        /// Not acquired. The generation is that of the commit after which the snapshot was created.
        case untaken(Generation)
        case taken
    }

    /// - Parameter onTaking: A closure called once, with the snapshot, when it is acquired.
    init(
        _ store: any ObjectStore, generation: Generation, isFixed: Bool = true,
        onTaking: @escaping @Sendable (any StoreSnapshot) -> Void
    ) {
        self.isFixed = isFixed
        acquire = { try store.snapshot() }
        underlying = nil
        schema = store.schema
        state = Mutex(.untaken(generation))
        self.onTaking = onTaking
    }

    /// Creates one over an acquired snapshot, which it retains.
    init(over base: any StoreSnapshot) {
        acquire = { base }
        underlying = base
        schema = base.schema
        state = Mutex(.untaken(base.generation))
        onTaking = { _ in }
        isFixed = true
    }

    deinit { taken?.release() }

    /// The acquired snapshot; nil before the first read. Never acquires one.
    var current: (any StoreSnapshot)? {
        isTaken.load(ordering: .acquiring) ? taken?.takeUnretainedValue().snapshot : nil
    }

    /// The snapshot whose pages this one keeps from reuse; nil if it keeps none.
    var held: (any StoreSnapshot)? { underlying ?? current }

    /// Acquires the snapshot if it is not yet acquired.
    ///
    /// - Throws: `StoreError` of the store's `snapshot()`.
    @discardableResult
    func take() throws -> any StoreSnapshot {
        if let current { return current }
        // Outside the lock: a store with one connection waits here for the writer's transaction, in which the writer acquires this
        // snapshot. If two callers acquire one, the first is kept: it precedes every later commit of this process.
        let snapshot: any StoreSnapshot
        do { snapshot = try acquire() } catch {
            if let current { return current }
            throw error
        }
        return state.withLock { state in
            if let current { return current }
            taken = .passRetained(Acquired(snapshot))
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
        case .taken: current?.generation ?? 0
        }
    }

    // MARK: Reading

    /// Calls `body` with the acquired snapshot.
    @inline(__always)
    private func read<R>(_ body: (any StoreSnapshot) throws -> R) throws -> R {
        guard isTaken.load(ordering: .acquiring), let taken else { return try body(take()) }
        return try taken._withUnsafeGuaranteedRef { try body($0.snapshot) }
    }

    var pagesWorthKeeping: Int { (try? read { $0.pagesWorthKeeping }) ?? 0 }

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? { try read { try $0.page(entity, number) } }
    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { try read { try $0.pageNumbers(entity) } }
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try read { try $0.value(entity, key: key, column: column) }
    }
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { try read { try $0.exists(entity, key) } }
    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? { try read { try $0.version(entity, key) } }
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { try read { try $0.related(relation, to: key) } }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try read { try $0.keys(query) } }
    func count(_ query: StoreQuery) throws -> Int { try read { try $0.count(query) } }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { try read { try $0.groups(aggregation) } }
    func explain(_ query: StoreQuery) throws -> String { try read { try $0.explain(query) } }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        try read { try $0.lookup(entity, column: column, value: value) }
    }

    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        try read { try $0.lookup(entity, columns: columns, values: values) }
    }

    func holder(_ entity: EntityIndex, column: ColumnIndex, of data: UnsafeRawBufferPointer) throws -> ObjectKey? {
        try read { try $0.holder(entity, column: column, of: data) }
    }

    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData { try read { try $0.orderedData(query) } }

    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        try read { try $0.parts(entity, key: key, column: column) }
    }
}
