import Datasets
import Figures
import Foundation
import ObjectGraph
import StoreInterface

/// The part of `storage` with values under keys: bytes of one size under texts, a hundred per prefix.
struct KeyedWorkload: Sendable {
    /// The size of the values.
    enum Size: Int, Sendable, CaseIterable {
        case small = 65
        case large = 400
    }

    /// The operations that the figures belong to.
    struct Operations: Sendable {
        let put, get, range, prefix, remove: StorageOperation

        init(_ size: Size) {
            switch size {
            case .small: (put, get, range, prefix, remove) = (.putSmall, .getSmall, .keyRangeSmall, .prefixSmall, .removeSmall)
            case .large: (put, get, range, prefix, remove) = (.putLarge, .getLarge, .keyRangeLarge, .prefixLarge, .removeLarge)
            }
        }
    }

    static let width = 100
    /// The name of the collection or table.
    static let name = "notes"

    let size: Size
    let operations: Operations
    /// The keys in ascending order.
    let keys: [String]
    let saveEvery: Int
    let durability: DurabilityKind
    /// The order in which the keys are put.
    let order: [Int]
    /// The keys that are read.
    let picks: [Int]
    /// The first keys of the ranges, and the prefixes.
    let starts: [Int]
    /// Every value is one of these, so that making values costs nothing while the clock runs.
    private let values: [Data]
    /// The sum of the first bytes of the values that are read.
    let pickedSum: Int
    let rangeSum: Int
    let prefixSum: Int
    /// The expected content of a file at the end.
    var left = Checksum()

    init(_ size: Size, keys count: Int, seed: UInt64, saveEvery: Int, durability: DurabilityKind) {
        let count = max(count / Self.width, 2) * Self.width
        self.size = size
        self.saveEvery = saveEvery
        self.durability = durability
        operations = Operations(size)
        var random = SeededNumbers(seed: seed &+ 3)
        let letters = Array("etaoin shrdlu,.0".utf8)
        values = (0..<1_009).map { _ in Data((0..<size.rawValue).map { _ in letters[random.below(letters.count)] }) }
        let values = values
        keys = (0..<count).map { Self.prefix($0 / Self.width) + (String($0 % Self.width + Self.width).dropFirst()) }
        order = (0..<count).shuffled(using: &random)
        picks = (0..<min(count, 100_000)).map { _ in random.below(count) }
        starts = (0..<min(1_000, count / 4)).map { _ in random.below(count - Self.width) }
        func first(_ row: Int) -> Int { Int(values[row % values.count][0]) }
        func hundred(from row: Int) -> Int { (row..<row + Self.width).reduce(0) { $0 + first($1) } }
        pickedSum = picks.reduce(0) { $0 + first($1) }
        rangeSum = starts.reduce(0) { $0 + hundred(from: $1) }
        prefixSum = starts.reduce(0) { $0 + hundred(from: $1 / Self.width * Self.width) }
        for row in 0..<count where row % 5 != 0 { left.add(row, column: 0, value: .data(value(row))) }
    }

    private static func prefix(_ group: Int) -> String { String(group + 10_000_000).dropFirst() + "/" }

    func value(_ row: Int) -> Data { values[row % values.count] }

    /// The prefix of a key.
    func prefix(of row: Int) -> String { Self.prefix(row / Self.width) }

    /// The number of a key, from 0; -1 for a key that was not put.
    static func row(of key: String) -> Int { Int(key.filter { $0 != "/" }) ?? -1 }

    /// The keys of each save of the puts.
    var putSaves: [ArraySlice<Int>] {
        stride(from: 0, to: order.count, by: saveEvery).map { order[$0..<min(order.count, $0 + saveEvery)] }
    }

    /// The keys of each save of the deletions.
    var removeSaves: [ArraySlice<Int>] {
        let all = Array(stride(from: 0, to: keys.count, by: 5))
        return stride(from: 0, to: all.count, by: saveEvery).map { all[$0..<min(all.count, $0 + saveEvery)] }
    }

    func check(_ engine: Engine, what: String, found: Int, expected: Int) throws {
        guard found == expected else {
            throw VerificationError(
                "storage, \(engine.rawValue), \(size.rawValue) bytes: \(what) gave \(found), expected \(expected)")
        }
    }

    func run(_ engine: Engine) async throws -> [StorageOperation: Double] {
        switch engine {
        case .sqliteRaw: try runSQLite()
        case .lmdbRaw: try runLMDB()
        case .strata: try await runStrata(.lmdb, engine)
        case .strataSQLite: try await runStrata(.sqlite, engine)
        case .strataMemory: try await runStrata(.memory, engine)
        }
    }

    // MARK: Through collections

    private func runStrata(_ store: StoreKind, _ engine: Engine) async throws -> [StorageOperation: Double] {
        try await RunFolder().run(.siblings(store), model: try Self.model()) { container in
            try await work(container, engine)
        } check: { container, _ in
            try await check(container, engine)
        }
    }

    /// A collection needs no entity, but a container of the benchmarks is opened with a model.
    private static func model() throws -> Model {
        try Model([
            EntityDescription(name: "Unused", properties: [.attribute(AttributeDescription(name: "number", type: .int64))])
        ])
    }

    private func work(_ container: PersistentContainer, _ engine: Engine) async throws -> [StorageOperation: Double] {
        let writer = await container.newBackgroundContext(name: "writer")
        var costs: [StorageOperation: Double] = [:]
        costs[operations.put] = try await writing(container, count: keys.count) {
            for rows in putSaves {
                try await writer.perform { context in
                    let collection = try context.collection(Self.name, of: Data.self)
                    for row in rows { try collection.setValue(value(row), forKey: keys[row]) }
                }
                try await writer.save(durability.durability)
            }
        }
        let reader = await container.newBackgroundContext(name: "reader")
        costs.merge(try await reader.perform { try read($0, engine) }) { _, new in new }
        let removeSaves = removeSaves
        costs[operations.remove] = try await writing(container, count: keys.count / 5) {
            for rows in removeSaves {
                try await writer.perform { context in
                    let collection = try context.collection(Self.name, of: Data.self)
                    for row in rows { try collection.removeValue(forKey: keys[row]) }
                }
                try await writer.save(durability.durability)
            }
        }
        return costs
    }

    private func writing(_ container: PersistentContainer, count: Int, _ body: () async throws -> Void) async throws -> Double {
        let start = Clock.now()
        try await body()
        if durability == .deferred { try await container.flush() }
        return Double(Clock.now() - start) / Double(count)
    }

    private func read(_ context: ManagedObjectContext, _ engine: Engine) throws -> [StorageOperation: Double] {
        let collection = try context.collection(Self.name, of: Data.self)
        var costs: [StorageOperation: Double] = [:]
        var sum = 0
        costs[operations.get] = try cost(picks.count) {
            for row in picks { sum += try collection.withBytes(forKey: keys[row]) { Int($0[0]) } ?? 0 }
        }
        try check(engine, what: "random keys", found: sum, expected: pickedSum)
        sum = 0
        costs[operations.range] = try cost(starts.count * Self.width) {
            for start in starts {
                try collection[keys[start]..<keys[start + Self.width]].forEach { sum += Int($1[0]) }
            }
        }
        try check(engine, what: "ranges", found: sum, expected: rangeSum)
        sum = 0
        costs[operations.prefix] = try cost(starts.count * Self.width) {
            for start in starts {
                try collection.range(withPrefix: prefix(of: start)).forEach { sum += Int($1[0]) }
            }
        }
        try check(engine, what: "prefixes", found: sum, expected: prefixSum)
        return costs
    }

    private func check(_ container: PersistentContainer, _ engine: Engine) async throws {
        try await container.newBackgroundContext(name: "check").perform { context throws -> Void in
            var found = Checksum()
            try context.collection(Self.name, of: Data.self).all.forEach { key, value in
                found.add(Self.row(of: key), column: 0, value: .data(value))
            }
            try found.check("storage, \(engine.rawValue): values of \(size.rawValue) bytes after deleting", left)
        }
    }
}
