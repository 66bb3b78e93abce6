import StoreInterface
import StoreModel

/// The values of objects whose deletion is reverted before it was saved.
extension UndoPlan {
    /// Takes the values below an unsaved deletion. It has changed none of them, and others may have saved new ones since. Values that this
    /// context has changed before the deletion stay, except for positions in lists that the object has left.
    ///
    /// - Parameter last: The values before the deletion of the columns that the group has changed before it.
    func takeNewerValues(of address: ObjectAddress, to row: Row, last: Row?) throws {
        let count = context.layerStack.sealed.count + 1
        let own = view.layers.prefix(count).compactMap { $0.row(address.entity, address.key) }
        guard own.first?.kind == .delete, own.last?.kind != .insert else { return }
        let below = StateBelow(
            context: context, layers: Array(view.layers.dropFirst(count)), entity: address.entity, key: address.key)
        guard try below.exists() else { return }
        let stale = try stalePositions(of: address, last.map { row.overlaid(by: $0) } ?? row, own: own, below: below)
        for column in row.columnIndices where stale.contains(column) || !own.contains(where: { $0.isSet(column) }) {
            guard let value = try below.value(column) else { continue }
            // The group has saved this value before the deletion, and reverts it too.
            if let last, last.isSet(column), Value.areSame(last[column], value), !stale.contains(column) { continue }
            row[column] = value
        }
    }

    /// Returns the columns of positions in lists that an object with an unsaved deletion has left, because others have moved it.
    ///
    /// - Parameters:
    ///   - row: The object's values before the deletion.
    ///   - own: The object's rows in this context.
    ///   - below: The object below these rows.
    func stalePositions(of address: ObjectAddress, _ row: Row, own: [Row], below: StateBelow) throws -> ColumnSet {
        var stale = ColumnSet()
        for reference in context.capabilities.rules.ordered[address.entity]
        where !own.contains(where: { $0.isSet(reference.column) }) {
            var list = row[reference.column].referenceKey
            // An insertion of a deleted model has read the list after the merge, and the position from before.
            let place = UnsavedPositions.Place(object: address, reference: reference)
            if let noted = context.tracker.positions.all[place], noted.value == row[reference.position] { list = noted.list }
            if try below.value(reference.column)?.referenceKey != list { stale.insert(reference.position) }
        }
        return stale
    }
}
