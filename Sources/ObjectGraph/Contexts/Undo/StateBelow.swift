import StoreInterface
import StoreModel

/// One object in the state below some layers of a context. Reads pass through the context's cache of pages.
struct StateBelow {
    let context: ManagedObjectContext
    /// The layers of the state, newest first, over the base of the context's view.
    let layers: [Layer]
    let entity: EntityIndex
    let key: ObjectKey

    private var number: PageNumber { key.page }
    private var slot: Int { key.slot }

    /// Returns the change to a newer row of the object: without rows if the object is as before, and nil if the values before have
    /// more bytes than `limit`.
    func change(to row: Row, _ limit: Int) throws -> UndoStep.ObjectChange? {
        let none = UndoStep.ObjectChange(before: nil, after: nil)
        let existed = try exists()
        switch row.kind {
        case .delete:
            guard existed else { return none }
            return try values(of: ColumnSet(first: row.columnCount), row.columnCount, limit).map { .init(before: $0, after: nil) }
        case .insert where !existed:
            return .init(before: nil, after: row)
        case .insert, .update:
            // An update of an object that is deleted below has no effect.
            guard existed else { return none }
            let positions = positions(beside: row)
            var columns = row.set
            columns.formUnion(positions)
            guard let before = try values(of: columns, row.columnCount, limit) else { return nil }
            let after = completed(row, before, positions: positions)
            return UndoStep.ObjectChange.update(from: before, to: after, positions: positions) ?? none
        }
    }

    /// Returns the positions beside the references that a row changes. An object that leaves a list keeps its position until it gets one in
    /// another list.
    private func positions(beside row: Row) -> ColumnSet {
        var positions = ColumnSet()
        for reference in context.capabilities.rules.ordered[entity] where row.isSet(reference.column) {
            positions.insert(reference.position)
        }
        return positions
    }

    /// Returns a row with the positions that it does not change.
    private func completed(_ row: Row, _ before: Row, positions: ColumnSet) -> Row {
        guard positions.intersection(row.set) != positions else { return row }
        let completed = row.copy(layer: 0)
        positions.forEach { if !row.isSet($0) { completed[$0] = before[$0] } }
        return completed
    }

    /// Returns the value of a column; nil if the object does not exist.
    func value(_ column: ColumnIndex) throws -> Value? {
        switch layers.lookup(entity, page: number, slot: slot, column) {
        case .row(let row): return row[column]
        case .deleted: return nil
        case .below: return try page()?.presentValue(slot, column)
        }
    }

    func exists() throws -> Bool {
        for layer in layers {
            guard let row = layer.row(entity, page: number, slot: slot), row.kind != .update else { continue }
            return row.kind == .insert
        }
        return try page()?.contains(slot) ?? false
    }

    private func page() throws -> (any StorePage)? {
        try context.layerStack.pages.page(entity, number, in: context.layerStack.view.base)
    }

    private func values(of columns: ColumnSet, _ columnCount: Int, _ limit: Int) throws -> Row? {
        let row = Row.make(kind: .update, layer: 0, columnCount: columnCount)
        var bytes = 0
        for column in row.columnIndices where columns.contains(column) {
            if case .below = layers.lookup(entity, page: number, slot: slot, column),
                context.storedModel.entities[entity].columns[column].type == .data,
                let count = try context.layerStack.view.base.parts(entity, key: key, column: column)?.byteCount,
                count > limit - bytes
            {
                return nil
            }
            row[column] = try value(column) ?? .null
            bytes += row[column].heapByteCount
            if bytes > limit { return nil }
        }
        return row
    }
}
