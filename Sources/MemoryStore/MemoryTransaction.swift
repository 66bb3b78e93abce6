import StoreInterface
import StoreModel

/// A transaction on a copy of the state, which becomes the store's state when the body succeeds.
final class MemoryTransaction: StoreTransaction {
    private let schema: StoreSchema
    private(set) var state: MemoryState

    init(schema: StoreSchema, state: MemoryState) {
        self.schema = schema
        self.state = state
    }

    var generation: Generation { state.generation }

    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws {
        for entity in layer.entityIndices {
            guard let rows = layer.entity(entity) else { continue }
            for number in rows.sortedPageNumbers {
                guard let page = rows.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    try apply(row, entity: entity, key: PageAddress.key(page: number, slot: slot), numbers: numbers)
                }
            }
        }
        for (link, pairs) in layer.links.enumerated(as: LinkIndex.self) {
            for (source, destinations) in pairs.forward {
                for (destination, linked) in destinations { setLink(link, from: source, to: destination, linked: linked) }
            }
        }
        state.generation = numbers.generation(of: layer.version)
        var changes = changes
        changes.generation = state.generation
        state.history.append(changes)
        if state.history.count > MemoryState.historyLimit { state.history.removeFirst() }
    }

    private func apply(_ row: Row, entity: EntityIndex, key: ObjectKey, numbers: CommitNumbers) throws {
        if row.kind == .delete {
            state.remove(entity, key)
            for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
                if link.source == entity { state.links[number].removeSource(key) }
                if link.destination == entity { state.links[number].removeDestination(key) }
            }
            return
        }
        let columns = schema.entities[entity].columns
        let old = row.kind == .update ? state.records[entity][key] : nil
        guard old != nil || row.set.count == columns.count else { return }
        var values = old?.values ?? Array(repeating: .null, count: columns.count)
        for column in columns.indices(as: ColumnIndex.self) where row.isSet(column) {
            let value = row[column]
            guard columns[column].accepts(value) else {
                throw StoreError(
                    .unsupported,
                    "\(schema.entities[entity].name).\(columns[column].name) is \(columns[column].type.rawValue) and cannot hold \(value)"
                )
            }
            values[column] = columns[column].type.stored(value)
        }
        state.put(MemoryRecord(version: numbers.generation(of: row.version), values: values), entity: entity, key: key)
    }

    /// Sets a pair, unless one of its ends does not exist.
    private func setLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) {
        let ends = schema.links[link]
        if linked, state.records[ends.source][source] == nil || state.records[ends.destination][destination] == nil { return }
        state.links[link].set(source, destination, linked: linked)
    }

    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey> {
        let first = state.nextKeys[entity]
        let end = first.advanced(by: max(pages, 1) * PageAddress.slots)
        state.nextKeys[entity] = end
        return first..<end
    }

    func allocateFreeKeys(_ entity: EntityIndex) throws -> [Range<ObjectKey>] {
        if state.freeKeys[entity].ranges.isEmpty { state.freeKeys[entity] = FreeKeys([try allocateKeys(entity, pages: 1)]) }
        return state.freeKeys[entity].take()
    }

    func giveBackKeys(_ keys: [Range<ObjectKey>], _ entity: EntityIndex) throws {
        var next = PageAddress.page(of: state.nextKeys[entity])
        state.freeKeys[entity].giveBack(keys, next: &next)
        state.nextKeys[entity] = PageAddress.key(page: next, slot: 0)
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        let count = min(state.history.prefix { cut.takes($0) }.count, max(0, limit))
        state.history.removeFirst(count)
        return count
    }
}
