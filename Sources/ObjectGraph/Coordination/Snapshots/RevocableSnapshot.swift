internal import Platform
import StoreInterface
import StoreModel

/// The uses of the store by one confined context, which another thread can end when the container is closed.
///
/// A confined context has no executor on which it could be closed. Therefore the thread that closes the container changes nothing of the
/// context. While no use is running, it releases the snapshots that the context reads. The next use closes the context itself.
final class StoreUses: Sendable {
    /// The coordinator of the context.
    let owner: ObjectIdentifier
    /// The number of running uses; negative after ``close(within:)``.
    private let count = Atomic(0)
    private static let closed = Int.min / 2
    /// Added while another thread replaces what the context reads.
    private static let paused = Int.min / 4
    /// Whether the store was suspended since the context last moved.
    let wasSuspended = Atomic(false)
    /// The snapshots and pages that the context refers to.
    private let readings = Mutex<[ObjectIdentifier: any Revocable]>([:])
    /// The observers of the context's view, which read on other threads.
    private let observers = Mutex<[any ViewObserver]>([])

    init(of owner: ObjectIdentifier) { self.owner = owner }

    /// Begins a use. Returns false if the uses were closed. Uses may be nested: the uses within a use always begin.
    @inline(__always)
    func begin() -> Bool {
        let now = count.add(1, ordering: .acquiring).newValue
        if now > 0 { return true }
        count.subtract(1, ordering: .relaxed)
        return Self.isClosed(now) ? false : beginLater()
    }

    /// Begins a use after the other thread has replaced what the context reads, which takes some microseconds.
    @inline(never)
    private func beginLater() -> Bool {
        CurrentThread.sleep(microseconds: 50)
        return begin()
    }

    @inline(__always)
    func end() { count.subtract(1, ordering: .releasing) }

    /// Remembers a snapshot or page of a use that is running.
    fileprivate func add(_ reading: any Revocable) { readings.withLock { $0[ObjectIdentifier(reading)] = reading } }

    fileprivate func remove(_ reading: any Revocable) {
        _ = readings.withLock { $0.removeValue(forKey: ObjectIdentifier(reading)) }
    }

    func add(_ observer: any ViewObserver) { observers.withLock { $0.append(observer) } }
    func remove(_ observer: any ViewObserver) { observers.withLock { $0.removeAll { $0 === observer } } }

    /// Releases what the context reads, at a moment without uses. Blocks the calling thread until there is one.
    ///
    /// - Returns: false if uses were running for all of that time. Then nothing has changed.
    func close(within patience: Duration) -> Bool {
        if whenIdle(within: patience, Self.closed) == .busy { return false }
        let old = readings.withLock { readings in
            defer { readings = [:] }
            return readings
        }
        // Snapshots are released after the lock, because that ends transactions.
        for reading in old.values { reading.replace(nil) }
        return true
    }

    /// Makes the context read another snapshot, and its observers release their views, at a moment without uses. Blocks the calling thread
    /// until there is one.
    ///
    /// - Parameter ended: The view that the observers have instead.
    /// - Returns: false if uses were running for all of that time. Then nothing has changed.
    func suspend(within patience: Duration, reading base: any StoreSnapshot, ended: LayeredView) -> Bool {
        switch whenIdle(within: patience, Self.paused) {
        case .busy: return false
        case .closed: return true
        case .idle: break
        }
        for reading in readings.withLock({ Array($0.values) }) { reading.replace(base) }
        for observer in observers.withLock({ $0 }) { observer.releaseViews(ended) }
        wasSuspended.store(true, ordering: .releasing)
        count.subtract(Self.paused, ordering: .releasing)
        return true
    }

    private enum Moment { case idle, busy, closed }

    /// Adds a number at a moment without uses, so that none begins. Returns `busy` if there is no such moment in time.
    private func whenIdle(within patience: Duration, _ number: Int) -> Moment {
        let end = ContinuousClock.now + patience
        while true {
            let (isIdle, found) = count.compareExchange(expected: 0, desired: number, ordering: .acquiringAndReleasing)
            if isIdle { return .idle }
            if Self.isClosed(found) { return .closed }
            if ContinuousClock.now > end { return .busy }
            CurrentThread.sleep(microseconds: 1000)
        }
    }

    private static func isClosed(_ count: Int) -> Bool { count < (closed + paused) / 2 }
}

/// A reference to a snapshot or page of the store that can be taken away.
private protocol Revocable: AnyObject, Sendable {
    /// Takes it away. A reference to a snapshot then refers to `base`, if there is one.
    func replace(_ base: (any StoreSnapshot)?)
}

/// The reference of a ``RevocableSnapshot`` or of one of its pages.
private final class Reading<Target: Sendable>: Revocable, @unchecked Sendable {
    // `@unchecked Sendable` is safe because the reference is read only within a use, and changed only while there is none.
    var target: Target?
    /// The generation of the snapshot that was read until the first suspension; nil before, and of a page.
    private(set) var generationBefore: Generation?

    init(_ target: Target) { self.target = target }

    func replace(_ base: (any StoreSnapshot)?) {
        if generationBefore == nil { generationBefore = (target as? any StoreSnapshot)?.generation }
        target = base as? Target
    }
}

/// The snapshot that a confined context reads. After its uses were closed, it contains no objects, and requests throw.
final class RevocableSnapshot: StoreSnapshot {
    let schema: StoreSchema
    private let reading: Reading<any StoreSnapshot>
    private let closed: ClosedSnapshot
    fileprivate let uses: StoreUses

    init(_ base: any StoreSnapshot, _ uses: StoreUses, of store: any ObjectStore) {
        schema = base.schema
        self.uses = uses
        reading = Reading(base)
        closed = ClosedSnapshot(store, generation: base.generation)
        if uses.begin() {
            uses.add(reading)
            uses.end()
        } else {
            reading.replace(nil)
        }
    }

    deinit { uses.remove(reading) }

    /// The store's snapshot, or a closed one.
    var base: any StoreSnapshot { read { $0 } }

    private func read<R>(_ body: (any StoreSnapshot) throws -> R) rethrows -> R {
        guard uses.begin() else { return try body(closed) }
        defer { uses.end() }
        return try body(reading.target ?? closed)
    }

    /// Reads objects. If the snapshot is not readable, it contains none, and requests throw.
    fileprivate func readObjects<R>(_ body: (any StoreSnapshot) throws -> R) rethrows -> R {
        try read { try body(isReadable($0) ? $0 : closed) }
    }

    /// Whether the store can be read. It cannot after closing. Since it was suspended, its file may have been replaced, for instance.
    var isReadable: Bool { read { $0 !== closed && isReadable($0) } }

    private func isReadable(_ base: any StoreSnapshot) -> Bool {
        reading.generationBefore == nil || (base as? LazySnapshot).map { (try? $0.take()) != nil } ?? true
    }

    var generation: Generation { read(\.generation) }
    /// The generation that the context has read before it can have noticed a suspension.
    var generationBefore: Generation { read { reading.generationBefore ?? $0.generation } }
    /// Also false after the uses were closed: what was read before can no longer be compared.
    var isFixed: Bool { read { $0 !== closed && $0.isFixed } }
    var pagesWorthKeeping: Int { read(\.pagesWorthKeeping) }

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        try readObjects { try $0.page(entity, number).map { RevocablePage($0, entity: entity, number: number, of: self) } }
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { try readObjects { try $0.pageNumbers(entity) } }
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try readObjects { try $0.value(entity, key: key, column: column) }
    }
    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { try readObjects { try $0.exists(entity, key) } }
    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? {
        try readObjects { try $0.version(entity, key) }
    }
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        try readObjects { try $0.related(relation, to: key) }
    }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try readObjects { try $0.keys(query) } }
    func count(_ query: StoreQuery) throws -> Int { try readObjects { try $0.count(query) } }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { try readObjects { try $0.groups(aggregation) } }
    func explain(_ query: StoreQuery) throws -> String { try readObjects { try $0.explain(query) } }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        try readObjects { try $0.lookup(entity, column: column, value: value) }
    }

    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        try readObjects { try $0.lookup(entity, columns: columns, values: values) }
    }

    func holder(_ entity: EntityIndex, column: ColumnIndex, of data: UnsafeRawBufferPointer) throws -> ObjectKey? {
        try readObjects { try $0.holder(entity, column: column, of: data) }
    }

    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData { try readObjects { try $0.orderedData(query) } }

    /// The parts of a large value keep the store's snapshot themselves: a stream has to be ended before the container is closed.
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        try readObjects { try $0.parts(entity, key: key, column: column) }
    }
}

/// A page of a ``RevocableSnapshot``. After the uses were closed, it contains no objects.
private final class RevocablePage: StorePage {
    private let reading: Reading<any StorePage>
    private let uses: StoreUses
    private let snapshot: RevocableSnapshot
    private let (entity, number): (EntityIndex, PageNumber)

    /// Precondition: a use is running.
    init(_ page: any StorePage, entity: EntityIndex, number: PageNumber, of snapshot: RevocableSnapshot) {
        reading = Reading(page)
        uses = snapshot.uses
        self.snapshot = snapshot
        (self.entity, self.number) = (entity, number)
        uses.add(reading)
    }

    deinit { uses.remove(reading) }

    @inline(__always)
    private func read<R>(_ closed: R, _ body: (any StorePage) throws -> R) throws -> R {
        guard uses.begin() else { return closed }
        defer { uses.end() }
        guard let page = try reading.target ?? newest() else { return closed }
        return try body(page)
    }

    /// Returns the page of the snapshot that the context reads since the store was suspended; nil if it has none.
    @inline(never)
    private func newest() throws -> (any StorePage)? {
        reading.target = try snapshot.readObjects { try $0.page(entity, number) }
        return reading.target
    }

    var presence: UInt64 { (try? read(0) { $0.presence }) ?? .max }
    func contains(_ slot: Int) throws -> Bool { try read(false) { try $0.contains(slot) } }
    func present(among slots: UInt64) throws -> UInt64 { try read(0) { try $0.present(among: slots) } }
    func version(_ slot: Int) throws -> Generation { try read(0) { try $0.version(slot) } }
    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value { try read(.null) { try $0.value(slot, column) } }
    func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value? { try read(nil) { try $0.presentValue(slot, column) } }
    func withData(
        _ slot: Int, column: ColumnIndex, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws -> Bool {
        try read(false) { try $0.withData(slot, column: column, body) }
    }
}

extension StoreState {
    /// The snapshot of the store below the deferred saves, which a confined context reads through a ``RevocableSnapshot``.
    var storeBase: any StoreSnapshot { (base as? RevocableSnapshot)?.base ?? base }

    /// The newest save in the snapshot that the context has read. During a suspension ``storeBase`` may contain newer ones.
    var generationOfBase: Generation { (base as? RevocableSnapshot)?.generationBefore ?? base.generation }
}

extension LayeredView {
    /// Begins a use for all of a computation, which the caller ends: what a confined context reads is not replaced meanwhile. Returns nil if
    /// the context is not confined, or closed.
    func beginUse() -> StoreUses? {
        guard let uses = (base as? RevocableSnapshot)?.uses, uses.begin() else { return nil }
        return uses
    }
}

extension ManagedObjectContext {
    /// Returns a state in the form in which the context may keep it. A confined context reads it through its ``StoreUses``.
    func readable(_ state: StoreState) -> StoreState {
        guard let uses = place.confinement?.uses, phase.closure == nil else { return state }
        if let known = state.base as? RevocableSnapshot, known.uses === uses { return state }
        return state.reading(RevocableSnapshot(state.storeBase, uses, of: configuration.coordinator.store))
    }

    /// Runs a request or save of a confined context as one use: closing the container waits for its end. In other contexts, runs `body`.
    ///
    /// - Throws: `StoreError` `.closed` while or after the container is closed.
    @inline(__always)
    func using<R>(_ body: () throws -> R) throws -> R {
        let uses = try beginUse()
        defer { uses?.end() }
        return try body()
    }

    /// Begins a use of the store, which the caller ends. Returns nil if the context is not confined.
    @inline(__always)
    func beginUse() throws -> StoreUses? {
        guard let uses = place.confinement?.uses else { return nil }
        // A new use would put off the closing.
        try configuration.coordinator.checkOpen()
        if !uses.begin() { throw configuration.coordinator.closedError }
        return uses
    }
}
