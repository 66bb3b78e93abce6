import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Pages of a store with inheritance, ordered relationships and derived attributes.
@Suite struct HierarchyTests {
    @Sendable private static func fill(_ context: ManagedObjectContext) {
        let playlist = context.insert("Playlist")
        (playlist["name"], playlist["mood"]) = ("first", "calm")
        let items = ["Item", "Song", "Song"].map { context.insert($0) }
        items[1]["title"] = "one"
        playlist.setRelatedObjects("items", to: items.reversed())
        playlist.setRelatedObjects("songs", to: [items[2], items[1]])
    }

    /// Catches: pages that ask for columns of positions, types, or other entities, or that name hidden entities.
    @Test(arguments: fileKinds)
    func `pages show each object with the properties of its entity`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind, "--write", model: try Lists.model(), fill: Self.fill)
        let store = try #require(try await run.json("store")["entities"] as? [[String: Any]])
        let counts = Dictionary(uniqueKeysWithValues: store.map { ($0["name"] as? String, $0["count"] as? Int) })
        #expect(counts == ["Collection": 1, "Playlist": 1, "Item": 3, "Song": 2])
        let schema = try #require(try await run.json("schema")["entities"] as? [[String: Any]])
        let playlist = try #require(schema.first { $0["name"] as? String == "Playlist" })
        #expect(playlist["superentity"] as? String == "Collection")
        let names = try #require(playlist["properties"] as? [[String: Any]]).compactMap { $0["name"] as? String }
        #expect(Set(names) == ["name", "itemCount", "total", "mood", "items", "songs"])
        for entity in ["Collection", "Playlist", "Item", "Song"] {
            let table = try await run.json("table", ["entity": entity])
            #expect(table["total"] as? Int == counts[entity], "\(entity)")
        }
        // The page of the head's table leads to the object with all of its properties.
        let key = try await run.keys("Collection")[0]
        let object = try await run.json("object", ["entity": "Collection", "key": key])
        #expect(object["entity"] as? String == "Playlist")
        let properties = try #require(object["properties"] as? [[String: Any]]).compactMap { $0["name"] as? String }
        #expect(Set(properties) == ["name", "itemCount", "total", "mood"])
        let related = try #require(object["relationships"] as? [[String: Any]])
        let totals = Dictionary(uniqueKeysWithValues: related.map { ($0["name"] as? String, $0["total"] as? Int) })
        #expect(totals == ["items": 3, "songs": 2])
        #expect(try await run.get("/api/object", ["entity": "Song", "key": try await plainItem(run)]).status == 404)
        // A change of a property that only the inheriting entity has, from the page of the head.
        let edit = try #require(
            try await run.posted("edit/begin", ["entity": "Collection", "key": key])["edit"] as? String)
        let preview = try await run.posted("edit/preview", ["edit": edit, "values": ["mood": "loud"]])
        #expect(preview["isReady"] as? Bool == true, "\(preview)")
        for hidden in ["type of object", "position in collection", "itemCount"] {
            #expect(try await run.post("edit/preview", ["edit": edit, "values": [hidden: "1"]]).status == 400, "\(hidden)")
        }
        _ = try await run.posted("edit/preview", ["edit": edit, "values": ["mood": "loud"]])
        _ = try await run.posted("edit/save", ["edit": edit])
        #expect(try await run.keys("Playlist", filter: "mood = 'loud'") == [key])
        try await deletion(run, key)
        #expect(try await run.post("edit/begin", ["entity": "Collection"]).status == 400, "an abstract entity has no objects")
        #expect(try await run.get("/api/history").status == 200)
        #expect(try await run.stop() == 0)
    }

    /// Catches: the values of the properties of the head only.
    @Test(arguments: fileKinds)
    func `S180: the history shows the values of properties that only an inheriting entity has`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind, "--write", model: try Lists.model(), fill: Self.fill)
        let key = try await run.keys("Playlist")[0]
        // The program compares the next save with the state that it knows by then.
        _ = try await run.json("history")
        let change = try #require(try await run.posted("edit/begin", ["entity": "Playlist", "key": key])["edit"] as? String)
        _ = try await run.posted("edit/preview", ["edit": change, "values": ["mood": "loud"]])
        _ = try await run.posted("edit/save", ["edit": change])
        #expect(try await newestDifference(run, key) == ["mood": ["calm", "loud"]])
        let removal = try #require(try await run.posted("edit/begin", ["entity": "Playlist", "key": key])["edit"] as? String)
        _ = try await run.posted("edit/preview", ["edit": removal, "values": [:], "isDeletion": true])
        _ = try await run.posted("edit/save", ["edit": removal])
        let deleted = try await newestDifference(run, key)
        #expect(deleted["mood"] == ["loud", nil] && deleted["name"] == ["first", nil], "\(deleted)")
        #expect(try await run.stop() == 0)
    }

    /// Returns the values of a collection before and after the newest save, by property.
    private func newestDifference(_ run: StudioRun, _ key: String) async throws -> [String: [String?]] {
        let saves = try #require(try await run.json("history")["saves"] as? [[String: Any]])
        let changes = try #require(saves[0]["changes"] as? [[String: Any]])
        let change = try #require(changes.first { $0["entity"] as? String == "Collection" && $0["key"] as? String == key })
        let difference = try #require(change["difference"] as? [String: Any])
        let properties = try #require(difference["properties"] as? [[String: Any]])
        var found: [String: [String?]] = [:]
        for property in properties {
            let cells = ["before", "after"].map { property[$0] as? [String: Any] }
            found[property["name"] as? String ?? ""] = cells.map { $0?["text"] as? String }
        }
        return found
    }

    /// The deletion of a list changes its items, and deletes hidden objects with the positions of its songs.
    private func deletion(_ run: StudioRun, _ key: String) async throws {
        let edit = try #require(try await run.posted("edit/begin", ["entity": "Playlist", "key": key])["edit"] as? String)
        let preview = try await run.posted("edit/preview", ["edit": edit, "values": [:], "isDeletion": true])
        let others = try #require(preview["others"] as? [String])
        #expect(others.count == 3 && others.allSatisfy { $0.hasPrefix("changes Item ") }, "\(others)")
        _ = try await run.posted("edit/save", ["edit": edit])
        #expect(try await run.keys("Collection").isEmpty)
        let saves = try #require(try await run.json("history")["saves"] as? [[String: Any]])
        #expect(saves.count == 3)
    }

    private func plainItem(_ run: StudioRun) async throws -> String {
        let songs = try await run.keys("Song")
        return try #require(try await run.keys("Item").first { !songs.contains($0) })
    }
}
