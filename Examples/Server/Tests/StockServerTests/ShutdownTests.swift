import StockClient
import Strata
import Synchronization
import Testing

@testable import StockServer

/// The end of a server, on each store that has a file.
@Suite(.timeLimit(.minutes(10))) struct ShutdownTests {
    static let combinations = StoreKind.files.flatMap { kind in
        [Durability.durable, .deferred(within: .seconds(3_600))].map { (kind, $0) }
    }

    private final class Counter: Sendable {
        let count = Atomic<Int>(0)
    }

    private func storedQuantity(_ sku: String, in folder: StoreFolder) async throws -> Int? {
        let container = try await folder.open()
        let quantity = try await container.read { try $0.find(unique: \Item.sku, sku)?.quantity }
        try await container.close()
        return quantity
    }

    @Test(arguments: combinations)
    func `S066: every answered request is in the file after a shutdown`(_ kind: StoreKind, _ durability: Durability) async throws
    {
        let folder = try StoreFolder(kind)
        let (answered, failed) = (Counter(), Counter())
        let container = try await RunningServer.run(on: folder, .with { $0.durability = durability }) { server in
            try await server.create("nail")
            await withTaskGroup { group in
                for _ in 0..<4 {
                    group.addTask {
                        // Until the server accepts no more requests.
                        while true {
                            guard (try? await server.add(1, to: "nail")) == 200 else {
                                failed.count.add(1, ordering: .relaxed)
                                return
                            }
                            if answered.count.add(1, ordering: .relaxed).newValue == 50 {
                                await server.service.triggerGracefulShutdown()
                            }
                        }
                    }
                }
            }
            return server.container
        }
        // The first container exists still, so that only the server can have closed the store.
        let error = await #expect(throws: StoreError.self) { try await container.read { try $0.count(FetchRequest<Item>()) } }
        #expect(error?.code == .closed)
        // A request that failed at the connection may have been saved before.
        let (count, unanswered) = (answered.count.load(ordering: .relaxed), failed.count.load(ordering: .relaxed))
        let stored = try #require(try await storedQuantity("nail", in: folder))
        #expect((count...count + unanswered).contains(stored))
        #expect(count >= 50)
    }

    @Test(arguments: StoreKind.files)
    func `a shutdown ends the streams of events`(_ kind: StoreKind) async throws {
        let folder = try StoreFolder(kind)
        try await RunningServer.run(on: folder) { server in
            try await server.create("nail", quantity: 3)
            var events = try await server.client.events().makeAsyncIterator()
            #expect(try await events.next() != nil)
            await server.service.triggerGracefulShutdown()
            #expect(try await events.next() == nil)
        }
        #expect(try await storedQuantity("nail", in: folder) == 3)
    }

    @Test(arguments: StoreKind.files)
    func `a client that does not read delays a shutdown by the grace period at most`(_ kind: StoreKind) async throws {
        let folder = try StoreFolder(kind)
        let settings = StockServer.Settings.with {
            $0.gracePeriod = .milliseconds(200)
            $0.durability = .deferred(within: .seconds(3_600))
        }
        let events = try await RunningServer.run(on: folder, settings) { server in
            // Each state has 5 MB, so a few states fill the buffers of the connection.
            let title = String(repeating: "n", count: 100_000)
            for number in 0..<50 { try await server.create("n\(number)", title: title) }
            let events = try await server.client.events()
            for round in 1...10 { #expect(try await server.add(round, to: "n0") == 200) }
            return events
        }
        #expect(try await storedQuantity("n0", in: folder) == 55)
        withExtendedLifetime(events) {}
    }
}
