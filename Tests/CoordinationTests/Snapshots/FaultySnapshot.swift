import StoreInterface
import StoreModel

/// A snapshot of a ``FaultyStore``, whose reads are counted and fail when a test requests it.
///
/// The store in memory makes a new snapshot for each call, so that each snapshot has exactly one wrapper. One call of the wrapper counts
/// once, however the snapshot answers it. What cannot throw does not fail, nor does the text of ``explain(_:)``.
final class FaultySnapshot: StoreSnapshot {
    private let snapshot: any StoreSnapshot
    private let note: @Sendable (FaultyStore.Call) throws -> Void

    init(_ snapshot: any StoreSnapshot, _ note: @escaping @Sendable (FaultyStore.Call) throws -> Void) {
        self.snapshot = snapshot
        self.note = note
    }

    var schema: StoreSchema { snapshot.schema }
    var generation: Generation { snapshot.generation }
    var isFixed: Bool { snapshot.isFixed }
    var pagesWorthKeeping: Int { snapshot.pagesWorthKeeping }

    fileprivate func read<R>(_ call: FaultyStore.Call, _ body: () throws -> R) throws -> R {
        try note(call)
        return try body()
    }

    // MARK: Objects

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try read(.readValue) { try snapshot.value(entity, key: key, column: column) }
    }

    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        try read(.readValue) { try snapshot.parts(entity, key: key, column: column) }
    }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? {
        try read(.readVersion) { try snapshot.version(entity, key) }
    }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool {
        try read(.readVersion) { try snapshot.exists(entity, key) }
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        try read(.readRelated) { try snapshot.related(relation, to: key) }
    }

    // MARK: Pages

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        try read(.readPage) { try snapshot.page(entity, number) }.map { FaultyPage($0, of: self) }
    }

    func checkedPage(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        try read(.readPage) { try snapshot.checkedPage(entity, number) }.map { FaultyPage($0, of: self) }
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] {
        try read(.readPage) { try snapshot.pageNumbers(entity) }
    }

    // MARK: Queries

    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try read(.readKeys) { try snapshot.keys(query) } }
    func count(_ query: StoreQuery) throws -> Int { try read(.readKeys) { try snapshot.count(query) } }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        try read(.readKeys) { try snapshot.groups(aggregation) }
    }

    func orderedData(_ query: OrderedDataQuery) throws -> OrderedData {
        try read(.readKeys) { try snapshot.orderedData(query) }
    }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        try read(.lookUp) { try snapshot.lookup(entity, column: column, value: value) }
    }

    func lookup(_ entity: EntityIndex, columns: [ColumnIndex], values: [Value]) throws -> [ObjectKey] {
        try read(.lookUp) { try snapshot.lookup(entity, columns: columns, values: values) }
    }

    func explain(_ query: StoreQuery) throws -> String { try snapshot.explain(query) }
}

/// A page of a ``FaultySnapshot``, which it keeps alive.
private final class FaultyPage: StorePage {
    private let page: any StorePage
    private let snapshot: FaultySnapshot

    init(_ page: any StorePage, of snapshot: FaultySnapshot) {
        self.page = page
        self.snapshot = snapshot
    }

    var presence: UInt64 { page.presence }

    func contains(_ slot: Int) throws -> Bool { try snapshot.read(.readPage) { try page.contains(slot) } }
    func present(among slots: UInt64) throws -> UInt64 { try snapshot.read(.readPage) { try page.present(among: slots) } }
    func version(_ slot: Int) throws -> Generation { try snapshot.read(.readVersion) { try page.version(slot) } }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value {
        try snapshot.read(.readValue) { try page.value(slot, column) }
    }

    func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value? {
        try snapshot.read(.readValue) { try page.presentValue(slot, column) }
    }
}
