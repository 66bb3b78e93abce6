import ArgumentParser
import AsyncHTTPClient
import Foundation
import StockClient
import StockServer

@main struct ServerLoad: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server-load",
        abstract:
            "Starts the stock server in another process, sends requests over loopback, checks the results and prints figures."
    )

    @Option(help: "The number of clients that send requests at the same time.")
    var clients = 16
    @Option(help: "The number of requests per client.")
    var requests = 500
    @Option(help: "The number of items, 500 at most.")
    var items = 100
    @Option(help: "The number of clients that listen to events meanwhile.")
    var listeners = 4
    @Option(help: "The seed of the random choices. The default is a new one, which is printed.")
    var seed = UInt64.random(in: 0...UInt64(UInt32.max))
    @Flag(help: "Let the server answer before a save is on disk.")
    var deferred = false

    func validate() throws {
        guard clients > 0, requests > 0, (1...500).contains(items), listeners >= 0 else {
            throw ValidationError("the numbers must be positive, and items 500 at most")
        }
    }

    func run() async throws {
        print("\(clients) clients, \(requests) requests each, \(items) items, \(listeners) listeners, seed \(seed)")
        let folder = FileManager.default.temporaryDirectory.appending(path: "server-load-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = clients + listeners + 1
        let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            let store = folder.appending(path: "stock.strata")
            let (report, expected) = try await load(store, http)
            try await checkFile(store, expected, http)
            try await http.shutdown()
            report.write()
        } catch {
            try? await http.shutdown()
            throw error
        }
    }

    /// Starts a server, sends all requests and checks the items. Returns the figures, and the number of pieces of each item.
    private func load(_ store: URL, _ http: HTTPClient) async throws -> (Report, [Int]) {
        let server = try ServerProcess(store: store, deferred: deferred)
        let threadsAtStart = ServerProcess.usage(of: server.identifier).threads
        let client = StockClient(port: server.port, client: http)
        let workload = Workload(client: client, items: items, requests: requests)
        try await workload.createItems()
        let audience = Audience(client: client, count: listeners)
        let monitor = UsageMonitor(of: server.identifier, client: client)
        let start = ContinuousClock.now
        let outcomes = try await withThrowingTaskGroup(of: Workload.Outcome.self) { group in
            for number in 0..<clients { group.addTask { [seed] in try await workload.run(seed: seed &+ UInt64(number) << 32) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let duration = ContinuousClock.now - start
        let peak = try await monitor.stop()
        var expected = Array(repeating: 0, count: items)
        for (item, count) in outcomes.flatMap(\.added) { expected[item] += count }
        try Self.check(try await workload.quantities(), expected, "after the requests")
        let states = try await audience.stop(after: expected)
        try await checkReleasedSnapshots(client)
        try server.shutDown()
        let report = Report(
            samples: outcomes.flatMap(\.samples), duration: duration, repeated: outcomes.map(\.repeated).reduce(0, +),
            states: states, threadsAtStart: threadsAtStart, peak: peak.usage, snapshots: peak.snapshots)
        return (report, expected)
    }

    /// Waits until the closed streams of events have released their snapshots, at most ten seconds.
    ///
    /// - Throws: An error that names the snapshots that are held after this time.
    private func checkReleasedSnapshots(_ client: StockClient) async throws {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            let held = try await client.heldSnapshots()
            if held.isEmpty { return }
            guard ContinuousClock.now < end else {
                throw Workload.UnexpectedAnswer(
                    description: "the server still holds \(held.count) snapshots 10 s after its last request: "
                        + "\(held.joined(separator: "; ")). Find the context that is not released in StockFeed or in a route")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Starts a new server on the file, and checks that the shutdown of the first has lost nothing.
    private func checkFile(_ store: URL, _ expected: [Int], _ http: HTTPClient) async throws {
        let server = try ServerProcess(store: store, deferred: deferred)
        let workload = Workload(client: StockClient(port: server.port, client: http), items: items, requests: 0)
        try Self.check(try await workload.quantities(), expected, "in the file after the shutdown")
        try server.shutDown()
    }

    private static func check(_ found: [Int], _ expected: [Int], _ moment: String) throws {
        guard found == expected else {
            throw Workload.UnexpectedAnswer(
                description: "wrong numbers of pieces \(moment): \(found), but the requests have added \(expected)")
        }
    }
}

/// Clients that listen to the events of all items.
private struct Audience {
    private let listeners: [Task<Void, any Error>]
    private let received: [Received]

    /// The states that a listener has received.
    private actor Received {
        private(set) var newest: [Int] = []
        private(set) var count = 0

        func add(_ quantities: [Int]) {
            newest = quantities
            count += 1
        }
    }

    init(client: StockClient, count: Int) {
        let received = (0..<count).map { _ in Received() }
        self.received = received
        listeners = received.map { received in
            Task {
                for try await page in try await client.events("?limit=500") { await received.add(page.items.map(\.quantity)) }
            }
        }
    }

    /// Waits until every listener has received the last state, at most a minute, and closes their connections.
    ///
    /// - Returns: The number of states that all listeners have received.
    func stop(after expected: [Int]) async throws -> Int {
        let end = ContinuousClock.now + .seconds(60)
        for listener in received {
            while await listener.newest != expected {
                guard ContinuousClock.now < end else {
                    throw Workload.UnexpectedAnswer(description: "a listener has not received the last state within a minute")
                }
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        for listener in listeners { listener.cancel() }
        var count = 0
        for listener in received { count += await listener.count }
        return count
    }
}

extension StockClient {
    /// Returns the snapshots of the store that the server holds, one line for each.
    fileprivate func heldSnapshots() async throws -> [String] {
        try await send(.GET, "/status").decode(StatusMessage.self).snapshots
    }
}

/// Reads the usage of the server's process and the number of snapshots that it holds, every 20 ms, and keeps the largest numbers.
private struct UsageMonitor {
    typealias Peak = (usage: ServerProcess.Usage, snapshots: Int)
    private let task: Task<Peak, any Error>

    init(of process: Int32, client: StockClient) {
        task = Task {
            var peak = ServerProcess.Usage()
            var snapshots = 0
            while true {
                let now = ServerProcess.usage(of: process)
                peak.threads = [peak.threads, now.threads].compactMap(\.self).max()
                peak.residentKilobytes = [peak.residentKilobytes, now.residentKilobytes].compactMap(\.self).max()
                do {
                    let held = try await client.heldSnapshots()
                    snapshots = max(snapshots, held.count)
                    try await Task.sleep(for: .milliseconds(20))
                } catch _ where Task.isCancelled {
                    return (usage: peak, snapshots: snapshots)
                }
            }
        }
    }

    /// Returns the largest numbers.
    ///
    /// - Throws: The error of a request for the server's status.
    func stop() async throws -> Peak {
        task.cancel()
        return try await task.value
    }
}
