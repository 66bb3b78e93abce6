import StoreInterface
import StoreModel

/// Reading ordered relationships.
extension LayeredView {
    /// Returns the keys of a to-many relationship's members in the order in which the relationship is read: of their positions if the
    /// relationship is ordered, else of the keys.
    func members(of relationship: Relationship, _ key: ObjectKey) throws -> [ObjectKey] {
        guard case .toMany(let relation) = relationship.kind else { return [] }
        let keys = try related(relation, to: key)
        if let order = relationship.order, keys.count > 1 {
            return try orderedPairs(of: key, members: keys, order).arrangement.keys
        }
        guard let column = relationship.position, keys.count > 1 else { return keys }
        return try arrangement(of: keys, relation.entity, column).keys
    }

    /// Returns the members of the list of a reference's destination, with their positions.
    func arrangement(of reference: OrderedReference, _ entity: EntityIndex, to owner: ObjectKey) throws -> Arrangement {
        let keys = try related(.referrers(entity: entity, column: reference.column), to: owner)
        return try arrangement(of: keys, entity, reference.position)
    }

    /// Reads the positions of objects. O(n log n), with one read of the base per page.
    ///
    /// - Parameter keys: The keys, ascending.
    func arrangement(of keys: [ObjectKey], _ entity: EntityIndex, _ column: ColumnIndex) throws -> Arrangement {
        Arrangement(zip(keys, try values(of: keys, entity, column)).map { .init(key: $0, position: Position($1)) })
    }
}

/// A to-one relationship whose inverse is ordered: its column, and the column of the positions.
struct OrderedReference: Sendable, Hashable {
    /// The reference to the object that has the list.
    var column: ColumnIndex
    /// The position in the list.
    var position: ColumnIndex
}

/// The ends of ordered relationships, so that appending to a list reads the list only once.
struct ListEnds {
    private struct List: Hashable {
        var entity: EntityIndex
        var column: ColumnIndex
        var owner: ObjectKey
    }

    private struct End {
        /// No member has a later position. Nil if no member has a position.
        var position: Position?
        /// Whether the position was made here, so that no other context knows it.
        var isNew: Bool
    }

    private var known: [List: End] = [:]
    /// The state of the context in which the ends were read.
    private var revision: UInt64 = 0

    /// Returns the position after the last member of a list, for an object that is not in the list yet.
    ///
    /// O(members) for the first object of a list, then O(1) until `revision` changes or ``removeAll()`` is called.
    mutating func append(
        _ key: ObjectKey, of entity: EntityIndex, to owner: ObjectKey, _ reference: OrderedReference, in view: LayeredView,
        revision: UInt64 = 0
    ) throws -> Position {
        if revision != self.revision { known = [:] }
        self.revision = revision
        let list = List(entity: entity, column: reference.column, owner: owner)
        let end: End
        // Other contexts may change a state that is not fixed.
        if let last = known[list], view.base.isFixed {
            end = last
        } else {
            end = End(position: try view.arrangement(of: reference, entity, to: owner).members.last?.position, isNew: false)
        }
        let made = Position.between(end.position, nil, count: 1, key: key, continues: end.isNew)?.first
        // Only bytes that no context has written leave no room after them.
        let position = made ?? end.position ?? Position(numbers: [0])
        known[list] = End(position: position, isNew: true)
        return position
    }

    /// Keeps what was read after a step that showed no changes of other contexts, such as a save. Other contexts may know all positions now.
    mutating func keep(from earlier: UInt64, in revision: UInt64) {
        guard !known.isEmpty, self.revision == earlier else { return }
        self.revision = revision
        for list in known.keys { known[list]?.isNew = false }
    }

    /// Forgets what was read, because members may have come back.
    mutating func removeAll() { known = [:] }
}

extension Entity {
    /// Gives a changed row of a batch the last position in each list that its references lead to, unless the object is in that list.
    ///
    /// - Parameter earlier: The earlier change of the same object in the batch.
    func appendToLists(
        _ row: Row, key: ObjectKey, after earlier: Row? = nil, over view: LayeredView, ends: inout ListEnds
    ) throws {
        for reference in orderedReferences where row.isSet(reference.column) {
            guard let owner = row[reference.column].referenceKey else { continue }
            var before =
                try row.kind == .insert && earlier == nil
                ? nil : view.value(number, key: key, column: reference.column)?.referenceKey
            if let earlier, earlier.isSet(reference.column) { before = earlier[reference.column].referenceKey }
            if before == owner { continue }
            row[reference.position] = try ends.append(key, of: number, to: owner, reference, in: view).value
        }
    }
}
