import StoreInterface
import StoreModel

/// The changes that the check of a deferred save has added to it: deletions and references that follow from delete rules, other ends of
/// one-to-one relationships, and the other values of objects that the merge policy writes again (S106).
///
/// Such a change may follow from an earlier deferred save. If that one cannot be written, the change must not be written either. A second
/// check therefore begins without all of them, and adds what still follows.
struct AddedChanges: Sendable {
    private struct Pair: Sendable {
        var link: LinkIndex
        var source: ObjectKey
        var destination: ObjectKey
    }

    private var deleted: Set<ObjectAddress> = []
    private var columns: [ObjectAddress: ColumnSet] = [:]
    private var pairs: [Pair] = []
    /// An object that was written again.
    private struct Revival: Sendable {
        /// The columns that the save itself has changed.
        var own: ColumnSet
        /// The values of all columns, if the policy writes them over an existing object too.
        var whole: [Value]?
    }

    private var writtenAgain: [ObjectAddress: Revival] = [:]

    private var isEmpty: Bool { deleted.isEmpty && columns.isEmpty && pairs.isEmpty && writtenAgain.isEmpty }

    fileprivate mutating func noteDeletion(of address: ObjectAddress) { deleted.insert(address) }

    fileprivate mutating func note(_ column: ColumnIndex, of address: ObjectAddress) {
        columns[address, default: ColumnSet()].insert(column)
    }

    fileprivate mutating func noteRemoval(from source: ObjectKey, to destination: ObjectKey, _ link: LinkIndex) {
        pairs.append(Pair(link: link, source: source, destination: destination))
    }

    fileprivate mutating func note(writtenAgain address: ObjectAddress, own: ColumnSet, whole: [Value]?) {
        writtenAgain[address] = Revival(own: own, whole: whole)
    }

    /// Returns the layer of an accepted save without the changes, and the objects that need not be written again because they exist, with
    /// the columns that the policy overwrites although the save has not changed them. O(changes).
    ///
    /// - Parameter view: The state that the save follows now.
    func removed(from layer: Layer, over view: LayeredView) throws -> (layer: Layer, existing: [ObjectAddress: ColumnSet]) {
        if isEmpty { return (layer, [:]) }
        let rest = Layer(copying: layer)
        var existing: [ObjectAddress: ColumnSet] = [:]
        for (address, revival) in writtenAgain {
            guard let row = rest.row(address.entity, address.key), row.kind == .insert,
                try view.exists(address.entity, address.key)
            else { continue }
            guard let whole = revival.whole else {
                existing[address] = ColumnSet()
                rest.keep(row.set.intersection(revival.own), of: row, at: address)
                continue
            }
            var overwritten = row.set
            revival.own.forEach { overwritten.remove($0) }
            existing[address] = overwritten
            // The row has null for references whose destinations did not exist either.
            let kept = row.copy(layer: rest.id)
            for (column, value) in zip(row.columnIndices, whole) { kept[column] = value }
            rest.keep(kept.set, of: kept, at: address)
        }
        for address in deleted {
            // The deletion keeps the values that the save itself has changed.
            if let row = layer.row(address.entity, address.key), row.kind == .delete { rest.keep(row.set, of: row, at: address) }
        }
        for (address, added) in columns {
            guard let row = rest.row(address.entity, address.key), row.kind == .update else { continue }
            var own = row.set
            added.forEach { own.remove($0) }
            rest.keep(own, of: row, at: address)
        }
        for pair in pairs { rest.forgetLink(pair.link, from: pair.source, to: pair.destination) }
        rest.seal()
        return (rest, existing)
    }
}

extension Layer {
    /// Replaces the change of an object by an update of some of its columns; of none, removes it.
    fileprivate func keep(_ columns: ColumnSet, of row: Row, at address: ObjectAddress) {
        remove(entity: address.entity, key: address.key)
        if columns.isEmpty { return }
        let kept = row.copy(layer: id)
        kept.kind = .update
        row.set.forEach { if !columns.contains($0) { kept.clear($0) } }
        put(kept, entity: address.entity, key: address.key)
    }
}

extension SaveCheck {
    /// The terms for a second check of the save, after the first.
    var terms: SaveTerms {
        var terms = request.terms
        terms.added = added
        return terms
    }

    private var mayBeCheckedAgain: Bool {
        request.durability != .durable && writer.capabilities.contains(.layeredDeferral)
    }

    /// Notes that the check has changed a reference of an object.
    mutating func noteAdded(_ column: ColumnIndex, entity: EntityIndex, key: ObjectKey) {
        if mayBeCheckedAgain { added.note(column, of: .init(entity: entity, key: key)) }
    }

    /// Notes that the check has deleted an object.
    mutating func noteAddedDeletion(of address: ObjectAddress) {
        if mayBeCheckedAgain { added.noteDeletion(of: address) }
    }

    /// Notes that the check writes an object again that others have deleted.
    ///
    /// - Parameters:
    ///   - row: The context's change, which has every value if the object was deleted in the base already.
    ///   - values: The values that a custom policy gives to properties.
    ///   - whole: The whole object, if the policy writes all of its values over an existing object too.
    mutating func noteWrittenAgain(
        _ address: ObjectAddress, row: Row?, setting values: [String: Value] = [:], whole: Row? = nil
    ) {
        guard mayBeCheckedAgain else { return }
        let schema = writer.store.schema.entities[address.entity]
        var own = request.changedOfDeleted[address] ?? row?.set ?? ColumnSet()
        for column in schema.columnIndices where values[schema.columns[column].name] != nil { own.insert(column) }
        // A position goes with its list.
        for reference in request.rules.ordered[address.entity] where own.contains(reference.column) {
            own.insert(reference.position)
        }
        added.note(writtenAgain: address, own: own, whole: whole.map { row in row.columnIndices.map { row[$0] } })
    }

    /// Notes that the check has removed a pair.
    mutating func noteAddedRemoval(from source: ObjectKey, to destination: ObjectKey, _ link: LinkIndex) {
        if mayBeCheckedAgain { added.noteRemoval(from: source, to: destination, link) }
    }
}
