internal import Platform
import StoreInterface
import StoreModel

/// Computes the derived values that a file does not have yet, before the file is opened with a model that has them.
///
/// The file first gets the columns, with a mark that their values are missing. Only when all objects have their values does it get the
/// model's schema. So no program sees a wrong value, and after a crash the next opening continues. O(objects of the entities).
struct PendingDerivations {
    let store: StoreDescription
    /// The model's schema.
    let schema: StoreSchema
    /// The schemas that the file has recorded, if the caller knows them; otherwise they are read.
    var file: RecordedSchemas?

    /// The number of pages that are written in one transaction.
    private static let pagesAtOnce = 64

    /// One opening at a time computes values, because a process has one store object per file, with one schema.
    private static let lock = Mutex(())

    /// Returns the result of `open`, which opens the store with the model's schema, after computing the missing values. Blocks.
    func opening<R>(_ open: () throws -> R) throws -> R {
        guard try missing() != nil else { return try open() }
        return try Self.lock.withLock { _ in
            try compute()
            return try open()
        }
    }

    /// Returns the schema with marks at the derived columns whose values the file does not have; nil if it has them all.
    private func missing() throws -> StoreSchema? {
        guard schema.hasDerivations, let found = try file ?? store.recordedSchemas?() else { return nil }
        return schema.pendingDerivations(in: found.current, exchanged: found.exchanged)
    }

    /// Computes the missing values. Blocks until the store is closed again.
    func compute() throws {
        guard let marked = try missing() else { return }
        do {
            try fill(marked)
        } catch let error as StoreError where error.code == .schemaMismatch || error.code == .schemaTooNew {
            // Another process may have computed the values.
            if try missing() != nil { throw error }
        }
    }

    private func fill(_ marked: StoreSchema) throws {
        let end = StoreRelease()
        do {
            let opened = try store.open(marked)
            end.watch(opened)
            guard let derived = DerivedColumns(opened.schema, pending: true) else { return }
            for entity in derived.sets.indices(as: EntityIndex.self) where !derived.sets[entity].isEmpty {
                var numbers = try opened.snapshot().pageNumbers(entity)[...]
                while !numbers.isEmpty {
                    try write(numbers.prefix(Self.pagesAtOnce), of: entity, derived, to: opened)
                    numbers = numbers.dropFirst(Self.pagesAtOnce)
                }
            }
        }
        try end.wait()
    }

    private func write(
        _ numbers: ArraySlice<PageNumber>, of entity: EntityIndex, _ derived: DerivedColumns, to store: any ObjectStore
    ) throws {
        let snapshot = try store.snapshot()
        let layer = Layer(schema: store.schema)
        for number in numbers {
            guard let page = try snapshot.page(entity, number) else { continue }
            for slot in SlotIterator(page.presence) {
                let key = PageAddress.key(page: number, slot: slot)
                let row = Row.make(kind: .update, layer: layer.id, columnCount: store.schema.entities[entity].columns.count)
                for column in derived.columns where column.entity == entity {
                    let value = try derived.value(of: column, key, in: snapshot)
                    if try !Value.areSame(page.value(slot, column.column), value) { row[column.column] = value }
                }
                if !row.set.isEmpty { layer.put(row, entity: entity, key: key) }
            }
        }
        if layer.isEmpty { return }
        layer.seal()
        try store.write(.durable) { transaction in
            layer.stamp(transaction.nextGeneration)
            try transaction.apply(layer, changes: layer.changeSet(metadata: .now(author: "", contextName: "migration")))
        }
    }
}

extension DerivedColumns {
    /// The number of findings that are reported per column.
    private static let findingsPerColumn = 100

    /// Compares every derived value of a state with the values that it is derived from. O(objects of their entities).
    /// - Parameters:
    ///   - snapshot: The state.
    ///   - store: The identity in the objects' ids.
    ///   - willReadPage: Called before each page. An error ends the check.
    func findings(
        in snapshot: any StoreSnapshot, _ store: StoreIdentity, _ willReadPage: () throws -> Void
    ) throws -> [VerificationFinding] {
        var findings: [VerificationFinding] = []
        for column in columns {
            var found = 0
            for number in try snapshot.pageNumbers(column.entity) {
                try willReadPage()
                guard found < Self.findingsPerColumn, let page = try snapshot.page(column.entity, number) else { continue }
                for slot in SlotIterator(page.presence) {
                    let key = PageAddress.key(page: number, slot: slot)
                    let wanted = try value(of: column, key, in: snapshot)
                    let stored = try page.value(slot, column.column)
                    guard !Value.areSame(stored, wanted) else { continue }
                    found += 1
                    let id = ObjectID(store: store, entity: column.entity, key: key)
                    findings.append(
                        VerificationFinding(
                            "\(column.name) of \(id) is \(stored.text(as: column.type)), but derived it is "
                                + "\(wanted.text(as: column.type))"))
                }
            }
        }
        return findings
    }
}
