import StoreInterface
import StoreModel

/// The members of an ordered relationship with their positions, and the smallest change that gives them another order.
struct Arrangement {
    struct Member: Equatable {
        var key: ObjectKey
        /// Nil for a member from before the relationship was ordered, and for one that a program wrote without a position.
        var position: Position?

        static func precedes(_ a: Member, _ b: Member) -> Bool {
            switch (a.position, b.position) {
            case (let x?, let y?): x == y ? a.key < b.key : x < y
            case (nil, nil): a.key < b.key
            case (nil, _?): true
            case (_?, nil): false
            }
        }
    }

    /// The members in their order.
    let members: [Member]

    /// Sorts members, unless they are in their order already. O(n log n).
    init(_ members: [Member]) {
        let isSorted = zip(members, members.dropFirst()).allSatisfy { Member.precedes($0, $1) }
        self.members = isSorted ? members : members.sorted(by: Member.precedes)
    }

    var keys: [ObjectKey] { members.map(\.key) }

    /// Returns the members that need new positions for another order, with these positions.
    ///
    /// As many members as possible keep theirs: moving one member of a long list changes one. If there is no room between two members, some
    /// neighbors get new positions too. O(n), and O(m log m) for the `m` members between the first and the last that differ.
    /// - Parameters:
    ///   - order: The keys of all members, each once.
    ///   - new: The members that are new in the list, which get other positions rather than their neighbors.
    ///   - isUnknown: Returns whether no other context knows the position of a member.
    func changes(
        for order: [ObjectKey], placing new: Set<ObjectKey> = [], isUnknown: (ObjectKey) -> Bool = { _ in false }
    ) -> [Member] {
        precondition(order.count == members.count, "an order lists each member once")
        var start = 0
        while start < order.count, order[start] == members[start].key { start += 1 }
        guard start < order.count else { return [] }
        var end = order.count
        while order[end - 1] == members[end - 1].key { end -= 1 }
        var numbers: [ObjectKey: Int] = [:]
        for number in start..<end { numbers[members[number].key] = number }
        let places = order[start..<end].map { numbers[$0] ?? 0 }
        var keeps = Array(repeating: true, count: order.count)
        for number in start..<end { keeps[number] = false }
        let old = new.isEmpty ? Array(places.indices) : places.indices.filter { !new.contains(order[start + $0]) }
        for index in Self.longestAscent(of: old.map { places[$0] }) { keeps[start + old[index]] = true }
        var arranged = order.indices.map { number in
            number < start || number >= end ? members[number] : members[places[number - start]]
        }
        Self.fill(&arranged, keeps: keeps, isUnknown)
        return arranged.enumerated().compactMap { number, member in
            members[numbers[member.key] ?? number] == member ? nil : member
        }
    }

    /// Returns the members that need new positions for the order of a list, with these positions.
    ///
    /// - Parameters:
    ///   - wanted: The list. Members that are not in it come last, and keys in it that are no members have no effect.
    ///   - old: The keys of the members before objects were added; nil if none were.
    ///   - isUnknown: Returns whether no other context knows the position of a member.
    func changes(as wanted: [ObjectKey], old: Set<ObjectKey>?, isUnknown: (ObjectKey) -> Bool) -> [Member] {
        var left = Set(keys)
        var order = wanted.filter { left.remove($0) != nil }
        if !left.isEmpty { order += keys.filter(left.contains) }
        return changes(for: order, placing: old.map { Set(order).subtracting($0) } ?? [], isUnknown: isUnknown)
    }

    /// Gives positions to the members that do not keep theirs.
    private static func fill(_ members: inout [Member], keeps: [Bool], _ isUnknown: (ObjectKey) -> Bool) {
        var next = 0
        while let first = keeps[next...].firstIndex(of: false) {
            var (start, end) = (first, keeps[first...].firstIndex(of: true) ?? members.count)
            var reach = 0
            while true {
                let limit = reach == 0 ? Position.maximumLength : Position.maximumLength / 2
                if let positions = positions(start..<end, in: members, isUnknown: isUnknown, limit: limit) {
                    for (number, position) in zip(start..<end, positions) { members[number].position = position }
                    break
                }
                // There is no room: the neighbors get new positions too, more with each attempt.
                reach = max(4, 2 * reach)
                start = max(0, start - reach)
                end = min(members.count, end + reach)
                end = keeps[end...].firstIndex(of: true) ?? members.count
            }
            next = end
        }
    }

    private static func positions(
        _ range: Range<Int>, in members: [Member], isUnknown: (ObjectKey) -> Bool, limit: Int
    ) -> [Position]? {
        let lower = range.lowerBound > 0 ? members[range.lowerBound - 1] : nil
        var upper: Position?
        if range.upperBound < members.count {
            // Nothing precedes a member without a position, except for others without one.
            guard let position = members[range.upperBound].position else { return nil }
            upper = position
        }
        return Position.between(
            lower?.position, upper, count: range.count, key: members[range.lowerBound].key,
            continues: lower.map { $0.position != nil && isUnknown($0.key) } ?? false,
            limit: limit)
    }

    /// Returns the indices of a longest ascending subsequence of distinct numbers. O(n log n).
    private static func longestAscent(of numbers: [Int]) -> [Int] {
        /// The index of the smallest last number of an ascent, by its length - 1.
        var ends: [Int] = []
        var before = Array(repeating: -1, count: numbers.count)
        for (index, number) in numbers.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            if low > 0 { before[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var ascent: [Int] = []
        var index = ends.last ?? -1
        while index >= 0 {
            ascent.append(index)
            index = before[index]
        }
        return ascent.reversed()
    }
}
