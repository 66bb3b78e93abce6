import AsyncHTTPClient
import Foundation
import SQLiteStore
import ServiceLifecycle
import StockClient
import Strata

@testable import StockServer

/// A kind of store under test.
enum StoreKind: String, CaseIterable, Sendable {
    case memory, lmdb, sqlite

    /// The kinds whose objects outlive the container.
    static let files: [StoreKind] = [.lmdb, .sqlite]
}

/// A folder with the store of one test. It is removed with the value.
final class StoreFolder: Sendable {
    let kind: StoreKind
    private let folder: URL

    init(_ kind: StoreKind) throws {
        self.kind = kind
        folder = FileManager.default.temporaryDirectory.appending(path: "stock-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func open() async throws -> PersistentContainer {
        let file = folder.appending(path: "stock")
        let store: StoreDescription =
            switch kind {
            case .memory: .memory(name: folder.path)
            case .lmdb: .lmdb(file)
            case .sqlite: .sqlite(file)
            }
        return try await StockServer.open(store)
    }
}

/// A server that runs for the time of one test.
struct RunningServer: Sendable {
    let client: StockClient
    let container: PersistentContainer
    let service: ServiceGroup

    /// A client that does not try again to connect to a server that has ended.
    private static let http = {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }()

    /// Starts a server on a free port, calls `body`, and shuts the server down. Then the store is closed.
    static func run<R: Sendable>(
        on folder: StoreFolder, _ settings: StockServer.Settings = .init(), _ body: @Sendable (RunningServer) async throws -> R
    ) async throws -> R {
        let container = try await folder.open()
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let service = StockServer(container: container, settings: settings).service(hostname: "127.0.0.1", port: 0) {
            port.yield($0)
        }
        async let end: Void = service.run()
        var iterator = ports.makeAsyncIterator()
        guard let number = await iterator.next() else { throw CancellationError() }
        let result: Result<R, any Error>
        do {
            result = .success(
                try await body(
                    RunningServer(client: StockClient(port: number, client: http), container: container, service: service)))
        } catch {
            result = .failure(error)
        }
        await service.triggerGracefulShutdown()
        try await end
        return try result.get()
    }

    /// Creates an item, and returns it.
    @discardableResult func create(_ sku: String, quantity: Int = 0, title: String = "Thing") async throws -> ItemMessage {
        try await client.send(.POST, "/items", json: #"{"sku": "\#(sku)", "title": "\#(title)", "quantity": \#(quantity)}"#)
            .decode()
    }

    func item(_ sku: String) async throws -> ItemMessage { try await client.send(.GET, "/items/\(sku)").decode() }

    /// Adds pieces to an item, and returns the status of the answer.
    @discardableResult func add(_ count: Int, to sku: String) async throws -> Int {
        try await client.send(.POST, "/items/\(sku)/add", json: #"{"count": \#(count)}"#).status
    }
}

extension StockServer.Settings {
    static func with(_ change: (inout StockServer.Settings) -> Void) -> StockServer.Settings {
        var settings = StockServer.Settings()
        change(&settings)
        return settings
    }
}

/// Waits until a condition holds. A test that calls it fails by the time limit of its suite if the condition never holds.
func wait(until condition: () async throws -> Bool) async throws {
    while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
}
