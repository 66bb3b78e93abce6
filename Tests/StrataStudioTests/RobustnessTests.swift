import Foundation
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataStudio

/// Requests and files that must not stop the program.
@Suite struct RobustnessTests {
    private static let numbers = [
        "", "0", "1", "-1", "64", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
        "1e9",
    ]
    private static let conditions = [
        "", "plays = 1", "plays < 9223372036854775807", "plays = -9223372036854775808", "title contains ''",
        "title contains[c] 'É'",
        "album = 18446744073709551615", "album.artist.name = nil", "any playlists (name = 'early')", "playlists.count > 0",
        "playlists.count = -1", "not not not isrc is nil", "rating = NaN", "rating between 9 and 1", "title in ()", "((((", "'",
        "`",
        String(repeating: "(", count: 5000), String(repeating: "not ", count: 1000) + "plays = 1", "plays = 1 or plays = 2",
        "\u{0}",
    ]
    private static let sorts = [
        "", "-", ",", "title", "-plays,title", "album", "album.title", "-album.artist.name", "playlists", "a.b.c.", "$key",
    ]

    @Test(arguments: fileKinds)
    func `no request stops the program, whatever its parameters are`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind, "--write")
        var random = SeededGenerator()
        let entities = ["Track", "Album", "Artist", "Playlist", "Profile", "track", "", "\u{0}"]
        let pages = ["store", "schema", "table", "plan", "object", "related", "history", "snapshots", "file", "..", ""]
        let edits = ["begin", "preview", "save", "cancel", ""]
        let keys = try await run.keys("Track") + Self.numbers
        for _ in 0..<Rounds.of(150, long: 3000) {
            func one(_ list: [String]) -> String { list[random.below(list.count)] }
            var values = [
                "entity": one(Array(entities.prefix(random.chance(80) ? 5 : 8))), "filter": one(Self.conditions),
                "sort": one(Self.sorts),
                "limit": one(Self.numbers), "offset": one(Self.numbers), "key": one(keys),
                "name": one(["tracks", "playlists", "albums", "x"]),
                "before": one(Self.numbers), "save": one(Self.numbers), "author": one(["", "x"]), "view": one(["", "x"]),
            ]
            for name in values.keys.sorted() where random.chance(40) { values[name] = nil }
            let response: HTTPClient.Response
            if random.chance(20) {
                let fields = [
                    "title": one(Self.conditions), "plays": one(Self.numbers), "album": one(keys),
                    one(["rating", "x"]): one(Self.numbers),
                ]
                let begun = try await run.post("edit/begin", ["entity": values["entity"] ?? "", "key": one(keys)])
                let edit = try begun.object()["edit"] as? String ?? "none"
                response = try await run.post(
                    "edit/" + one(edits), ["edit": edit, "entity": "Track", "values": fields, "isDeletion": random.chance(20)])
            } else {
                response = try await run.get("/api/" + one(pages), values)
            }
            #expect([200, 400, 403, 404, 409, 410].contains(response.status), "\(values): \(response.status) \(response.text)")
            if response.status != 200 { #expect(response.error?.contains("\n") == false, "\(values): \(response.text)") }
        }
        #expect(try await run.get("/api/store").status == 200)
        #expect(try await run.stop() == 0)
    }

    @Test func `a damaged page is shown as an error, and the program goes on`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await PersistentContainer(model: Music.model, store: .lmdb(bed.file))
        let (keys, albums, lists) = try await container.write { context in
            try StudioRun.fill(context)
            let tracks = try context.fetch(EntityFetchRequest("Track"))
            for track in tracks {
                track["isrc"] = .string(String(repeating: "\(track.objectID.key) ", count: 300))
            }
            func keys(_ objects: [ManagedObject]) -> [String] { objects.map { "\($0.objectID.key)" } }
            return try (
                keys(tracks), keys(context.fetch(EntityFetchRequest("Album"))),
                keys(context.fetch(EntityFetchRequest("Playlist")))
            )
        }
        try await container.close()
        let sound = try Data(contentsOf: bed.file)
        var random = SeededGenerator()
        var failures = 0
        for round in 0..<Rounds.of(6, long: 100) {
            var bytes = sound
            for _ in 0..<(1 + random.below(30)) { bytes[random.below(bytes.count)] ^= UInt8(1 + random.below(255)) }
            let folder = bed.folder.appending(path: "round\(round)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "damaged")
            try bytes.write(to: file)
            let process = try StudioProcess([file.path, "--write"], in: folder)
            guard let run = try await StudioRun(process, bed) else {
                // A file whose own tree of pages is damaged is refused at the start.
                let end = try await process.stop()
                #expect(end.status == 2 && end.output.hasPrefix("strata: "), "\(end)")
                continue
            }
            var requests: [(String, [String: String])] = [("store", [:]), ("history", [:]), ("snapshots", [:]), ("file", [:])]
            for entity in ["Track", "Album", "Artist", "Playlist"] {
                requests += ["", "-title"].map {
                    ("table", ["entity": entity, "sort": entity == "Track" ? $0 : "", "limit": "500"])
                }
            }
            for key in keys where random.chance(20) { requests.append(("object", ["entity": "Track", "key": key])) }
            for (path, values) in requests {
                let response = try await run.get("/api/" + path, values)
                if response.status == 200 { continue }
                failures += 1
                #expect(response.error?.isEmpty == false && response.error?.contains("\n") == false, "\(path): \(response.text)")
            }
            for (entity, key) in [("Track", keys[random.below(keys.count)]), ("Album", albums[0]), ("Playlist", lists[0])] {
                let begun = try await run.post("edit/begin", ["entity": entity, "key": key])
                guard let edit = try begun.object()["edit"] as? String else { continue }
                let values = entity == "Track" ? ["title": "x", "album": albums[0]] : [:]
                _ = try await run.post("edit/preview", ["edit": edit, "values": values])
                _ = try await run.post("edit/preview", ["edit": edit, "values": [:], "isDeletion": true])
            }
            #expect(try await run.stop() == 0)
        }
        print("requests that met damage: \(failures)")
    }

    @Test func `only a few pages are told about saves, and closed ones make room`() async throws {
        let run = try await StudioRun(.lmdb)
        var connections: [HTTPClient.Connection] = []
        for _ in 0..<16 {
            let connection = try await run.client.open("GET /api/events", run.headers)
            connections.append(connection)
            let first = try await HTTPClient.blocking { try connection.read() }
            #expect(String(decoding: first, as: UTF8.self).hasPrefix("HTTP/1.1 200"))
        }
        #expect(try await run.get("/api/events").status == 503)
        connections.removeLast()
        try await until("a place for one more page") {
            let connection = try await run.client.open("GET /api/events", run.headers)
            let first = try await HTTPClient.blocking { try connection.read() }
            return String(decoding: first, as: UTF8.self).hasPrefix("HTTP/1.1 200")
        }
        #expect(try await run.stop() == 0)
    }

    /// Catches: a filter that counts as none, so that the page shows all objects.
    @Test func `an address with a value that is not UTF-8 cannot be read`() {
        for filter in ["%ff%fe", "a%ff"] {
            let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/api/table?entity=Track&filter=\(filter)")
            #expect(StudioRequest(head, body: Data()) == nil, "\(filter)")
        }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/api/table?entity=Track&filter=%C3%A9")
        #expect(StudioRequest(head, body: Data())?.query["filter"] == "é")
    }

    /// Catches: changes of an older preview, which a save would write as those of the newest one.
    @Test func `an older preview of an edit that ends late changes nothing`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await PersistentContainer(model: Music.model, store: bed.description)
        let parent = await container.newBackgroundContext()
        let edit = Edit(
            entity: try #require(container.model.entity(named: "Track")), id: nil, parent: parent,
            child: await parent.newBackgroundChild())
        let (first, second) = (try edit.beginPreview(), try edit.beginPreview())
        #expect(throws: PageError.self) { try edit.checkIsNewest(first) }
        try edit.checkIsNewest(second)
        edit.endPreview(first, isReady: true)
        #expect(!edit.beginSave())
        edit.endPreview(second, isReady: true)
        #expect(edit.beginSave())
        try await container.close()
    }

    @Test func `kept values are released after their idle time, and the least recently used first`() {
        final class Item: Sendable {}
        let kept = KeptValues<Item>(limit: 2, idleTime: .seconds(3600))
        let names = (0..<2).map { _ in kept.add(Item()) }
        weak let first = kept[names[0]]
        let third = kept.add(Item())
        #expect(first != nil && kept[names[1]] == nil && kept[third] != nil && kept.count == 2)
        kept.releaseIdle()
        #expect(kept.count == 2)
        let short = KeptValues<Item>(limit: 2, idleTime: .zero)
        let name = short.add(Item())
        weak let item = short[name]
        short.releaseIdle()
        #expect(short[name] == nil && item == nil)
    }
}
