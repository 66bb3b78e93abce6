import AsyncAlgorithms
import StockClient
import Strata
import Testing

@testable import StockServer

/// The streams of events, on each store.
@Suite(.timeLimit(.minutes(10))) struct EventTests {
    private func snapshots(_ server: RunningServer) async throws -> [String] {
        try await server.client.send(.GET, "/status").decode(StatusMessage.self).snapshots
    }

    @Test(arguments: StoreKind.allCases)
    func `S092: a client gets the selected items, and the newest state after each change`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            try await server.create("nail", quantity: 3)
            try await server.create("screw", quantity: 30)
            var events = try await server.client.events("?below=10").makeAsyncIterator()
            #expect(try await events.next()?.items.map(\.sku) == ["nail"])
            try await server.add(1, to: "nail")
            #expect(try await events.next()?.items.map(\.quantity) == [4])
            try await server.add(-25, to: "screw")
            #expect(try await events.next()?.items.map(\.sku) == ["nail", "screw"])
            _ = try await server.client.send(.DELETE, "/items/nail")
            #expect(try await events.next()?.items.map(\.sku) == ["screw"])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S152: a client that does not read gets the newest state next, and holds no older snapshot`(_ kind: StoreKind)
        async throws
    {
        let folder = try StoreFolder(kind)
        let container = try await folder.open()
        func set(_ quantity: Int) async throws {
            try await container.write { context in
                guard let item = try context.find(unique: \Item.sku, "nail") else { return }
                item.quantity = quantity
            }
        }
        try await container.write { $0.insert(Item(sku: "nail", title: "Nail", quantity: 0)) }
        let channel = AsyncChannel<EventPart>()
        let feed = StockFeed(container: container, filter: try ItemFilter([:]))
        let sender = Task { try await feed.send(to: channel) }
        var parts = channel.makeAsyncIterator()
        func next() async -> Int? {
            guard case .items(let page)? = await parts.next() else { return nil }
            return page.items.first?.quantity
        }
        #expect(await next() == 0)
        for quantity in 1...100 { try await set(quantity) }
        try await wait {
            try container.coordinator.snapshots().allSatisfy { $0.isNewest || !$0.owners.contains("events") }
        }
        // At most one state was being sent since the first change.
        var received: [Int?] = []
        repeat { received.append(await next()) } while received.last != 100
        #expect(received.count <= 2, "received \(received)")
        sender.cancel()
        _ = await sender.result
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S154: a client that closes its connection ends its live result`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.keepAlive = .seconds(3_600) }) { server in
            try await server.create("nail")
            let (opened, open) = AsyncStream.makeStream(of: Void.self)
            let reader = Task {
                for try await _ in try await server.client.events() { open.yield() }
            }
            for await _ in opened { break }
            #expect(try await snapshots(server).contains { $0.hasPrefix("events") })
            reader.cancel()
            _ = await reader.result
            // Nothing is sent meanwhile: the closed connection alone must end the live result.
            try await wait { try await snapshots(server).isEmpty }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a connection without changes is kept alive by comments`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind), .with { $0.keepAlive = .milliseconds(1) }) { server in
            try await server.create("nail")
            var events = try await server.client.events().makeAsyncIterator()
            #expect(try await events.next()?.items.count == 1)
            for count in 1...20 {
                try await server.add(1, to: "nail")
                #expect(try await events.next()?.items.first?.quantity == count)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a closed store ends the stream`(_ kind: StoreKind) async throws {
        try await RunningServer.run(on: StoreFolder(kind)) { server in
            try await server.create("nail")
            var events = try await server.client.events().makeAsyncIterator()
            #expect(try await events.next() != nil)
            try await server.container.close()
            #expect(try await events.next() == nil)
            #expect(try await server.client.send(.GET, "/items").status == 503)
        }
    }
}
