import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Changes of to-many relationships by the page, and lists in their order.
@Suite struct ListEditTests {
    /// Playlists and discs of songs, both in an order.
    private static func model() throws -> Model {
        func text(_ name: String) -> PropertyDescription { .attribute(.init(name: name, type: .string)) }
        func songs(_ inverse: String) -> PropertyDescription {
            .relationship(.init(name: "songs", destination: "Song", inverse: inverse, cardinality: .toMany, isOrdered: true))
        }
        return try Model([
            EntityDescription(name: "Playlist", properties: [text("name"), songs("playlists")]),
            EntityDescription(name: "Disc", properties: [text("name"), songs("disc")]),
            EntityDescription(
                name: "Song",
                properties: [
                    text("title"),
                    .relationship(.init(name: "playlists", destination: "Playlist", inverse: "songs", cardinality: .toMany)),
                    .relationship(.init(name: "disc", destination: "Disc", inverse: "songs", cardinality: .toOne)),
                ]),
        ])
    }

    /// A playlist with the songs c, a, b in this order, one without songs, a song in no playlist, and a disc with b and a.
    @Sendable private static func fill(_ context: ManagedObjectContext) {
        let lists = ["first", "second"].map { name in
            let list = context.insert("Playlist")
            list["name"] = .string(name)
            return list
        }
        let songs = ["a", "b", "c", "d"].map { title in
            let song = context.insert("Song")
            song["title"] = .string(title)
            return song
        }
        lists[0].setRelatedObjects("songs", to: [songs[2], songs[0], songs[1]])
        let disc = context.insert("Disc")
        disc["name"] = "disc"
        disc.setRelatedObjects("songs", to: [songs[1], songs[0]])
    }

    private func run(_ kind: StoreKind) async throws -> StudioRun {
        try await StudioRun(kind, "--write", model: try Self.model(), fill: Self.fill)
    }

    /// Returns the labels of the objects of a relationship, in the order of the page.
    private func labels(_ run: StudioRun, _ entity: String, _ key: String, _ name: String) async throws -> [String] {
        let object = try await run.json("object", ["entity": entity, "key": key])
        let related = try #require(object["relationships"] as? [[String: Any]]).first { $0["name"] as? String == name }
        return try #require(related?["members"] as? [[String: Any]]).map { $0["label"] as? String ?? "" }
    }

    private func song(_ run: StudioRun, _ title: String) async throws -> String {
        try #require(try await run.keys("Song", filter: "title = '\(title)'").first)
    }

    private func begin(_ run: StudioRun, _ entity: String, _ key: String?) async throws -> [String: Any] {
        var target = ["entity": entity]
        target["key"] = key
        return try await run.posted("edit/begin", target)
    }

    @Test(arguments: fileKinds)
    func `ordered lists are shown and edited in their order`(_ kind: StoreKind) async throws {
        let run = try await run(kind)
        let key = try #require(try await run.keys("Playlist", filter: "name = 'first'").first)
        #expect(try await labels(run, "Playlist", key, "songs") == ["c", "a", "b"])
        let form = try await begin(run, "Playlist", key)
        let lists = try #require(form["lists"] as? [[String: Any]])
        let songs = try #require(lists.first { $0["name"] as? String == "songs" })
        #expect(songs["isOrdered"] as? Bool == true && songs["destination"] as? String == "Song")
        let keys = try #require(songs["members"] as? [[String: Any]]).compactMap { $0["key"] as? String }
        let edit = try #require(form["edit"] as? String)
        let added = try await song(run, "d")
        // Without c, b before a, and with d in between.
        let wanted = [keys[2], added, keys[1]]
        let preview = try await run.posted("edit/preview", ["edit": edit, "values": [:], "lists": ["songs": wanted]])
        let changes = try #require(preview["changes"] as? [[String: Any]])
        #expect(changes.map { $0["name"] as? String } == ["songs"] && preview["isReady"] as? Bool == true, "\(preview)")
        #expect((changes[0]["before"] as? [String: Any])?["text"] as? String == keys.joined(separator: ", "))
        #expect((changes[0]["after"] as? [String: Any])?["text"] as? String == wanted.joined(separator: ", "))
        #expect(try await labels(run, "Playlist", key, "songs") == ["c", "a", "b"], "a preview saves nothing")
        _ = try await run.posted("edit/save", ["edit": edit])
        #expect(try await labels(run, "Playlist", key, "songs") == ["b", "d", "a"])
        let saves = try #require(try await run.json("history")["saves"] as? [[String: Any]])
        let changed = try #require(saves[0]["changes"] as? [[String: Any]]).compactMap { $0["entity"] as? String }
        #expect(Set(changed) == ["Playlist", "Song"], "hidden objects with positions are left out")
        // An order alone is a change, an equal one is none.
        let again = try #require(try await begin(run, "Playlist", key)["edit"] as? String)
        let same = try await run.posted("edit/preview", ["edit": again, "values": [:], "lists": ["songs": wanted]])
        #expect(same["isReady"] as? Bool == false && (same["changes"] as? [Any])?.isEmpty == true)
        _ = try await run.posted("edit/preview", ["edit": again, "values": [:], "lists": ["songs": Array(wanted.reversed())]])
        _ = try await run.posted("edit/save", ["edit": again])
        #expect(try await labels(run, "Playlist", key, "songs") == ["a", "d", "b"])
        #expect(try await run.stop() == 0)
    }

    @Test(arguments: fileKinds)
    func `many-to-many relationships are edited from both ends, and of new objects`(_ kind: StoreKind) async throws {
        let run = try await run(kind)
        let second = try #require(try await run.keys("Playlist", filter: "name = 'second'").first)
        let first = try #require(try await run.keys("Playlist", filter: "name = 'first'").first)
        let form = try await begin(run, "Song", try await song(run, "d"))
        let edit = try #require(form["edit"] as? String)
        _ = try await run.posted("edit/preview", ["edit": edit, "values": [:], "lists": ["playlists": [second, first]]])
        _ = try await run.posted("edit/save", ["edit": edit])
        #expect(try await labels(run, "Playlist", first, "songs") == ["c", "a", "b", "d"])
        #expect(try await labels(run, "Playlist", second, "songs") == ["d"])
        let disc = try await run.keys("Disc")[0]
        #expect(try await labels(run, "Disc", disc, "songs") == ["b", "a"])
        let new = try #require(try await begin(run, "Disc", nil)["edit"] as? String)
        let songs = [try await song(run, "a"), try await song(run, "b")]
        let preview = try await run.posted(
            "edit/preview", ["edit": new, "values": ["name": "third"], "lists": ["songs": songs]])
        #expect(preview["isReady"] as? Bool == true, "\(preview)")
        let saved = try #require(try await run.posted("edit/save", ["edit": new])["key"] as? String)
        #expect(try await labels(run, "Disc", saved, "songs") == ["a", "b"])
        #expect(try await labels(run, "Disc", disc, "songs").isEmpty, "a song is on one disc")
        #expect(try await run.stop() == 0)
    }

    @Test(arguments: fileKinds)
    func `wrong members and those that another context deletes are refused in words`(_ kind: StoreKind) async throws {
        let run = try await run(kind)
        let key = try #require(try await run.keys("Playlist", filter: "name = 'second'").first)
        let form = try await begin(run, "Playlist", key)
        let edit = try #require(form["edit"] as? String)
        let doomed = try await song(run, "d")
        for (lists, text) in [
            (["songs": ["424242"]], "no Song with the key 424242"), (["songs": [doomed, doomed]], "occurs twice"),
            (["songs": ["x"]], "no key of an object"), (["name": [doomed]], "no to-many relationship name"),
            (["songs": (0..<600).map { "\($0)" }], "too many"),
        ] {
            let refused = try await run.post("edit/preview", ["edit": edit, "values": [:], "lists": lists])
            #expect(refused.status == 400 && refused.error?.contains(text) == true, "\(refused.text)")
        }
        let good = try await run.posted("edit/preview", ["edit": edit, "values": [:], "lists": ["songs": [doomed]]])
        #expect(good["isReady"] as? Bool == true)
        // The song is deleted by another edit before the save.
        let other = try #require(try await begin(run, "Song", doomed)["edit"] as? String)
        _ = try await run.posted("edit/preview", ["edit": other, "values": [:], "isDeletion": true])
        _ = try await run.posted("edit/save", ["edit": other])
        let saved = try await run.post("edit/save", ["edit": edit])
        #expect(saved.status == 409 && saved.error?.contains("nothing was saved") == true, "\(saved.text)")
        #expect(try await labels(run, "Playlist", key, "songs").isEmpty)
        #expect(try await run.stop() == 0)
    }

    @Test(arguments: fileKinds)
    func `members that another context adds meanwhile are kept`(_ kind: StoreKind) async throws {
        let run = try await run(kind)
        let key = try #require(try await run.keys("Playlist", filter: "name = 'second'").first)
        let (a, b) = (try await song(run, "a"), try await song(run, "b"))
        let edits = try await [begin(run, "Playlist", key), begin(run, "Playlist", key)].compactMap { $0["edit"] as? String }
        _ = try await run.posted("edit/preview", ["edit": edits[0], "values": [:], "lists": ["songs": [a]]])
        _ = try await run.posted("edit/preview", ["edit": edits[1], "values": [:], "lists": ["songs": [b]]])
        _ = try await run.posted("edit/save", ["edit": edits[0]])
        let second = try await run.post("edit/save", ["edit": edits[1]])
        // Both were added, or the second was refused. None is lost in silence.
        let found = Set(try await labels(run, "Playlist", key, "songs"))
        #expect(second.status == 200 ? found == ["a", "b"] : second.status == 409 && found == ["a"], "\(second.text) \(found)")
        #expect(try await run.stop() == 0)
    }

    @Test(arguments: fileKinds)
    func `an object that another context moves in the same list is a conflict in words`(_ kind: StoreKind) async throws {
        let run = try await run(kind)
        let (a, b, c) = (try await song(run, "a"), try await song(run, "b"), try await song(run, "c"))
        for (entity, name, orders) in [
            ("Playlist", "first", [[a, b, c], [a, b, c]]), ("Disc", "disc", [[a, b], [a, b]]),
        ] {
            let key = try #require(try await run.keys(entity, filter: "name = '\(name)'").first)
            let early = try #require(try await begin(run, entity, key)["edit"] as? String)
            let late = try #require(try await begin(run, entity, key)["edit"] as? String)
            for (edit, order) in zip([early, late], orders) {
                let preview = try await run.posted("edit/preview", ["edit": edit, "values": [:], "lists": ["songs": order]])
                #expect(preview["isReady"] as? Bool == true, "\(preview)")
            }
            _ = try await run.posted("edit/save", ["edit": early])
            let saved = try await labels(run, entity, key, "songs")
            let refused = try await run.post("edit/save", ["edit": late])
            #expect(refused.status == 409 && refused.error?.contains("Edit it again") == true, "\(refused.text)")
            #expect(refused.error?.contains("moved") == true && refused.error?.contains("position") == false, "\(refused.text)")
            #expect(try await labels(run, entity, key, "songs") == saved)
        }
        #expect(try await run.stop() == 0)
    }
}
