import Foundation
import LMDBStore
import StoreInterface

// From which size on should a string or data be stored out of line? Compares a store that has all values in pages with one that
// has all values out of line, by size of the value. Updates change a number of the same object. Commits are durable, and
// figures are medians of five.

let schema = StoreSchema(entities: [
    EntitySchema(
        name: "Note",
        columns: [
            ColumnSchema(name: "plays", type: .int64), ColumnSchema(name: "title", type: .string),
            ColumnSchema(name: "body", type: .data),
        ])
])
/// The same numbers in every run.
@MainActor enum Numbers {
    static var state: UInt64 = 88

    static func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}

enum Content: String, CaseIterable { case words, noise }

let words = (0..<2000).map { _ in
    String((0..<(2 + Numbers.next() % 8)).map { _ in Character(UnicodeScalar(UInt8(97 + Numbers.next() % 26))) })
}

@MainActor func body(_ count: Int, _ content: Content) -> Data {
    switch content {
    case .noise: return Data((0..<count).map { _ in UInt8(truncatingIfNeeded: Numbers.next()) })
    case .words:
        var text = ""
        while text.utf8.count < count { text += words[Int(Numbers.next() % 2000)] + " " }
        return Data(text.utf8.prefix(count))
    }
}

func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }

func microseconds(_ work: () throws -> Void) rethrows -> Double {
    let time = try ContinuousClock().measure(work)
    return Double(time.components.attoseconds) / 1e12 + Double(time.components.seconds) * 1e6
}

func save(_ store: LMDBStore, _ fill: (borrowing LayerBuilder) -> Void) throws {
    try store.write(.durable) { transaction in
        let changes = LayerBuilder(schema: schema)
        fill(changes)
        let layer = changes.finish(as: transaction.generation.next)
        try transaction.apply(layer, changes: layer.changeSet())
    }
}

struct Result {
    var update = 0.0
    var read = 0.0
    var scan = 0.0
    var fileBytes = 0.0
}

@MainActor func run(_ size: Int, _ content: Content, limit: Int) throws -> Result {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent(
        "value-sizes-\(ProcessInfo.processInfo.processIdentifier).lmdb")
    func clean() { for end in ["", "-lock", "-signal"] { try? FileManager.default.removeItem(atPath: url.path + end) } }
    clean()
    defer { clean() }
    var options = LMDBStore.Options()
    options.largestValueInPage = limit
    let store = try LMDBStore.open(url, schema: schema, options: options)
    let count = max(512, min(16_384, (24 << 20) / size / 64 * 64))
    Numbers.state = UInt64(size)
    for first in stride(from: 0, to: count, by: 512) {
        try save(store) { changes in
            for number in first..<min(first + 512, count) {
                changes.insert(
                    [.int(Int64(number)), .string("Title of note \(number)"), .data(body(size, content))], entity: 0,
                    key: ObjectKey(rawValue: UInt64(64 + number)))
            }
        }
    }
    var result = Result()
    result.fileBytes = Double(try store.fileBytes()) / Double(count)
    result.update = median(
        try (0..<5).map { round in
            try microseconds {
                for _ in 0..<20 {
                    try save(store) { changes in
                        for _ in 0..<4 {
                            let key = ObjectKey(rawValue: 64 + Numbers.next() % UInt64(count))
                            changes.update([0: .int(Int64(round))], entity: 0, key: key)
                        }
                    }
                }
            } / 20
        })
    let snapshot = try store.snapshot()
    var sink = 0
    result.read = median(
        try (0..<5).map { _ in
            try microseconds {
                for _ in 0..<1000 {
                    let key = ObjectKey(rawValue: 64 + Numbers.next() % UInt64(count))
                    if case .data(let data)? = try snapshot.value(0, key: key, column: 2) { sink &+= data.count }
                }
            } / 1000
        })
    let query = StoreQuery(entity: 0, predicate: .compare(0, .greater, to: .int(3)))
    result.scan = median(try (0..<5).map { _ in try microseconds { sink &+= try snapshot.count(query) } / Double(count) * 1000 })
    return result
}

func text(_ number: Double) -> String { String((number * 10).rounded() / 10) }

print("In pages / outside.")
print("| value | bytes | update µs | read of the value µs | scan of 1,000 numbers µs | file bytes per object |")
print("| --- | --- | --- | --- | --- | --- |")
for content in Content.allCases {
    for size in [64, 128, 256, 512, 768, 1024, 2048, 4096, 16_384, 65_536] {
        let inside = try run(size, content, limit: .max)
        let outside = try run(size, content, limit: 32)
        let pairs: [KeyPath<Result, Double>] = [\.update, \.read, \.scan, \.fileBytes]
        let cells = pairs.map { "\(text(inside[keyPath: $0])) / \(text(outside[keyPath: $0]))" }
        print("| \(content.rawValue) | \(size) | \(cells.joined(separator: " | ")) |")
    }
}
