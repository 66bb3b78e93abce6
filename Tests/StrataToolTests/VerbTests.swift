import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import StrataTool
import TestSupport
import Testing

/// The verbs that read, check and copy a store.
@Suite struct VerbTests {
    private func shop(_ kind: StoreKind) async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        return folder
    }

    @Test(arguments: fileKinds) func `info counts the objects of each entity and shows the history`(_ kind: StoreKind)
        async throws
    {
        let folder = try await shop(kind)
        let text = await ToolRun("info", folder.path("shop"))
        #expect(text.status == 0 && text.errors.isEmpty)
        #expect(text.output.contains("4 entities, 12 objects"))
        let json = try await ToolRun("info", folder.path("shop"), "--json").object()
        let entities = try #require(json["entities"] as? [[String: Any]])
        #expect(entities.map { $0["objects"] as? Int } == [2, 3, 6, 1])
        #expect((json["history"] as? [String: Any])?["newest"] as? Int == 1)
        #expect((json["bytes"] as? Int ?? 0) > 0)
        // SQLite knows the sizes of its tables only if it was compiled with its statistics of pages.
        let tables = try #require(json["tables"] as? [[String: Any]])
        #expect(kind == .sqlite || !tables.isEmpty)
        #expect(tables.isEmpty || (entities[2]["pageBytes"] as? Int ?? 0) > 0 && (entities[2]["indexBytes"] as? Int ?? 0) > 0)
        #expect((entities[0]["source"] as? String)?.contains("@Attribute(.unique) var name: String") == true)
        // The classes are at the end, as `model` prints them.
        let classes = await ToolRun("model", folder.path("shop")).output.components(separatedBy: "\n\n@Model").dropFirst()
        #expect(text.output.hasSuffix(classes.map { "\n\n@Model" + $0 }.joined()), "\(text)")
        #expect(await ToolRun("info", folder.path("shop"), "--no-model").lines == text.lines.prefix { !$0.hasPrefix("@Model") })
    }

    @Test(arguments: fileKinds) func `model prints classes with the names of both ends`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let run = await ToolRun("model", folder.path("shop"))
        #expect(run.status == 0)
        #expect(
            run.output == """
                import Foundation
                import Strata

                @Model final class Band {
                    @Attribute(.unique) var name: String
                    var since: Date?
                    var isActive: Bool
                    @Relationship(inverse: \\Album.band) var albums: [Album]
                }

                @Model final class Album {
                    var title: String
                    var price: Double
                    @Relationship var band: Band?
                    @Relationship(inverse: \\Song.album) var songs: [Song]

                    #Index<Album>([\\.band, \\.title])
                }

                @Model final class Song {
                    var title: String
                    @Attribute(.indexed) var seconds: Int32
                    var text: String?
                    @Relationship var album: Album?
                    @Relationship var lists: [List]
                }

                @Model final class List {
                    var name: String
                    @Relationship(inverse: \\Song.lists) var songs: [Song]
                }

                """)
        let json = try await ToolRun("model", folder.path("shop"), "--json").object()
        #expect((json["classes"] as? [Any])?.count == 4)
    }

    @Test(arguments: fileKinds) func `get shows an object with its relationships`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let rows = try await ToolRun("query", folder.path("shop"), "List", "--json").list()
        let key = try #require(rows.first?["$key"] as? Int)
        let json = try await ToolRun("get", folder.path("shop"), "list", "\(key)", "--json").object()
        #expect(json["name"] as? String == "even")
        #expect((json["songs"] as? [Int])?.count == 3)
        let id = try #require(json["$id"] as? String)
        let byID = await ToolRun("get", folder.path("shop"), id)
        #expect(byID.status == 0 && byID.output.contains("3 of Song: "))
        #expect(await ToolRun("get", folder.path("shop"), "List", "999999").isRefused(1, naming: "999999"))
        #expect(await ToolRun("get", folder.path("shop"), "Lost", "1").isRefused(naming: "Lost", "did you mean List?"))
        #expect(await ToolRun("get", folder.path("shop"), "1").isRefused(naming: "Track 12"))
        let other = "strata://\(UUID().uuidString)/0/1"
        #expect(await ToolRun("get", folder.path("shop"), other).isRefused(naming: other))
        let tooFar = id.replacing(/\/\d+\/\d+$/, with: "/77/1")
        #expect(await ToolRun("get", folder.path("shop"), tooFar).isRefused(naming: "77"))
    }

    @Test(arguments: fileKinds) func `backup and compact write copies that diff finds equal`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let (shop, copy) = (folder.path("shop"), folder.path("copy"))
        #expect(await ToolRun("backup", shop, copy).status == 0)
        #expect(await ToolRun("backup", shop, copy).isRefused(naming: copy, "already exists"))
        #expect(await ToolRun("backup", shop, copy, "--replace", "--json").status == 0)
        #expect(try await ToolRun("diff", shop, copy, "--json").list().isEmpty)
        guard kind == .lmdb else {
            for arguments in [["--write"], ["--to", folder.path("small")]] {
                #expect(await ToolRun(["compact", shop] + arguments).isRefused(naming: "SQLite", "strata backup"))
            }
            return
        }
        let packed = await ToolRun("compact", shop, "--to", folder.path("small"), "--json")
        #expect(packed.status == 0, "\(packed)")
        #expect(await ToolRun("diff", shop, folder.path("small")).lines == ["no differences"])
        #expect(await ToolRun("verify", folder.path("small")).status == 0)
        #expect(await ToolRun("compact", shop).isRefused(naming: "--to", "--write"))
        #expect(await ToolRun("compact", shop, "--write", "--json").status == 0)
        #expect(await ToolRun("diff", shop, copy).status == 0)
    }

    @Test(arguments: fileKinds) func `diff shows what has changed since a backup, and between two saves`(_ kind: StoreKind)
        async throws
    {
        let folder = try await shop(kind)
        let (shop, old) = (folder.path("shop"), folder.path("old"))
        #expect(await ToolRun("backup", shop, old).status == 0)
        let container = try await folder.container("shop", kind, Shop.model)
        try await container.write { context in
            let songs = try context.fetch(EntityFetchRequest("Song", sortBy: [.init("seconds")]))
            songs[0]["title"] = "Changed"
            songs[1].setRelatedObjects("lists", to: [])
            context.delete(songs[5])
            context.insert("List")["name"] = "new"
        }
        try await container.write { context in context.insert("List")["name"] = "short-lived" }
        try await container.write { context in
            for list in try context.fetch(EntityFetchRequest("List", matching: .equal("name", "short-lived"))) {
                context.delete(list)
            }
        }
        try await container.close()
        for arguments in [["diff", old, shop], ["diff", shop, "--from", "1"]] {
            let run = await ToolRun(arguments + ["--json"])
            #expect(run.status == 1 && run.errors.isEmpty)
            let list = try run.list()
            let kinds = list.map { "\($0["kind"] ?? "") \($0["entity"] ?? "")" }
            // The list that lost two of its songs has changed, too: a link is compared at its source, and listed at both ends by the history.
            #expect(Set(kinds).isSuperset(of: ["update Song", "delete Song", "insert List"]), "\(kinds)")
            #expect(kinds.count { $0 == "insert List" } == 1, "an object that was deleted again is no difference")
        }
        let text = await ToolRun("diff", old, shop)
        #expect(text.lines.contains { $0.contains("title: Song 1 → Changed") })
        #expect(text.lines.contains { $0.contains("lists: 1 objects → 0 objects") })
        #expect(!text.output.contains("history"), "both files have the values")
        #expect(await ToolRun("diff", shop, "--from", "1", "--to", "1").lines == ["no differences"])
        #expect(await ToolRun("diff", shop, "--from", "99").isRefused(naming: "99"))
        #expect(await ToolRun("diff", shop).isRefused(naming: "--from"))
    }

    @Test(arguments: fileKinds)
    func `diff of two saves leaves out the values that the history does not keep, and says which`(_ kind: StoreKind) async throws
    {
        let folder = try ToolFolder()
        var descriptions = EntityDescription.all(in: Shop.model.storeSchema)
        descriptions[3].properties[0] = .attribute(.init(name: "name", type: .string, preservesValueOnDeletion: true))
        let model = try Model(descriptions)
        try await folder.fill("shop", kind, model) { context in
            let song = context.insert("Song")
            song["title"] = "one"
            song["seconds"] = .int(1)
            context.insert("List")["name"] = "kept"
        }
        for title in ["two", "three"] {
            try await folder.fill("shop", kind, model) { context in
                let song = try context.fetch(EntityFetchRequest("Song"))[0]
                song["title"] = .string(title)
                if title == "two" { song["seconds"] = .int(2) }
            }
        }
        let shop = folder.path("shop")
        func run(_ options: String...) async -> (texts: [String], hints: [String]) {
            let lines = await ToolRun(["diff", shop] + options).lines
            return (lines.filter { "+-~".contains($0.prefix(1)) }, lines.filter { !"+-~".contains($0.prefix(1)) })
        }
        let updates = await run("--from", "1")
        #expect(updates.texts.count == 1 && updates.texts[0].hasSuffix("  seconds: → 2, title: → three"), "\(updates)")
        #expect(updates.hints.count == 1 && updates.hints[0].contains("former values of updated properties"), "\(updates)")
        // The third save has changed the title again.
        let first = await run("--from", "1", "--to", "2")
        #expect(first.texts.count == 1 && first.texts[0].hasSuffix("  seconds: → 2, title"), "\(first)")
        #expect(first.hints.count == 2 && first.hints[1].contains("later saves have changed"), "\(first)")
        let json = try await ToolRun("diff", shop, "--from", "1", "--to", "2", "--json").list()
        let properties = try #require(json[0]["properties"] as? [[String: Any]])
        #expect(properties.allSatisfy { $0["before"] is NSNull } && properties[0]["after"] as? Int == 2)
        #expect(properties[1]["after"] is NSNull)
        #expect(properties.map { $0["unknown"] as? [String] } == [["before"], ["before", "after"]])
        // Deleted objects keep preserved values only.
        try await folder.fill("shop", kind, model) { context in
            for list in try context.fetch(EntityFetchRequest("List")) { context.delete(list) }
        }
        let kept = await run("--from", "3")
        #expect(kept.texts.count == 1 && kept.texts[0].hasSuffix("  name: kept → nil") && kept.hints.isEmpty, "\(kept)")
        let preserved = try await ToolRun("diff", shop, "--from", "3", "--json").list()
        #expect((preserved[0]["properties"] as? [[String: Any]])?.allSatisfy { $0["unknown"] == nil } == true)
        try await folder.fill("shop", kind, model) { context in
            for song in try context.fetch(EntityFetchRequest("Song")) { context.delete(song) }
        }
        let deleted = await run("--from", "4")
        #expect(deleted.texts.count == 1 && !deleted.texts[0].contains("→"), "\(deleted)")
        #expect(deleted.hints.count == 1 && deleted.hints[0].contains(".preserveValueOnDeletion"), "\(deleted)")
        #expect(await !ToolRun("diff", shop, "--from", "1").output.contains("?"))
    }

    @Test(arguments: fileKinds) func `history lists saves by author and entity`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let container = try await folder.container("shop", kind, Shop.model)
        try await container.write { context in
            context.transactionAuthor = "ann"
            context.insert("List")["name"] = "a"
        }
        try await container.close()
        let shop = folder.path("shop")
        #expect(await ToolRun("history", shop).lines.count == 2)
        #expect(await ToolRun("history", shop, "--limit", "1").lines.first?.contains("by ann") == true)
        let saves = await ToolRun("history", shop, "--author", "ann", "--json").lines
        let save = try #require(try JSONSerialization.jsonObject(with: Data(saves[0].utf8)) as? [String: Any])
        #expect(saves.count == 1 && save["author"] as? String == "ann" && (save["changes"] as? [Any])?.count == 1)
        #expect(await ToolRun("history", shop, "--entity", "Band").lines.count == 1)
        #expect(await ToolRun("history", shop, "--after", "1").lines.count == 1)
        #expect(await ToolRun("history", shop, "--entity", "Bend").isRefused(naming: "Bend", "Band"))
    }

    @Test(arguments: fileKinds) func `verbs that read change no byte of the store`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let before = try folder.bytes("shop")
        let shop = folder.path("shop")
        var verbs = [
            ["info", shop], ["model", shop], ["query", shop, "Song"], ["get", shop, "Band", "64"], ["verify", shop],
            ["history", shop],
            ["export", shop, "-"], ["diff", shop, "--from", "0"], ["backup", shop, folder.path("copy")],
            ["repair", shop, folder.path("repaired")], ["migrate", "--check", shop, "--model", shop],
        ]
        if kind == .lmdb { verbs.append(["compact", shop, "--to", folder.path("small")]) }
        for arguments in verbs {
            let run = await ToolRun(arguments)
            #expect(run.status < 2, "\(arguments[0]): \(run.errors)")
            #expect(try folder.bytes("shop") == before, "\(arguments[0])")
        }
    }

    @Test(arguments: fileKinds) func `a store that another process has open can be read`(_ kind: StoreKind) async throws {
        let folder = try await shop(kind)
        let container = try await folder.container("shop", kind, Shop.model)
        try await container.write { context in context.insert("List")["name"] = "while open" }
        await #expect(processExitsWith: .success) {
            [shop = folder.path("shop") as String, copy = folder.path("copy") as String] in
            let count = await ToolRun("query", shop, "List", "--count")
            guard count.output == "2\n" else { fatalError("\(count)") }
            for arguments in [
                ["info", shop], ["verify", shop], ["export", shop, "-"], ["backup", shop, copy], ["history", shop],
            ] {
                let run = await ToolRun(arguments)
                guard run.status == 0 else { fatalError("\(arguments[0]): \(run.errors)") }
            }
        }
        // The store is not disturbed.
        try await container.write { context in context.insert("List")["name"] = "afterwards" }
        let count = try await container.read { try $0.count(EntityFetchRequest("List")) }
        #expect(count == 3)
        try await container.close()
    }

    @Test func `a file that is missing or no store is refused with one line`() async throws {
        let folder = try ToolFolder()
        let text = folder.path("text")
        try Data("hello".utf8).write(to: URL(fileURLWithPath: text))
        let empty = folder.path("empty")
        try Data().write(to: URL(fileURLWithPath: empty))
        for verb in ["info", "model", "verify", "history"] {
            #expect(await ToolRun(verb, folder.path("missing")).isRefused(naming: "missing", "no such file"), "\(verb)")
            #expect(await ToolRun(verb, text).isRefused(naming: "text"), "\(verb)")
            #expect(await ToolRun(verb, empty).isRefused(naming: "empty"), "\(verb)")
            #expect(await ToolRun(verb, folder.url.path).isRefused(naming: "folder"), "\(verb)")
        }
        #expect(await ToolRun("export", text, "-").isRefused(naming: "text"))
        #expect(!FileManager.default.fileExists(atPath: folder.path("missing")))
    }

    @Test func `a damaged file is an error and no crash, whatever bytes are wrong`() async throws {
        let folder = try await shop(.lmdb)
        let sound = try folder.bytes("shop")
        var random = SeededGenerator()
        var found = 0
        for round in 0..<Rounds.of(40, long: 400) {
            var bytes = sound
            for _ in 0..<(1 + random.below(30)) { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            let name = "damaged\(round)"
            try bytes.write(to: folder.url.appending(path: name))
            let verify = await ToolRun("verify", folder.path(name))
            if verify.status != 0 { found += 1 }
            for arguments in [
                ["info", folder.path(name)], ["export", folder.path(name), "-"], ["query", folder.path(name), "Song"],
            ] {
                let run = await ToolRun(arguments)
                #expect((0...2).contains(run.status))
                if run.status != 0 { #expect(run.errors.split(separator: "\n").count == 1, "\(run.errors)") }
            }
        }
        #expect(found > 0)
        try sound.prefix(sound.count / 2).write(to: folder.url.appending(path: "short"))
        #expect(await ToolRun("info", folder.path("short")).isRefused(naming: "short"))
        #expect(await ToolRun("verify", folder.path("short")).status == 1)
    }

    @Test func `a wrong verb, option or argument has the status 2, and help has 0`() async throws {
        #expect(await ToolRun("inof", "x").isRefused(naming: "inof", "did you mean info?"))
        #expect(await ToolRun("info").isRefused())
        #expect(await ToolRun("info", "x", "--jsn").isRefused(naming: "--jsn"))
        #expect(await ToolRun("query", "x", "Song", "--limit", "-1").isRefused(naming: "--limit"))
        for arguments in [["--help"], ["help", "query"], ["query", "--help"], ["--version"], []] {
            let run = await ToolRun(arguments)
            #expect(run.status == 0 && !run.output.isEmpty && run.errors.isEmpty, "\(arguments): \(run)")
        }
        for shell in ["bash", "zsh", "fish"] {
            let script = await ToolRun("--generate-completion-script", shell)
            #expect(script.status == 0 && script.output.contains("query"))
        }
    }
}
