import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The kinds of stores in files.
let fileKinds: [StoreKind] = [.lmdb, .sqlite]

/// A run of `strata studio` in another process, on a small new store.
final class StudioRun: Sendable {
    let bed: TestBed
    let address: String
    let token: String
    let client: HTTPClient
    private let process: StudioProcess

    var host: String { "127.0.0.1:\(client.port)" }

    /// Fills a store and starts the tool. Returns when it has printed the address.
    convenience init(
        _ kind: StoreKind, _ options: String..., model: Model = Music.model,
        fill: @escaping @Sendable (ManagedObjectContext) throws -> Void = StudioRun.fill
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed, model)
        try await container.write { try fill($0) }
        try await container.close()
        let process = try StudioProcess([bed.file.path] + options, in: bed.folder)
        let line = try #require(try await process.address(), "the tool has ended")
        try self.init(process, bed, line)
    }

    /// Waits for the address of a started tool. Returns nil if it ends instead.
    ///
    /// - Parameter bed: The folder of the tool's file.
    convenience init?(_ process: StudioProcess, _ bed: TestBed) async throws {
        guard let line = try await process.address() else { return nil }
        try self.init(process, bed, line)
    }

    private init(_ process: StudioProcess, _ bed: TestBed, _ line: String) throws {
        let url = try #require(URLComponents(string: line), "\(line)")
        self.process = process
        self.bed = bed
        address = line
        token = try #require(url.queryItems?.first { $0.name == "token" }?.value)
        client = HTTPClient(port: try #require(url.port))
    }

    /// Stops the tool by a signal and returns its exit status.
    @discardableResult
    func stop() async throws -> Int32? { try await process.stop().status }

    /// Opens the store beside the tool.
    func container() async throws -> PersistentContainer { try await Self.container(bed) }

    private static func container(_ bed: TestBed, _ model: Model = Music.model) async throws -> PersistentContainer {
        try await PersistentContainer(model: model, store: bed.kind == .sqlite ? .sqlite(bed.file) : .lmdb(bed.file))
    }

    // MARK: Requests

    var headers: [(String, String)] { [("Host", host), ("X-Strata-Token", token)] }

    /// Asks for a page of the program, with parameters.
    func get(_ path: String, _ parameters: [String: String] = [:]) async throws -> HTTPClient.Response {
        var parts = URLComponents()
        parts.path = path
        if !parameters.isEmpty { parts.queryItems = parameters.map { URLQueryItem(name: $0.key, value: $0.value) } }
        return try await client.send("GET \(parts.string ?? path)", headers)
    }

    func json(_ path: String, _ parameters: [String: String] = [:]) async throws -> [String: Any] {
        let response = try await get("/api/" + path, parameters)
        #expect(response.status == 200, "\(path): \(response.text)")
        return try response.object()
    }

    /// Sends a change.
    func post(_ path: String, _ body: [String: Any]) async throws -> HTTPClient.Response {
        let data = try JSONSerialization.data(withJSONObject: body)
        return try await client.send(
            "POST /api/\(path)", headers + [("Origin", "http://\(host)"), ("Content-Type", "application/json")], data)
    }

    func posted(_ path: String, _ body: [String: Any]) async throws -> [String: Any] {
        let response = try await post(path, body)
        #expect(response.status == 200, "\(path): \(response.text)")
        return try response.object()
    }

    /// Returns the keys of an entity's objects.
    func keys(_ entity: String, filter: String = "") async throws -> [String] {
        let table = try await json("table", ["entity": entity, "filter": filter, "limit": "500"])
        return try #require(table["rows"] as? [[String: Any]]).compactMap { $0["key"] as? String }
    }

    // MARK: The store

    /// Two artists, an album of 120 tracks with 0 to 119 plays, and a playlist of the first 60.
    static let fill: @Sendable (ManagedObjectContext) throws -> Void = { context in
        let artists = ["Blur", "Oasis"].map { name in
            let artist = context.insert("Artist")
            artist["name"] = .string(name)
            return artist
        }
        let album = context.insert("Album")
        album["title"] = "Parklife"
        album.setRelatedObject("artist", to: artists[0])
        let list = context.insert("Playlist")
        list["name"] = "early"
        for number in 0..<120 {
            let track = context.insert("Track")
            track["title"] = .string("Track \(number)")
            track["plays"] = .int(Int64(number))
            track.setRelatedObject("album", to: album)
            if number < 60 { track.add(list, to: "playlists") }
        }
    }
}
