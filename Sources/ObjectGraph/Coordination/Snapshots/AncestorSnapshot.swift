internal import Platform
import StoreInterface

/// Reads through a parent as Core Data does, kept for comparison (routing `ancestors`).
///
/// Each request waits for the parent's executor. The parent reads its own changes and its own parent, and creates an object per record.
/// This reads the parent's present state, so it is not a snapshot in time.
final class AncestorSnapshot: StoreSnapshot {
    let schema: StoreSchema
    private let parent: ContextConfiguration.ParentLink

    init(parent: ContextConfiguration.ParentLink, schema: StoreSchema) {
        self.parent = parent
        self.schema = schema
    }

    fileprivate func ask<T: Sendable>(_ question: @Sendable (ManagedObjectContext) throws -> T) throws -> T {
        guard let host = parent.host else { throw SaveError.parentGone(context: "child of \(parent.name)") }
        return try host.wait(question)
    }

    var generation: Generation { (try? ask { $0.view.base.generation }) ?? 0 }

    func page(_ entity: Int, _ number: UInt64) throws -> (any StorePage)? {
        AncestorPage(entity: entity, number: number, reader: self)
    }

    func pageNumbers(_ entity: Int) throws -> [UInt64] {
        let keys = try keys(StoreQuery(entity: entity))
        return Set(keys.map(PageAddress.page)).sorted()
    }

    func keys(_ query: StoreQuery) throws -> [ObjectKey] {
        try ask { parent in
            let keys = try parent.view.keys(query)
            for key in keys { _ = parent.object(query.entity, key) }
            return keys
        }
    }

    func count(_ query: StoreQuery) throws -> Int { try ask { try $0.view.count(query) } }

    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { try ask { try $0.view.groups(aggregation) } }

    func lookup(_ entity: Int, column: Int, value: Value) throws -> [ObjectKey] {
        try keys(StoreQuery(entity: entity, predicate: .compare(column, .equal, value)))
    }

    func explain(_ query: StoreQuery) throws -> String {
        try "read through the parent: " + ask { try $0.view.explain(query) }
    }

    func value(_ entity: Int, _ key: ObjectKey, _ column: Int) throws -> Value? {
        try ask { try $0.view.value(entity, key, column) }
    }

    func version(_ entity: Int, _ key: ObjectKey) throws -> Generation? {
        try ask { try $0.view.version(entity, key).map { $0.generation ?? 0 } }
    }

    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] {
        try ask { try $0.view.related(relation, to: key) }
    }

    /// Returns all values of an object, which the parent registers; nil if the object does not exist.
    fileprivate func row(_ entity: Int, _ key: ObjectKey) throws -> [Value]? {
        try ask { parent in
            guard try parent.exists(entity, key) else { return nil }
            let object = parent.object(entity, key)
            return try parent.model.entities[entity].columns.indices.map { column in
                try object.row?.isSet(column) == true
                    ? object.row?[column] ?? .null : parent.view.value(entity, key, column) ?? .null
            }
        }
    }
}

/// A page that is read through a parent, in whole rows. Each row is requested once.
private final class AncestorPage: StorePage {
    private let entity: Int
    private let number: UInt64
    private let reader: AncestorSnapshot
    private let rows = Mutex<[Int: [Value]?]>([:])

    init(entity: Int, number: UInt64, reader: AncestorSnapshot) {
        self.entity = entity
        self.number = number
        self.reader = reader
    }

    var presence: UInt64 {
        var mask: UInt64 = 0
        let entity = entity
        let number = number
        let keys = (0..<PageAddress.slots).map { PageAddress.key(page: number, slot: $0) }
        let found = try? reader.ask { parent in try keys.map { try parent.exists(entity, $0) } }
        for (slot, exists) in (found ?? []).enumerated() where exists { mask |= 1 << UInt64(slot) }
        return mask
    }

    func contains(_ slot: Int) throws -> Bool { try row(slot) != nil }

    func version(_ slot: Int) throws -> Generation {
        try reader.version(entity, PageAddress.key(page: number, slot: slot)) ?? 0
    }

    func value(_ slot: Int, _ column: Int) throws -> Value {
        try row(slot)?[column] ?? .null
    }

    private func row(_ slot: Int) throws -> [Value]? {
        if let known = rows.withLock({ $0[slot] }) { return known }
        let row = try reader.row(entity, PageAddress.key(page: number, slot: slot))
        rows.withLock { $0[slot] = .some(row) }
        return row
    }
}
