import StoreInterface
import StoreModel

/// Reading ordered many-to-many relationships.
extension LayeredView {
    /// An ordered many-to-many relationship of one object: its members with their positions, and the objects that have the positions.
    struct OrderedPairs {
        let arrangement: Arrangement
        /// The object of the hidden entity that has the position of each member.
        let places: [ObjectKey: ObjectKey]
    }

    /// Reads the positions of the pairs of an object. O(n log n) for n members.
    ///
    /// - Parameters:
    ///   - keys: The members, ascending.
    ///   - order: The hidden entity with the positions.
    func orderedPairs(of owner: ObjectKey, members keys: [ObjectKey], _ order: EntityIndex) throws -> OrderedPairs {
        var places: [ObjectKey: ObjectKey] = [:]
        let found = try related(.referrers(entity: order, column: OrderEntity.owner), to: owner)
        let members = try values(of: found, order, OrderEntity.member)
        let positions = try values(of: found, order, OrderEntity.position)
        var known: [ObjectKey: Position] = [:]
        for (place, (member, position)) in zip(found, zip(members, positions)) {
            // Two contexts that made the same pair made two positions. The first one is valid, in every context.
            guard let member = member.referenceKey, places[member] == nil else { continue }
            places[member] = place
            known[member] = Position(position)
        }
        return OrderedPairs(arrangement: Arrangement(keys.map { .init(key: $0, position: known[$0]) }), places: places)
    }

    /// Returns the objects of a hidden entity that have the positions of an object's pairs, by member. O(positions).
    ///
    /// - Parameter others: Objects of the hidden entity that do not count.
    func places(
        of owner: ObjectKey, _ order: EntityIndex, without others: Set<ObjectKey>
    ) throws -> [ObjectKey: ObjectKey] {
        let found = try related(.referrers(entity: order, column: OrderEntity.owner), to: owner).filter { !others.contains($0) }
        let members = try values(of: found, order, OrderEntity.member)
        var places: [ObjectKey: ObjectKey] = [:]
        for (place, member) in zip(found, members) {
            // Only the first position of a pair is valid.
            guard let member = member.referenceKey, places[member] == nil else { continue }
            places[member] = place
        }
        return places
    }

    /// Reads a column of objects that exist, with one read of the base per page.
    ///
    /// - Parameter keys: The keys, ascending.
    func values(of keys: [ObjectKey], _ entity: EntityIndex, _ column: ColumnIndex) throws -> [Value] {
        let isTouched = touches(entity: entity)
        var last: (number: PageNumber, page: (any StorePage)?)?
        return try keys.map { key in
            let (number, slot) = (key.page, key.slot)
            switch isTouched ? try lookup(entity, page: number, slot: slot, column) : .below {
            case .row(let row): return row[column]
            case .deleted: return .null
            case .below:
                if last?.number != number { last = (number, try base.page(entity, number)) }
                return try last?.page?.presentValue(slot, column) ?? .null
            }
        }
    }
}
