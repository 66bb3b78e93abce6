import AsyncHTTPClient
import Foundation
import StockClient
import StockServer

/// The requests of a load test.
struct Workload: Sendable {
    enum Operation: String, CaseIterable, Sendable {
        case read, list, add
    }

    /// An answered request.
    struct Sample: Sendable {
        var operation: Operation
        var nanoseconds: UInt64
    }

    /// The work of one client: its samples, and the pieces that it has added to each item.
    struct Outcome: Sendable {
        var samples: [Sample] = []
        var added: [Int: Int] = [:]
        /// The answers 503, after which the client sent the request again.
        var repeated = 0
    }

    struct UnexpectedAnswer: Error, CustomStringConvertible {
        let description: String
    }

    let client: StockClient
    let items: Int
    let requests: Int

    static func sku(_ item: Int) -> String { "item-\(10_000 + item)" }

    func createItems() async throws {
        for item in 0..<items {
            let body = #"{"sku": "\#(Self.sku(item))", "title": "Item \#(item)"}"#
            let answer = try await client.send(.POST, "/items", json: body)
            guard answer.status == 201 else {
                throw UnexpectedAnswer(description: "creating an item was answered with \(answer.status)")
            }
        }
    }

    /// Sends the requests of one client, one after another: 60 of 100 read an item, 10 list a page, 30 add pieces. A third of the
    /// additions go to the first item, so that clients conflict.
    func run(seed: UInt64) async throws -> Outcome {
        var generator = SplitMix(state: seed)
        var outcome = Outcome()
        for _ in 0..<requests {
            let choice = Int.random(in: 0..<100, using: &generator)
            let item = choice >= 90 ? 0 : Int.random(in: 0..<items, using: &generator)
            let operation: Operation = choice < 60 ? .read : choice < 70 ? .list : .add
            let count = Int.random(in: 1...9, using: &generator)
            let start = ContinuousClock.now
            switch operation {
            case .read: try await expect(client.send(.GET, "/items/\(Self.sku(item))"))
            case .list: try await expect(client.send(.GET, "/items?limit=20&after=\(Self.sku(item))"))
            case .add:
                outcome.repeated += try await add(count, to: item)
                outcome.added[item, default: 0] += count
            }
            let (seconds, attoseconds) = (ContinuousClock.now - start).components
            outcome.samples.append(
                Sample(operation: operation, nanoseconds: UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)))
        }
        return outcome
    }

    /// Adds pieces, and returns how often the server was too busy before.
    private func add(_ count: Int, to item: Int) async throws -> Int {
        var repeated = 0
        while true {
            let answer = try await client.send(.POST, "/items/\(Self.sku(item))/add", json: #"{"count": \#(count)}"#)
            if answer.status != 503 {
                try expect(answer)
                return repeated
            }
            repeated += 1
        }
    }

    private func expect(_ answer: StockClient.Answer) throws {
        guard answer.status == 200 else {
            throw UnexpectedAnswer(description: "a request was answered with \(answer.status): \(String(buffer: answer.body))")
        }
    }

    /// Returns the number of pieces of every item.
    func quantities() async throws -> [Int] {
        let page = try await client.send(.GET, "/items?limit=500").decode(ItemPage.self)
        return page.items.map(\.quantity)
    }
}

/// A random generator whose sequence depends only on its seed (splitmix64).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
