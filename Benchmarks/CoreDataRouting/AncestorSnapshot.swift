import ObjectGraph
import StoreInterface
import StoreModel

/// Reads a child's objects through its parent, on the parent's executor.
///
/// It shows the parent's present state, except for the rows and relationships that it has kept. Its state is not fixed.
final class AncestorSnapshot: StoreSnapshot {
    let schema: StoreSchema
    private let parent: ContextLink
    private let level: Int
    private let rows: KeptRows
    private let hops: RequestHops

    init(parent: ContextLink, schema: StoreSchema, level: Int, rows: KeptRows, hops: RequestHops) {
        self.parent = parent
        self.schema = schema
        self.level = level
        self.rows = rows
        self.hops = hops
    }

    /// Waits for the parent's executor: one hop.
    private func ask<T: Sendable>(
        _ kind: RequestHop.Kind, _ question: @Sendable (ManagedObjectContext) throws -> T
    ) throws -> T {
        try parent.wait(orThrow: SaveError.parentGone(context: "child of \(parent.name)")) { [hops, level] parent in
            hops.add(kind, level: level)
            return try question(parent)
        }
    }

    var isFixed: Bool { false }

    var generation: Generation { (try? ask(.other) { $0.presentView.base.generation }) ?? 0 }

    // MARK: Objects

    /// All values of an object: one hop, unless the row is kept.
    func row(_ entity: EntityIndex, _ key: ObjectKey) throws -> [Value]? {
        if let known = rows.row(entity, key) { return known }
        let revision = rows.revision
        let (hops, level) = (hops, level)
        let row = try ask(.fault) { parent in
            hops.serve(.fault, level: level, objects: 1)
            return try parent.wholeRow(entity, key)
        }
        if let row { rows.keep(row, entity: entity, key: key, at: revision) }
        return row
    }

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        AncestorPage(entity: entity, number: number, reader: self)
    }

    func exists(_ entity: EntityIndex, _ key: ObjectKey) throws -> Bool { try row(entity, key) != nil }

    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? { try row(entity, key)?[column] }

    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? {
        try ask(.other) { try $0.presentView.version(entity, key).map { $0.generation ?? 0 } }
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        if let known = rows.related(relation, to: key) { return known }
        let revision = rows.revision
        let related = try ask(.relationship) { try $0.presentView.related(relation, to: key) }
        rows.keep(related, relation, to: key, at: revision)
        return related
    }

    // MARK: Fetches

    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try ask(.fetch) { try $0.presentView.keys(query) } }

    func count(_ query: StoreQuery) throws -> Int { try ask(.fetch) { try $0.presentView.count(query) } }

    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups {
        try ask(.fetch) { try $0.presentView.groups(aggregation) }
    }

    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        try keys(StoreQuery(entity: entity, predicate: .compare(column, .equal, to: value)))
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] {
        Set(try keys(StoreQuery(entity: entity)).map(PageAddress.page)).sorted()
    }

    func explain(_ query: StoreQuery) throws -> String {
        try "asked of the parent: " + ask(.other) { try $0.presentView.explain(query) }
    }
}

/// A page read through a parent.
private final class AncestorPage: StorePage {
    private let entity: EntityIndex
    private let number: PageNumber
    private let reader: AncestorSnapshot

    init(entity: EntityIndex, number: PageNumber, reader: AncestorSnapshot) {
        self.entity = entity
        self.number = number
        self.reader = reader
    }

    /// One fetch.
    var presence: UInt64 {
        let keys = (0..<PageAddress.slots).map { PageAddress.key(page: number, slot: $0) }
        guard let found = try? reader.keys(StoreQuery(entity: entity, predicate: .keys(Set(keys)))) else { return .max }
        return found.reduce(0) { $0 | 1 << UInt64(PageAddress.slot(of: $1)) }
    }

    func contains(_ slot: Int) throws -> Bool { try row(slot) != nil }

    func version(_ slot: Int) throws -> Generation {
        try reader.version(entity, PageAddress.key(page: number, slot: slot)) ?? 0
    }

    func value(_ slot: Int, _ column: ColumnIndex) throws -> Value { try row(slot)?[column] ?? .null }

    func presentValue(_ slot: Int, _ column: ColumnIndex) throws -> Value? { try row(slot)?[column] }

    private func row(_ slot: Int) throws -> [Value]? {
        try reader.row(entity, PageAddress.key(page: number, slot: slot))
    }
}
