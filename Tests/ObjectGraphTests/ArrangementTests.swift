import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Positions in ordered relationships: their bytes, and the smallest changes for another order.
@Suite struct ArrangementTests {
    @Test func `S046: bytes of positions compare like their numbers`() throws {
        var random = SeededGenerator()
        var lists: [[Int64]] = [[], [0], [-1], [63], [64], [-64], [-65], [.max], [.min], [0, 0], [255], [256], [-256], [-257]]
        for _ in 0..<2000 {
            lists.append(
                (0..<random.below(4)).map { _ in
                    Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64))
                })
        }
        let sorted = lists.sorted { $0.lexicographicallyPrecedes($1) }
        for (a, b) in zip(sorted, sorted.dropFirst()) where a != b {
            #expect(Position(numbers: a) < Position(numbers: b), "\(a) < \(b)")
            #expect(Position(numbers: a).value.order(Position(numbers: b).value) < 0, "sorts of a fetch agree")
        }
        for list in sorted { #expect(Position(numbers: list).numbers == list) }
    }

    @Test func `S046: the bytes of positions in files do not change`() {
        let golden: [([Int64], [UInt8])] = [
            ([], []), ([0], [0x80]), ([1, -1], [0x81, 0x7F]), ([63, 64], [0xBF, 0xC0, 0x40]), ([-64, -65], [0x40, 0x3F, 0xBF]),
            ([256, 70_000], [0xC1, 0x01, 0x00, 0xC2, 0x01, 0x11, 0x70]), ([-257], [0x3E, 0xFE, 0xFF]),
            ([.max], [0xC7, 0x7F] + Array(repeating: 0xFF, count: 7)), ([.min], [0x38, 0x80] + Array(repeating: 0, count: 7)),
        ]
        for (numbers, bytes) in golden { #expect(Array(Position(numbers: numbers).bytes) == bytes, "\(numbers)") }
    }

    @Test func `S046: bytes that no position has are no numbers`() {
        for bytes: [UInt8] in [
            [0x37], [0xC8], [0x00], [0xFF], [0xC0], [0xC0, 5], [0xC7, 0xFF, 0, 0, 0, 0, 0, 0, 0], [0x80, 0xC1, 1],
        ] {
            #expect(Position(bytes: .init(bytes)).numbers == nil, "\(bytes)")
        }
    }

    private func keys(_ members: [Arrangement.Member]) -> [ObjectKey] { Arrangement(members).keys }

    /// Returns the members after an arrangement, and the number of changed ones.
    private func arranged(
        _ members: [Arrangement.Member], _ order: [ObjectKey], placing new: Set<ObjectKey> = [],
        isUnknown: (ObjectKey) -> Bool = { _ in false }
    ) throws -> (members: [Arrangement.Member], changed: Int) {
        let changes = Arrangement(members).changes(for: order, placing: new, isUnknown: isUnknown)
        let positions = Dictionary(uniqueKeysWithValues: changes.map { ($0.key, $0.position) })
        let after = members.map { Arrangement.Member(key: $0.key, position: positions[$0.key] ?? $0.position) }
        try #require(keys(after) == order)
        for case let position? in changes.map(\.position) { #expect(position.bytes.count <= Position.maximumLength) }
        return (after, changes.count)
    }

    private func members(_ count: Int) throws -> [Arrangement.Member] {
        let keys = (0..<count).map { ObjectKey($0 + 100) }
        let fresh = Arrangement(keys.map { .init(key: $0, position: nil) })
        #expect(fresh.changes(for: keys).isEmpty, "members without positions are in the order of their keys")
        let reversed = try arranged(fresh.members, keys.reversed()).members
        return try arranged(reversed, keys).members
    }

    /// A new member, which is last until it gets its place.
    private func appended(_ key: ObjectKey, to list: [Arrangement.Member], continues: Bool = false) -> Arrangement.Member {
        let last = Arrangement(list).members.last?.position
        return .init(key: key, position: Position.between(last, nil, count: 1, key: key, continues: continues)?.first)
    }

    @Test func `S046: an order changes as few positions as possible`() throws {
        let list = try members(200)
        let keys = keys(list)
        for (from, to) in [(0, 199), (199, 0), (10, 11), (50, 20), (20, 50)] {
            var order = keys
            order.insert(order.remove(at: from), at: to)
            #expect(try arranged(list, order).changed == 1)
        }
        let block = Array(keys[150..<160])
        #expect(try arranged(list, block + keys.filter { !block.contains($0) }).changed == 10)
        #expect(try arranged(list, keys.reversed()).changed == 199)
    }

    @Test func `S046: any order can be reached from any other, with members that have no or equal or foreign positions`() throws {
        var random = SeededGenerator()
        for _ in 0..<300 {
            let count = 1 + random.below(30)
            var list: [Arrangement.Member] = (0..<count).map { number in
                let position: Position? =
                    switch random.below(5) {
                    case 0: nil
                    case 1: Position(numbers: [5])
                    case 2: Position(bytes: .init([UInt8(truncatingIfNeeded: random.next())]))
                    case 3: Position(numbers: [random.chance(50) ? .max : .min])
                    default: Position(numbers: [Int64(random.below(10)), Int64(random.below(3))])
                    }
                return .init(key: ObjectKey(number * 3 + 1), position: position)
            }
            for _ in 0..<5 { list = try arranged(list, list.map(\.key).shuffled(using: &random)).members }
        }
    }

    @Test(arguments: ["before the last insertion", "after it", "on alternating sides", "anywhere"])
    func `S046: repeated insertion at one place keeps positions short`(_ place: String) throws {
        var random = SeededGenerator()
        var list = try members(20)
        var (at, changed, rearranged) = (10, 0, 0)
        for number in 0..<300 {
            var order = keys(list)
            let key = ObjectKey(10_000 + number * 64)
            order.insert(key, at: at)
            let result = try arranged(list + [appended(key, to: list)], order, placing: [key])
            list = result.members
            changed += result.changed
            if result.changed > 1 { rearranged += 1 }
            switch place {
            case "before the last insertion": break
            case "after it": at += 1
            case "on alternating sides": at += number % 2
            default: at = random.below(order.count)
            }
        }
        #expect(list.compactMap { $0.position?.bytes.count }.max() ?? 99 <= Position.maximumLength)
        #expect(changed < 4 * 300, "\(changed) changes for 300 insertions, \(rearranged) with neighbors")
    }

    /// Inserts three objects, one after the other, as a context that knows its own positions only. Returns them.
    private func inserting(_ first: ObjectKey, at place: Int, into list: [Arrangement.Member]) throws -> [Arrangement.Member] {
        var own = list
        for number in 0..<3 {
            let key = first.advanced(by: number)
            var order = keys(own)
            order.insert(key, at: place + number)
            own = try arranged(own + [appended(key, to: own, continues: number > 0)], order, placing: [key]) {
                $0 >= first && $0 < key
            }.members
        }
        #expect(own.filter { $0.key < 1000 } == list, "the others keep their positions")
        return own.filter { $0.key >= 1000 }
    }

    @Test func `S107: objects that two contexts insert at one place do not alternate`() throws {
        let list = try members(4)
        for place in 0...4 {
            let (first, second) = (try inserting(1000, at: place, into: list), try inserting(2000, at: place, into: list))
            let merged = keys(list + first + second).filter { $0 >= 1000 }
            let together: [ObjectKey] = [1000, 1001, 1002, 2000, 2001, 2002]
            #expect(merged == together || merged == Array(together[3...] + together[..<3]), "\(place): \(merged)")
        }
    }
}
