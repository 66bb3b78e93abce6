import Foundation
import TestSupport

/// The objects of one writer after a number of its saves. Each save follows from the seed and the saves before it, so the state
/// after any number of saves can be computed again.
struct Library: Equatable {
    struct Item: Equatable {
        var text: String
        var payload: Data?
        var group: Int?
        var tags: Set<Int> = []
    }

    /// The changes of one save.
    struct Step {
        var inserted: [(number: Int, item: Item)] = []
        var updated: [(number: Int, item: Item)] = []
        var deleted: [Int] = []
        /// Whether the script saves durably here. `isFlushed` is whether a flush follows the save.
        var isDurable = false
        var isFlushed = false
    }

    static let groups = 4

    let seed: UInt64
    let writer: Int
    /// The largest number of bytes of a payload.
    let largestPayload: Int
    private(set) var saves = 0
    private(set) var items: [Int: Item] = [:]
    private var next = 0

    init(seed: UInt64, writer: Int, largestPayload: Int) {
        self.seed = seed
        self.writer = writer
        self.largestPayload = largestPayload
    }

    /// Creates the state after `saves` saves.
    init(like other: Library, after saves: Int) {
        self.init(seed: other.seed, writer: other.writer, largestPayload: other.largestPayload)
        for _ in 0..<saves { _ = advance() }
    }

    /// Returns the number of an item or a group, unique over all writers.
    func global(_ number: Int) -> Int { writer * 1_000_000 + number }

    /// Computes the next save.
    mutating func advance() -> Step {
        var random = SeededGenerator(seed: seed &+ UInt64(writer) << 40 &+ UInt64(saves) &* 7919)
        var step = Step()
        step.isDurable = Int.random(in: 0..<3, using: &random) == 0
        step.isFlushed = Int.random(in: 0..<8, using: &random) == 0
        let known = items.keys.sorted()
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            step.inserted.append((next, item(&random)))
            next += 1
        }
        var changed: Set<Int> = []
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            guard let number = known.randomElement(using: &random), changed.insert(number).inserted else { continue }
            step.updated.append((number, item(&random)))
        }
        // Deletes as many as are inserted, once there are some.
        for _ in 0..<(known.count > 60 ? 4 : Int.random(in: 0...1, using: &random)) {
            guard let number = known.randomElement(using: &random), changed.insert(number).inserted else { continue }
            step.deleted.append(number)
        }
        for (number, item) in step.inserted + step.updated { items[number] = item }
        for number in step.deleted { items[number] = nil }
        saves += 1
        return step
    }

    private func item(_ random: inout SeededGenerator) -> Item {
        let text = String(repeating: "text \(random.next() % 1000) ", count: Int.random(in: 0...3, using: &random))
        var item = Item(text: text)
        if Int.random(in: 0..<3, using: &random) == 0 {
            // Mostly small. Sizes of each order of magnitude up to the largest occur.
            let limit = max(1, largestPayload >> Int.random(in: 0...6, using: &random))
            let count = Int.random(in: 0...limit, using: &random)
            var word = random.next()
            var bytes = Data(capacity: count + 8)
            while bytes.count < count {
                withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) }
                // Every other word repeats, so that some values can be compressed.
                word = word & 1 == 0 ? word &* 6_364_136_223_846_793_005 &+ 1 : word &+ 1
            }
            item.payload = bytes.prefix(count)
        }
        item.group = (0..<Self.groups + 1).randomElement(using: &random).flatMap { $0 < Self.groups ? $0 : nil }
        for tag in 0..<Self.groups where Int.random(in: 0..<4, using: &random) == 0 { item.tags.insert(tag) }
        return item
    }
}
