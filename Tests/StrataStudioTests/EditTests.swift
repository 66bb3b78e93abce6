import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Changes of objects by the page.
@Suite struct EditTests {
    private func begin(_ run: StudioRun, _ entity: String, _ key: String?) async throws -> String {
        var target = ["entity": entity]
        target["key"] = key
        return try #require(try await run.posted("edit/begin", target)["edit"] as? String)
    }

    private func titles(_ run: StudioRun, _ filter: String) async throws -> [String] {
        let rows = try #require(
            try await run.json("table", ["entity": "Track", "filter": filter])["rows"] as? [[String: Any]])
        return rows.compactMap { ($0["cells"] as? [[String: Any]])?.first?["text"] as? String }
    }

    @Test(arguments: fileKinds)
    func `an edit is previewed without saving, then saved, and the history names the page`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind, "--write")
        let key = try await run.keys("Track", filter: "plays = 7")[0]
        let edit = try await begin(run, "Track", key)
        let preview = try await run.posted(
            "edit/preview", ["edit": edit, "values": ["title": "changed", "isrc": "X1", "plays": "7"]])
        let changes = try #require(preview["changes"] as? [[String: Any]])
        #expect(changes.map { $0["name"] as? String } == ["title", "isrc"], "an equal value is no change")
        #expect((changes[0]["before"] as? [String: Any])?["text"] as? String == "Track 7")
        #expect((changes[0]["after"] as? [String: Any])?["text"] as? String == "changed")
        #expect(preview["isReady"] as? Bool == true && preview["failure"] == nil)
        #expect(try await titles(run, "plays = 7") == ["Track 7"], "a preview saves nothing")
        let saved = try await run.posted("edit/save", ["edit": edit])
        #expect(saved["save"] as? Int == 2 && saved["key"] as? String == key)
        #expect(try await titles(run, "plays = 7") == ["changed"])
        let save = try #require(try await run.json("history")["saves"] as? [[String: Any]])[0]
        #expect(save["author"] as? String == "strata studio" && save["count"] as? Int == 1)
        let change = try #require((save["changes"] as? [[String: Any]])?[0])
        #expect(change["properties"] as? [String] == ["isrc", "title"] && change["key"] as? String == key)
        let difference = try #require((change["difference"] as? [String: Any])?["properties"] as? [[String: Any]])
        #expect((difference[0]["before"] as? [String: Any])?["text"] as? String == "Track 7")
        // An edit ends with its save.
        #expect(try await run.post("edit/save", ["edit": edit]).status == 410)
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `a save is refused in words if another context has changed the object since the edit began`(_ kind: StoreKind)
        async throws
    {
        let run = try await StudioRun(kind, "--write")
        let key = try await run.keys("Track", filter: "plays = 7")[0]
        let early = try await begin(run, "Track", key)
        let late = try await begin(run, "Track", key)
        #expect(try await run.posted("edit/preview", ["edit": late, "values": ["title": "mine"]])["isReady"] as? Bool == true)
        let container = try await run.container()
        try await container.write { context in
            try context.fetch(EntityFetchRequest("Track", matching: .equal("plays", .int(7))))[0]["title"] = "theirs"
        }
        // An edit that was previewed before the other save, and one that was not.
        let refused = try await run.post("edit/save", ["edit": late])
        #expect(refused.status == 409)
        #expect(refused.error?.contains("Edit it again") == true && refused.error?.contains("theirs") == true, "\(refused.text)")
        let preview = try await run.posted("edit/preview", ["edit": early, "values": ["title": "mine too"]])
        #expect(preview["isReady"] as? Bool == false)
        #expect((preview["failure"] as? String)?.contains("in the store \"theirs\"") == true, "\(preview)")
        #expect(try await run.post("edit/save", ["edit": early]).status == 409)
        #expect(try await titles(run, "plays = 7") == ["theirs"])
        // A new edit shows the newest values, and saves.
        let again = try await begin(run, "Track", key)
        _ = try await run.posted("edit/preview", ["edit": again, "values": ["title": "mine"]])
        _ = try await run.posted("edit/save", ["edit": again])
        #expect(try await titles(run, "plays = 7") == ["mine"])
        try await container.close()
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `a wrong value, reference or duplicate is shown, and nothing is saved`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind, "--write")
        let keys = try await run.keys("Track")
        let first = try await begin(run, "Track", keys[0])
        _ = try await run.posted("edit/preview", ["edit": first, "values": ["isrc": "A"]])
        _ = try await run.posted("edit/save", ["edit": first])
        let edit = try await begin(run, "Track", keys[1])
        let wrong = try await run.post("edit/preview", ["edit": edit, "values": ["plays": "many"]])
        #expect(wrong.status == 400 && wrong.error?.contains("\"many\" is no value of the type int64") == true, "\(wrong.text)")
        let missing = try await run.post("edit/preview", ["edit": edit, "values": ["album": "424242"]])
        #expect(missing.status == 400 && missing.error?.contains("no Album with the key 424242") == true, "\(missing.text)")
        let unknown = try await run.post("edit/preview", ["edit": edit, "values": ["nothing": "1"]])
        #expect(unknown.status == 400)
        for (values, text) in [(["isrc": "A"] as [String: Any], "must be unique"), (["title": NSNull()], "title")] {
            let preview = try await run.posted("edit/preview", ["edit": edit, "values": values])
            #expect(preview["isReady"] as? Bool == false)
            #expect((preview["failure"] as? String)?.contains(text) == true, "\(preview)")
            #expect(try await run.post("edit/save", ["edit": edit]).status == 409)
        }
        // Without a preview, or after one that failed in the middle, nothing is saved.
        let other = try await begin(run, "Track", keys[2])
        #expect(try await run.post("edit/save", ["edit": other]).status == 409)
        _ = try await run.posted("edit/preview", ["edit": other, "values": ["rating": "3.5"]])
        #expect(
            try await run.post("edit/preview", ["edit": other, "values": ["rating": "1.5", "album": "424242"]]).status == 400)
        #expect(try await run.post("edit/save", ["edit": other]).status == 409)
        #expect(try await run.keys("Track", filter: "rating != 2.5").isEmpty)
        // A refused value of an earlier preview is not saved with a later one.
        let good = try await run.posted("edit/preview", ["edit": edit, "values": ["rating": "4.5"]])
        #expect((good["changes"] as? [[String: Any]])?.map { $0["name"] as? String } == ["rating"])
        _ = try await run.posted("edit/save", ["edit": edit])
        let rows = try await run.json("table", ["entity": "Track", "filter": "rating = 4.5"])
        #expect(rows["total"] as? Int == 1)
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `objects are inserted, related by keys, and deleted, and a preview names the other objects`(_ kind: StoreKind)
        async throws
    {
        let run = try await StudioRun(kind, "--write")
        let artists = try await run.keys("Artist")
        let album = try await run.keys("Album")[0]
        // Insert.
        let new = try await begin(run, "Album", nil)
        _ = try await run.posted("edit/preview", ["edit": new, "values": ["title": "dropped"]])
        _ = try await run.posted("edit/preview", ["edit": new, "values": ["title": "Definitely Maybe", "artist": artists[1]]])
        let saved = try await run.posted("edit/save", ["edit": new])
        let key = try #require(saved["key"] as? String)
        #expect(try await run.keys("Album", filter: "artist.name = 'Oasis'") == [key])
        #expect(try await run.keys("Album").count == 2, "an earlier preview inserts nothing")
        // Set a reference to another object, and to nil.
        let move = try await begin(run, "Album", key)
        _ = try await run.posted("edit/preview", ["edit": move, "values": ["artist": NSNull()]])
        _ = try await run.posted("edit/save", ["edit": move])
        #expect(try await run.keys("Album", filter: "artist = nil") == [key])
        // Delete. The file stores no delete rules, so references become nil.
        let delete = try await begin(run, "Album", album)
        let preview = try await run.posted("edit/preview", ["edit": delete, "values": [:], "isDeletion": true])
        let others = try #require(preview["others"] as? [String])
        #expect(
            others.count == 21 && others[0].hasPrefix("changes Track ") && others[20] == "… and 100 more objects", "\(others)")
        _ = try await run.posted("edit/save", ["edit": delete])
        #expect(try await run.keys("Album") == [key])
        #expect(try await run.keys("Track", filter: "album = nil").count == 120)
        try await run.stop()
    }

    @Test(arguments: fileKinds)
    func `without --write nothing can be changed`(_ kind: StoreKind) async throws {
        let run = try await StudioRun(kind)
        let key = try await run.keys("Track")[0]
        let response = try await run.post("edit/begin", ["entity": "Track", "key": key])
        #expect(response.status == 403 && response.error?.contains("--write") == true)
        try await run.stop()
    }

    @Test func `an abandoned edit is released, and only a few are kept`() async throws {
        let run = try await StudioRun(.lmdb, "--write")
        let keys = try await run.keys("Track")
        var edits: [String] = []
        for key in keys.prefix(9) { edits.append(try await begin(run, "Track", key)) }
        let released = try await run.post("edit/preview", ["edit": edits[0], "values": [:]])
        #expect(released.status == 410 && released.error?.contains("too many others were opened") == true)
        #expect(try await run.post("edit/preview", ["edit": edits[8], "values": [:]]).status == 200)
        _ = try await run.posted("edit/cancel", ["edit": edits[8]])
        #expect(try await run.post("edit/preview", ["edit": edits[8], "values": [:]]).status == 410)
        try await run.stop()
    }
}
