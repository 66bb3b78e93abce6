import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The answers of the pages that read.
@Suite struct PageTests {
    @Test(arguments: fileKinds)
    func `the schema and the numbers of objects are those of the store`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let store = try await run.json("store")
        let entities = try #require(store["entities"] as? [[String: Any]])
        let counts = Dictionary(uniqueKeysWithValues: entities.map { ($0["name"] as? String, $0["count"] as? Int) })
        #expect(counts == ["Artist": 2, "Profile": 0, "Album": 1, "Track": 120, "Playlist": 1])
        #expect(store["isWritable"] as? Bool == false && store["save"] as? Int == 1)
        let schema = try #require(try await run.json("schema")["entities"] as? [[String: Any]])
        let track = try #require(schema.first { $0["name"] as? String == "Track" }?["properties"] as? [[String: Any]])
        let kinds = Dictionary(uniqueKeysWithValues: track.map { ($0["name"] as? String, $0["kind"] as? String) })
        #expect(kinds["title"] == "attribute" && kinds["album"] == "to-one" && kinds["playlists"] == "to-many")
        #expect(track.first { $0["name"] as? String == "isrc" }?["index"] as? String == "unique")
        #expect(try await run.stop() == 0)
    }

    @Test(arguments: fileKinds)
    func `a table is filtered, sorted and cut into pages, and shows the query's plan`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let query = ["entity": "Track", "filter": "plays >= 100 and album.title = 'Parklife'", "sort": "-plays", "limit": "8"]
        let first = try await run.json("table", query)
        #expect(first["total"] as? Int == 20)
        #expect((first["plan"] as? String)?.isEmpty == false)
        var titles: [String?] = []
        for offset in stride(from: 0, to: 24, by: 8) {
            let page = try await run.json(
                "table", query.merging(["offset": "\(offset)", "view": first["view"] as? String ?? ""]) { $1 })
            let rows = try #require(page["rows"] as? [[String: Any]])
            titles += rows.map { ($0["cells"] as? [[String: Any]])?.first?["text"] as? String }
        }
        #expect(titles == (100..<120).reversed().map { "Track \($0)" })
        // A reference is shown by a text of its object.
        let album = try #require((first["rows"] as? [[String: Any]])?.first?["cells"] as? [[String: Any]])[4]
        #expect(album["label"] as? String == "Parklife" && album["key"] as? String == album["text"] as? String)
        let plan = try await run.json("plan", ["entity": "Track", "filter": "plays = 5"])
        #expect((plan["plan"] as? String)?.contains("index on plays") == (kind == .lmdb))
        // The number of rows of a page is bounded.
        #expect(try await run.json("table", ["entity": "Track", "limit": "100000"])["limit"] as? Int == 500)
        try await run.stop()
    }

    @Test func `a wrong filter or sort is answered with one line that names it`() async throws {
        let run = try await StudioRun(.lmdb)
        let filter = try await run.get("/api/table", ["entity": "Track", "filter": "plays > long"])
        #expect(filter.status == 400)
        #expect(filter.error?.contains("at character 9") == true && filter.error?.contains("\n") == false)
        let name = try await run.get("/api/table", ["entity": "Track", "filter": "playz = 1"])
        #expect(name.error?.contains("did you mean plays?") == true, "\(name.text)")
        let sort = try await run.get("/api/table", ["entity": "Track", "sort": "nothing"])
        #expect(sort.status == 400 && sort.error?.contains("nothing") == true, "\(sort.text)")
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `all pages of a table show one state while another context saves`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let first = try await run.json("table", ["entity": "Track", "limit": "50"])
        let view = try #require(first["view"] as? String)
        let container = try await run.container()
        try await container.write { context in
            for track in try context.fetch(EntityFetchRequest("Track", matching: .compare("plays", .less, to: .int(60)))) {
                context.delete(track)
            }
            context.insert("Track")["title"] = "new"
        }
        var titles: [String?] = []
        for offset in [0, 50, 100] {
            let page = try await run.json("table", ["entity": "Track", "limit": "50", "offset": "\(offset)", "view": view])
            #expect(page["total"] as? Int == 120)
            titles += try #require(page["rows"] as? [[String: Any]]).map {
                ($0["cells"] as? [[String: Any]])?.first?["text"] as? String
            }
        }
        #expect(titles == (0..<120).map { "Track \($0)" })
        // A new view shows the newest state.
        let fresh = try await run.json("table", ["entity": "Track"])
        #expect(fresh["total"] as? Int == 61 && (fresh["save"] as? Int ?? 0) > (first["save"] as? Int ?? 0))
        // The kept state is shown among the snapshots, with what it keeps.
        let snapshots = try #require(try await run.json("snapshots")["snapshots"] as? [[String: Any]])
        let kept = try #require(snapshots.first { ($0["owners"] as? [String])?.contains("studio: table Track") == true })
        #expect(kept["isNewest"] as? Bool == false && kept["save"] as? Int == first["save"] as? Int)
        // Only a few states are kept: the oldest is released.
        for _ in 0..<8 { _ = try await run.json("table", ["entity": "Album"]) }
        let gone = try await run.get("/api/table", ["entity": "Track", "view": view])
        #expect(gone.status == 410 && gone.error?.contains("Refresh") == true)
        try await container.close()
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `an object is shown with the objects at both kinds of relationships`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let list = try await run.keys("Playlist")[0]
        let page = try await run.json("object", ["entity": "Playlist", "key": list])
        let related = try #require(page["relationships"] as? [[String: Any]])
        #expect(related.count == 1 && related[0]["total"] as? Int == 60)
        let members = try #require(related[0]["members"] as? [[String: Any]])
        #expect(members.count == 50 && members[0]["label"] as? String == "Track 0")
        let rest = try await run.json("related", ["entity": "Playlist", "key": list, "name": "tracks", "offset": "50"])
        #expect((rest["members"] as? [[String: Any]])?.last?["label"] as? String == "Track 59")
        // The filter of a to-one relationship's other end shows the same objects as a table.
        let album = try await run.keys("Album")[0]
        let tracks = try #require(
            try await run.json("object", ["entity": "Album", "key": album])["relationships"] as? [[String: Any]])
        let filter = try #require(tracks.first { $0["name"] as? String == "tracks" }?["filter"] as? String)
        #expect(try await run.keys("Track", filter: filter).count == 120)
        // The history of the object.
        #expect((page["history"] as? [[String: Any]])?.map { $0["kind"] as? String } == ["insert"])
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `the file's parts are shown where the store knows them`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let map = try await run.json("file")
        let tables = try #require(map["tables"] as? [[String: Any]])
        #expect((map["bytes"] as? Int ?? 0) > 0)
        // SQLite knows sizes if it was compiled with `dbstat`.
        if kind == .lmdb { #expect(!tables.isEmpty) }
        if kind == .lmdb {
            #expect(Set(tables.compactMap { $0["content"] as? String }).isSuperset(of: ["objects", "index", "link", "history"]))
            let sum = tables.reduce(0) { $0 + ($1["bytes"] as? Int ?? 0) }
            let other = try #require(map["otherBytes"] as? Int)
            #expect(sum + other == map["bytes"] as? Int)
        }
        // Without older states, all of the rest is free.
        #expect(map["retainedBytes"] as? Int == 0 && (map["retainedFor"] as? [String])?.isEmpty == true, "\(map)")
        #expect(map["freeBytes"] as? Int == map["otherBytes"] as? Int)
        try await run.stop()
    }

    @Test func `the state that another process reads is shown with its process and what it keeps`() async throws {
        let run = try await StudioRun(.lmdb)
        let container = try await run.container()
        let old = try container.coordinator.snapshot(owner: "test")
        try await container.write { context in
            for track in try context.fetch(EntityFetchRequest("Track")) { track["title"] = "changed" }
        }
        let snapshots = try #require(try await run.json("snapshots")["snapshots"] as? [[String: Any]])
        let process = Int(ProcessInfo.processInfo.processIdentifier)
        let other = snapshots.filter { $0["process"] as? Int == process && $0["isNewest"] as? Bool == false }
        #expect(other.contains { ($0["bytes"] as? Int ?? 0) > 0 }, "\(snapshots)")
        let map = try await run.json("file")
        let (free, kept) = (try #require(map["freeBytes"] as? Int), try #require(map["retainedBytes"] as? Int))
        #expect(kept > 0 && free >= 0 && free + kept == map["otherBytes"] as? Int, "\(map)")
        #expect((map["retainedFor"] as? [String])?.contains("process \(process)") == true, "\(map)")
        withExtendedLifetime(old) {}
        try await container.close()
        try await run.stop()
    }

    @Test(arguments: fileKinds) func `keyed collections are listed with their entries`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind) { context in
            let numbers = try context.collection("numbers", of: Int.self, key: Int.self)
            for number in 0..<130 { numbers[number] = number * 2 }
            try context.collection("blobs", of: Data.self)["a"] = Data(count: 5)
            let artist = context.insert("Artist")
            artist["name"] = "Blur"
            try context.collection("notes", of: String.self, key: ObjectID.self)[artist.objectID] = "from Colchester"
        }
        let listed = try #require(try await run.json("store")["collections"] as? [[String: Any]])
        #expect(listed.map { $0["name"] as? String } == ["blobs", "notes", "numbers"])
        #expect(listed.map { $0["count"] as? Int } == [1, 1, 130])
        var keys: [String] = []
        var values: [String] = []
        var after = ""
        repeat {
            let page = try await run.json(
                "collection", ["name": "numbers"].merging(after.isEmpty ? [:] : ["after": after]) { $1 })
            #expect(page["total"] as? Int == 130 && page["keys"] as? String == "Int")
            let entries = try #require(page["entries"] as? [[String: Any]])
            keys += entries.compactMap { $0["key"] as? String }
            values += entries.compactMap { ($0["value"] as? [String: Any])?["text"] as? String }
            after = page["next"] as? String ?? ""
        } while !after.isEmpty
        #expect(keys == (0..<130).map { "\($0)" } && values == (0..<130).map { "\($0 * 2)" })
        let blobs = try #require(try await run.json("collection", ["name": "blobs"])["entries"] as? [[String: Any]])
        #expect((blobs[0]["value"] as? [String: Any])?["text"] as? String == "5 bytes")
        let notes = try #require(try await run.json("collection", ["name": "notes"])["entries"] as? [[String: Any]])
        #expect((notes[0]["key"] as? String)?.wholeMatch(of: /Artist \d+/) != nil, "an object's id is shown by entity and key")
        #expect(try await run.get("/api/collection", ["name": "no"]).status == 404)
        let saves = try #require(try await run.json("history")["saves"] as? [[String: Any]])
        let names = try #require(saves[0]["changes"] as? [[String: Any]]).map { $0["entity"] as? String }
        #expect(Set(names) == ["Artist", "keyed value"])
        try await run.stop()
    }

    @Test func `names with dots and commas are shown, sorted and filtered`() async throws {
        let model = try Model([
            EntityDescription(
                name: "Leaf",
                properties: [
                    .attribute(.init(name: "Sepal.Length", type: .double)), .attribute(.init(name: "Width, mm", type: .int64)),
                    .attribute(.init(name: "na.me", type: .string)),
                    .relationship(.init(name: "next.leaf", destination: "Leaf", cardinality: .toOne)),
                ])
        ])
        let run = try await StudioRun(.lmdb, model: model) { context in
            let leaves = (0..<3).map { number in
                let leaf = context.insert("Leaf")
                leaf["Sepal.Length"] = .double(Double(number))
                leaf["Width, mm"] = .int(Int64(number) * -1)
                leaf["na.me"] = .string("leaf \(number)")
                return leaf
            }
            leaves[0].setRelatedObject("next.leaf", to: leaves[1])
        }
        let table = try await run.json("table", ["entity": "Leaf", "sort": "-Sepal.Length", "filter": "Sepal.Length > 0"])
        #expect(table["total"] as? Int == 2)
        for (sort, first) in [("Sepal.Length", "0"), ("`Width, mm`", "2"), ("-`Width, mm`", "0")] {
            let rows = try #require(try await run.json("table", ["entity": "Leaf", "sort": sort])["rows"] as? [[String: Any]])
            #expect((rows[0]["cells"] as? [[String: Any]])?[0]["text"] as? String == first, "\(sort)")
        }
        let rows = try #require(try await run.json("table", ["entity": "Leaf"])["rows"] as? [[String: Any]])
        #expect((rows[0]["cells"] as? [[String: Any]])?[3]["label"] as? String == "leaf 1")
        let object = try await run.json("object", ["entity": "Leaf", "key": try await run.keys("Leaf")[0]])
        #expect(object["label"] != nil || object["properties"] != nil)
        #expect(try await run.get("/api/table", ["entity": "Leaf", "sort": "`a"]).status == 400)
        try await run.stop()
    }

    @Test func `large values are cut, and the page says how long they are`() async throws {
        let run = try await StudioRun(.lmdb) { context in
            context.insert("Artist")["name"] = .string(String(repeating: "é", count: 50_000))
        }
        let table = try await run.json("table", ["entity": "Artist"])
        let cell = try #require((table["rows"] as? [[String: Any]])?[0]["cells"] as? [[String: Any]])[0]
        #expect((cell["text"] as? String)?.count == 120 && cell["length"] as? Int == 50_000)
        let key = try await run.keys("Artist")[0]
        let object = try await run.json("object", ["entity": "Artist", "key": key])
        let shown = try #require((object["properties"] as? [[String: Any]])?[0]["cell"] as? [String: Any])
        #expect((shown["text"] as? String)?.count == 20_000 && shown["length"] as? Int == 50_000)
        try await run.stop()
    }

    @Test(arguments: ["INT", "TERM"])
    func `the program ends with status 0 at a signal`(_ signal: String) async throws {
        let bed = try TestBed(.lmdb)
        try await bed.container().close()
        let process = try StudioProcess([bed.file.path], signal: signal, in: bed.folder)
        _ = try await process.address()
        let result = try await process.stop()
        #expect(result.status == 0, "\(result)")
    }

    /// Catches: a plan that ends the program, because the number of rows and the offset have no sum.
    @Test(arguments: fileKinds)
    func `S135: a table after the greatest offset is empty, and has a plan`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let table = try await run.json("table", ["entity": "Track", "sort": "title", "offset": "\(Int.max)"])
        #expect(table["total"] as? Int == 120)
        #expect((table["rows"] as? [Any])?.isEmpty == true)
        #expect((table["plan"] as? String)?.isEmpty == false)
        #expect(try await run.stop() == 0)
    }
}
