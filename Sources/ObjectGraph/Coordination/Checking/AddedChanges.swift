import StoreInterface
import StoreModel

/// The changes that the check of a deferred save has added to it: deletions and references that follow from delete rules, and other ends of
/// one-to-one relationships.
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

    private var isEmpty: Bool { deleted.isEmpty && columns.isEmpty && pairs.isEmpty }

    fileprivate mutating func noteDeletion(of address: ObjectAddress) { deleted.insert(address) }

    fileprivate mutating func note(_ column: ColumnIndex, of address: ObjectAddress) {
        columns[address, default: ColumnSet()].insert(column)
    }

    fileprivate mutating func noteRemoval(from source: ObjectKey, to destination: ObjectKey, _ link: LinkIndex) {
        pairs.append(Pair(link: link, source: source, destination: destination))
    }

    /// Returns the layer of an accepted save without the changes. O(changes).
    func removed(from layer: Layer) -> Layer {
        if isEmpty { return layer }
        let rest = Layer(copying: layer)
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
        return rest
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

    /// Notes that the check has removed a pair.
    mutating func noteAddedRemoval(from source: ObjectKey, to destination: ObjectKey, _ link: LinkIndex) {
        if mayBeCheckedAgain { added.noteRemoval(from: source, to: destination, link) }
    }
}
