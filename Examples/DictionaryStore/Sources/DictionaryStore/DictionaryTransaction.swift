import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A write transaction: it changes a copy of the state, which the store takes if the body does not throw.
final class DictionaryTransaction: StoreTransaction {
    private let schema: StoreSchema
    private(set) var state: DictionaryState
    /// Microseconds since 1970, or one more than the newest save if the clock is behind. Constant until a save is written.
    private(set) var nextGeneration: Generation

    init(_ schema: StoreSchema, _ state: DictionaryState) {
        self.schema = schema
        self.state = state
        nextGeneration = Self.timestamp(after: state.generation)
    }

    private static func timestamp(after generation: Generation) -> Generation {
        max(generation.next, Generation(rawValue: UInt64(max(0, SaveMetadata.time(of: Date())))))
    }

    var generation: Generation { state.generation }

    // MARK: Saving

    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws {
        for entity in schema.entityIndices {
            guard let rows = layer.entity(entity) else { continue }
            for number in rows.sortedPageNumbers {
                guard let page = rows.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    try apply(row, entity: entity, key: PageAddress.key(page: number, slot: slot), numbers)
                }
            }
        }
        for link in schema.linkIndices {
            for (source, destinations) in layer.links[link].forward {
                for (destination, isLinked) in destinations { setLink(link, from: source, to: destination, linked: isLinked) }
            }
        }
        var changes = changes
        changes.generation = numbers.generation(of: layer.version)
        state.history.append(changes)
        state.generation = changes.generation
        nextGeneration = Self.timestamp(after: state.generation)
    }

    private func apply(_ row: Row, entity: EntityIndex, key: ObjectKey, _ numbers: CommitNumbers) throws {
        if row.kind == .delete {
            state.objects[entity][key] = nil
            for (number, link) in schema.links.enumerated(as: LinkIndex.self) {
                state.links[number] = state.links[number].filter { pair in
                    !(link.source == entity && pair.source == key || link.destination == entity && pair.destination == key)
                }
            }
            return
        }
        let columns = schema.entities[entity].columns
        let old = row.kind == .update ? state.objects[entity][key] : nil
        // An incomplete update of an object that is gone.
        guard old != nil || row.set.count == columns.count else { return }
        var values = old?.values ?? columns.map { _ in .null }
        for (number, column) in columns.enumerated(as: ColumnIndex.self) where row.isSet(number) {
            guard column.accepts(row[number]) else {
                throw StoreError(
                    .unsupported,
                    "cannot save \(schema.entities[entity].name) \(key): \(column.name) cannot hold \(row[number]). "
                        + "Set a value of type \(column.type.rawValue).")
            }
            values[number] = column.type.stored(row[number])
        }
        state.objects[entity][key] = .init(version: numbers.generation(of: row.version), values: values)
    }

    private func setLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked isLinked: Bool) {
        let pair = DictionaryState.Pair(source: source, destination: destination)
        let ends = schema.links[link]
        if !isLinked {
            state.links[link].remove(pair)
        } else if state.objects[ends.source][source] != nil, state.objects[ends.destination][destination] != nil {
            state.links[link].insert(pair)
        }
    }

    // MARK: Keys and history

    func allocateKeys(_ entity: EntityIndex, pages: Int) throws -> Range<ObjectKey> {
        let first = state.nextKeys[entity]
        state.nextKeys[entity] = first.advanced(by: max(1, pages) * PageAddress.slots)
        return first..<state.nextKeys[entity]
    }

    func deleteHistory(_ cut: HistoryCut, limit: Int) throws -> Int {
        let count = min(max(0, limit), state.history.prefix { cut.takes($0) }.count)
        if count > 0 { state.historyStart = state.history[count - 1].generation }
        state.history.removeFirst(count)
        return count
    }
}
