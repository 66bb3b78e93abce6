import StockClient
import Strata
import Testing

@testable import StockServer

/// Requests that change the same objects at the same time.
@Suite(.timeLimit(.minutes(10))) struct ParallelRequestTests {
    static let combinations = StoreKind.allCases.flatMap { kind in [Durability.durable, .deferred].map { (kind, $0) } }

    /// Runs a closure in several tasks, several times in each, and returns all results.
    private func inParallel<R: Sendable>(
        tasks: Int = 8, rounds: Int = 1, _ body: @escaping @Sendable (Int) async throws -> R
    ) async throws -> [R] {
        try await withThrowingTaskGroup(of: [R].self) { group in
            for task in 0..<tasks {
                group.addTask {
                    var results: [R] = []
                    for _ in 0..<rounds { results.append(try await body(task)) }
                    return results
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test(arguments: combinations)
    func `S100: parallel additions to one item lose no piece`(_ kind: StoreKind, _ durability: Durability) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.durability = durability }) { server in
            try await server.create("nail")
            let statuses = try await inParallel(rounds: 25) { try await server.add($0 + 1, to: "nail") }
            #expect(statuses.allSatisfy { $0 == 200 })
            let item = try await server.item("nail")
            #expect(item.quantity == 25 * (1...8).reduce(0, +) && item.revision == 1 + 200)
        }
    }

    @Test(arguments: combinations)
    func `S100: without retries, additions are made or refused`(_ kind: StoreKind, _ durability: Durability) async throws {
        let settings = StockServer.Settings.with { ($0.durability, $0.retries) = (durability, 0) }
        try await RunningServer.run(on: StoreFolder(kind), settings) { server in
            try await server.create("nail")
            let statuses = try await inParallel(rounds: 25) { _ in try await server.add(1, to: "nail") }
            #expect(Set(statuses).isSubset(of: [200, 503]))
            #expect(try await server.item("nail").quantity == statuses.count { $0 == 200 })
        }
    }

    @Test(arguments: combinations)
    func `S100: one of several changes of the same revision is made`(_ kind: StoreKind, _ durability: Durability) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.durability = durability }) { server in
            try await server.create("nail")
            let statuses = try await inParallel { task in
                try await server.client.send(
                    .PUT, "/items/nail", json: #"{"title": "\#(task)", "quantity": \#(task)}"#, headers: ["if-match": #""1""#]
                ).status
            }
            #expect(statuses.sorted() == [200] + Array(repeating: 412, count: 7))
            #expect(try await server.item("nail").revision == 2)
        }
    }

    @Test(arguments: combinations)
    func `S108: one of several items with one SKU is created`(_ kind: StoreKind, _ durability: Durability) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.durability = durability }) { server in
            let statuses = try await inParallel { task in
                try await server.client.send(.POST, "/items", json: #"{"sku": "nail", "title": "\#(task)"}"#).status
            }
            #expect(statuses.sorted() == [201] + Array(repeating: 409, count: 7))
            #expect(try await server.client.send(.GET, "/items").decode(ItemPage.self).items.count == 1)
        }
    }

    @Test(arguments: combinations)
    func `S051: a shelf is deleted or gets an item, never both`(_ kind: StoreKind, _ durability: Durability) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.durability = durability }) { server in
            for round in 0..<10 {
                _ = try await server.client.send(.POST, "/shelves", json: #"{"name": "A\#(round)"}"#)
                async let deletion = server.client.send(.DELETE, "/shelves/A\(round)").status
                async let creation = server.client.send(
                    .POST, "/items", json: #"{"sku": "n\#(round)", "title": "Nail", "shelf": "A\#(round)"}"#
                ).status
                let (deleted, created) = try await (deletion, creation)
                #expect((deleted == 204) != (created == 201), "round \(round): \(deleted), \(created)")
                #expect([204, 409].contains(deleted) && [201, 409, 422].contains(created))
            }
            let items = try await server.client.send(.GET, "/items").decode(ItemPage.self).items
            #expect(items.allSatisfy { $0.shelf != nil })
        }
    }
}
