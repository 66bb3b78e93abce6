import ObjectGraph
import StoreInterface
import StoreModel

extension TableReference {
    /// Returns the value of the column with the positions of rows in the lists of the rows that they refer to; null for a row that is in no
    /// list.
    public func position(ofRow row: Int) -> Value {
        guard let ranks, rows[row] != Self.nobody else { return .null }
        return .position(inNewList: Int(ranks[row]))
    }
}

/// The order of a many-to-many relationship as a store keeps it: one object of a hidden entity per pair.
public struct LinkOrder: Sendable {
    /// The hidden entity, in the schema of the model.
    public let entity: EntityIndex
    private let pairs: [Link.Pair]
    private let ranks: [Int32]
    private let isInverse: Bool

    fileprivate init?(_ link: Link, isInverse: Bool, in model: Model) {
        let owner = isInverse ? link.destination : link.source
        let relationship = model.entities[owner].relationship(named: isInverse ? link.inverse : link.name)
        guard let ranks = isInverse ? link.inverseRanks : link.ranks, let entity = relationship?.order else { return nil }
        self.entity = entity
        pairs = link.pairs
        self.ranks = ranks
        self.isInverse = isInverse
    }

    /// The number of pairs.
    public var count: Int { pairs.count }

    /// Returns a pair as the row that has the list, the row in the list, and the value of the column with its position.
    public subscript(_ number: Int) -> (owner: Int32, member: Int32, position: Value) {
        let pair = pairs[number]
        let position = Value.position(inNewList: Int(ranks[number]))
        return isInverse ? (pair.destination, pair.source, position) : (pair.source, pair.destination, position)
    }
}

extension Dataset {
    /// Returns the orders of the many-to-many relationships, in the order of their hidden entities.
    /// - Parameter model: The model of the data, from ``model()``.
    public func linkOrders(in model: Model) -> [LinkOrder] {
        links.flatMap { link in [false, true].compactMap { LinkOrder(link, isInverse: $0, in: model) } }
            .sorted { $0.entity < $1.entity }
    }
}

/// The numbers of members in their lists, from positions of any size.
enum ListRanks {
    /// A position that a file has, which sorts like the value.
    private struct Key {
        var number: Double
        /// Tells large integers apart.
        var exact: Int64

        init(_ value: Value) {
            switch value {
            case .int(let number): (self.number, exact) = (Double(number), number)
            case .double(let number): (self.number, exact) = (number, 0)
            // As in SQLite's order, members without a position come first.
            default: (number, exact) = (-.infinity, .min)
            }
        }
    }

    /// Returns for each member its number in the list of its owner, from 0: in the order of the positions, and of the members if positions
    /// are equal or missing. O(n log n).
    ///
    /// - Parameters:
    ///   - owners: The row that has the list, per member.
    ///   - members: The row of the member.
    ///   - positions: The positions; nil if the file has none.
    static func ranks(owners: [Int32], members: [Int32], positions: [Value]?) -> [Int32] {
        let keys = owners.indices.map { Key(positions?[$0] ?? .null) }
        let sorted = owners.indices.sorted { a, b in
            (owners[a], keys[a].number, keys[a].exact, members[a]) < (owners[b], keys[b].number, keys[b].exact, members[b])
        }
        var ranks = Array(repeating: Int32(0), count: owners.count)
        for (before, member) in zip(sorted, sorted.dropFirst()) where owners[before] == owners[member] {
            ranks[member] = ranks[before] + 1
        }
        return ranks
    }
}
