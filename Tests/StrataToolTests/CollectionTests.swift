import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Keyed collections in the verbs of the tool: they are copied, compared and shown like objects.
@Suite struct CollectionTests {
    struct Draft: Codable, Sendable, Equatable {
        var title: String
        var words = 0
    }

    /// Collections with keys and values of several kinds: texts, JSON, numbers, data of several sizes, tuples, and an empty collection.
    @Sendable static func fill(_ context: ManagedObjectContext) throws {
        Shop.fill(context)
        let drafts = try context.collection("drafts", of: Draft.self)
        drafts["spring"] = Draft(title: "Spring \"1\"", words: 3)
        drafts["a/b"] = Draft(title: "a/b")
        drafts[""] = Draft(title: "")
        let names = try context.collection("names", of: String.self, key: (String, Int).self)
        names[("x", -1)] = "minus\n"
        names[("x\u{0}", 2)] = ""
        try context.collection("times", of: Double.self, key: Date.self)[Date(timeIntervalSinceReferenceDate: 0.5)] = 0.1
        let blobs = try context.collection("blobs", of: Data.self, key: UUID.self)
        for count in [0, 1, 100_000] { blobs[UUID()] = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }) }
        // Eight bytes that look like JSON.
        try context.collection("ints", of: Int.self, key: Data.self)[Data([0, 255])] = 0x3131_3131_3131_3131
        let empty = try context.collection("empty", of: Bool.self)
        empty["a"] = true
        empty["a"] = nil
    }

    private static func filled(_ kind: StoreKind) async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, fill)
        return folder
    }

    @Test(arguments: fileKinds)
    func `S192: collections are exported and imported in each form, with equal bytes and without differences`(
        _ kind: StoreKind
    ) async throws {
        let folder = try await Self.filled(kind)
        let shop = folder.path("shop")
        for form in ["jsonl", "csv", "sqlite", "store"] {
            let (first, second) = (folder.path("first-\(form)"), folder.path("second-\(form)"))
            let back = folder.path("back-\(form)")
            let run =
                form == "store"
                ? await ToolRun("import", shop, first) : await ToolRun("export", shop, first, "--format", form, "--json")
            #expect(run.status == 0, "\(form): \(run)")
            if form != "store" { #expect((try run.object()["collections"] as? [String: Int])?["drafts"] == 3, "\(run)") }
            #expect(await ToolRun("import", first, back).status == 0)
            let difference = await ToolRun("diff", shop, back)
            #expect(difference.status == 0, "\(form): \(difference)")
            guard form == "jsonl" || form == "csv" else { continue }
            #expect(await ToolRun("export", back, second, "--format", form).status == 0)
            for name in form == "jsonl" ? [""] : ["/$collections.csv", "/Song.csv", "/model.json"] {
                #expect(try folder.bytes("first-\(form)" + name) == folder.bytes("second-\(form)" + name), "\(form)\(name)")
            }
        }
        // An export without collections does not leave those of a former one.
        try await folder.fill("plain", kind, Shop.model, Shop.fill)
        #expect(await ToolRun("export", folder.path("plain"), folder.path("first-csv"), "--replace").status == 0)
        #expect(!FileManager.default.fileExists(atPath: folder.path("first-csv/$collections.csv")))
    }

    /// Catches: names that are compared as texts, so that the entries of one collection are read with the types of the other one.
    @Test(arguments: fileKinds)
    func `S192: collections whose names look alike, but have other bytes, are exported, imported and shown apart`(
        _ kind: StoreKind
    ) async throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model) { context in
            Shop.fill(context)
            let texts = try context.collection(decomposed, of: String.self)
            texts["a"] = "text"
            texts["b"] = "text"
            try context.collection(composed, of: Data.self, key: Int.self)[7] = Data([0, 255])
        }
        let shop = folder.path("shop")
        for form in ["jsonl", "csv", "store"] {
            let (file, back) = (folder.path("first-\(form)"), folder.path("back-\(form)"))
            let run =
                form == "store" ? await ToolRun("import", shop, file) : await ToolRun("export", shop, file, "--format", form)
            #expect(run.status == 0 && (run.output + run.errors).contains("3 entries of 2 collections"), "\(form): \(run)")
            #expect(await ToolRun("import", file, back).status == 0, "\(form)")
            #expect(await ToolRun("diff", shop, back).lines == ["no differences"], "\(form)")
        }
        #expect(await ToolRun("get", shop, decomposed).lines == ["a  text", "b  text"])
        #expect(await ToolRun("get", shop, composed).lines == ["7  2 bytes"])
    }

    @Test(arguments: fileKinds) func `S192: a wrong line of a collection is refused with its place`(_ kind: StoreKind)
        async throws
    {
        let folder = try await Self.filled(kind)
        let file = folder.path("shop.jsonl")
        #expect(await ToolRun("export", folder.path("shop"), file).status == 0)
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
        for wrong in [
            #"{"$collection":"new","key":["a"],"value":"b"}"#, #"{"$collection":"drafts","key":["a"]}"#,
            #"{"$collection":"drafts","key":["a","b"],"value":1}"#, #"{"$collection":"ints","key":["00"],"value":1}"#,
            #"{"$entity":"Band","$id":9,"name":"late","isActive":true}"#, #"{"$collection":"drafts","keyData":"?","value":1}"#,
        ] {
            try (lines + [wrong]).joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
            let run = await ToolRun("import", file, folder.path("new"))
            #expect(run.isRefused(naming: "shop.jsonl:\(lines.count + 1)"), "\(wrong): \(run)")
        }
    }

    @Test(arguments: fileKinds)
    func `S192: diff shows changed entries of two stores and of two saves, with the status 1`(_ kind: StoreKind) async throws {
        let folder = try await Self.filled(kind)
        let (shop, old) = (folder.path("shop"), folder.path("old"))
        #expect(await ToolRun("backup", shop, old).status == 0)
        #expect(await ToolRun("diff", old, shop).lines == ["no differences"])
        let container = try await folder.container("shop", kind, Shop.model)
        try await container.write { context in
            let drafts = try context.collection("drafts", of: Draft.self)
            drafts["spring"]?.words = 4
            drafts["new"] = Draft(title: "New")
            drafts[""] = nil
            try context.collection("more", of: Int.self, key: Int.self)[7] = 8
        }
        try await container.close()
        let stores = await ToolRun("diff", old, shop)
        #expect(stores.status == 1)
        #expect(
            stores.lines == [
                "+ collection more  types: nil → Int under Int", "- drafts[]", "+ drafts[new]",
                #"~ drafts[spring]  value: {"title":"Spring \"1\"","words":3} → {"title":"Spring \"1\"","words":4}"#, "+ more[7]",
            ], "\(stores)")
        let list = try await ToolRun("diff", old, shop, "--json").list()
        #expect(list.allSatisfy { $0["collection"] != nil && $0["entity"] == nil })
        #expect(list[3]["key"] as? [String] == ["spring"])
        let saves = await ToolRun("diff", shop, "--from", "1")
        #expect(saves.status == 1)
        #expect(saves.output.contains(#"~ drafts[spring]  value: → {"title":"Spring \"1\"","words":4}"#), "\(saves)")
        #expect(saves.output.contains("+ drafts[new]") && saves.output.contains("+ more[7]"), "\(saves)")
        #expect(saves.lines.last?.hasPrefix("The history does not keep the former values") == true)
    }

    @Test(arguments: fileKinds)
    func `S192: a key that is an object's id is shown with its entity and key, and found by them`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        let foreign = ObjectID(store: StoreIdentity(UUID()), entity: 2, key: 5)
        try await folder.fill("shop", kind, Shop.model) { context in
            try Self.fill(context)
            let notes = try context.collection("notes", of: String.self, key: ObjectID.self)
            let marks = try context.collection("marks", of: Int.self, key: (String, ObjectID).self)
            for band in try context.fetch(EntityFetchRequest("Band", sortBy: [.init("name")])) {
                notes[band.objectID] = "note"
                marks[("Band 1", band.objectID)] = 1
            }
            notes[foreign] = "foreign"
        }
        let shop = folder.path("shop")
        let bands = try await ToolRun("query", shop, "Band", "--sort", "name", "--json").list()
        let keys = try bands.map { try #require($0["$key"] as? Int) }
        let list = await ToolRun("get", shop, "notes")
        let own = keys.map { "Band \($0)  note" }
        #expect(Set(list.lines) == Set(own + ["\(foreign)  foreign"]), "\(list)")
        #expect(await ToolRun("get", shop, "marks").lines == keys.map { "Band 1, Band \($0)  1" })
        // Each form of the key finds the entry.
        let id = try #require(try await ToolRun("get", shop, "Band", "\(keys[0])", "--json").object()["$id"] as? String)
        for words in [["Band \(keys[0])"], ["Band", "\(keys[0])"], [id]] {
            let run = await ToolRun(["get", shop, "notes"] + words)
            #expect(run.output == "note\n", "\(words): \(run)")
        }
        #expect(await ToolRun("get", shop, "marks", "Band 1", "Band \(keys[1])").output == "1\n")
        #expect(await ToolRun("get", shop, "notes", "\(foreign)").output == "foreign\n")
        #expect(await ToolRun("get", shop, "notes", "Lost", "1").isRefused(naming: "notes", "ObjectID"))
        let json = try await ToolRun("get", shop, "notes", "--json").list()
        #expect(json.contains { ($0["key"] as? [String]) == [id] }, "\(json)")
        // The key survives an export, byte for byte.
        #expect(await ToolRun("export", shop, folder.path("shop.jsonl")).status == 0)
        #expect(await ToolRun("import", folder.path("shop.jsonl"), folder.path("again")).status == 0)
        #expect(await ToolRun("diff", shop, folder.path("again")).lines == ["no differences"])
        // Differences name the key, too.
        #expect(await ToolRun("backup", shop, folder.path("old")).status == 0)
        let container = try await folder.container("shop", kind, Shop.model)
        try await container.write { context in
            let band = try context.fetch(EntityFetchRequest("Band", sortBy: [.init("name")]))[0]
            try context.collection("notes", of: String.self, key: ObjectID.self)[band.objectID] = "new"
        }
        try await container.close()
        #expect(await ToolRun("diff", folder.path("old"), shop).lines == ["~ notes[Band \(keys[0])]  value: note → new"])
        #expect(
            await ToolRun("diff", shop, "--from", "1").lines.first == "~ notes[Band \(keys[0])]  value: → new")
    }

    @Test(arguments: fileKinds) func `S192: info lists the collections, and get shows their entries`(_ kind: StoreKind)
        async throws
    {
        let folder = try await Self.filled(kind)
        let shop = folder.path("shop")
        let text = await ToolRun("info", shop)
        #expect(text.lines.contains { $0.wholeMatch(of: /names +\(String, Int\) +String +2/) != nil }, "\(text)")
        let facts = try #require(try await ToolRun("info", shop, "--json").object()["collections"] as? [[String: Any]])
        #expect(facts.map { $0["name"] as? String } == ["blobs", "drafts", "empty", "ints", "names", "times"])
        #expect(facts.map { $0["entries"] as? Int } == [3, 3, 0, 1, 2, 1])
        #expect(await ToolRun("get", shop, "names", "x", "-1").output == "minus\n\n")
        #expect(await ToolRun("get", shop, "names", "--", "x", "-1").output == "minus\n\n")
        #expect(await ToolRun("get", shop, "drafts", "a/b").output == "{\"title\":\"a\\/b\",\"words\":0}\n")
        #expect(await ToolRun("get", shop, "times", "0.5").output == "0.1\n")
        #expect(await ToolRun("get", shop, "ints", "00ff").output == "3544668469065756977\n")
        #expect(await ToolRun("get", shop, "drafts").lines.count == 3)
        #expect(await ToolRun("get", shop, "blobs").output.contains("100000 bytes"))
        let drafts = try await ToolRun("get", shop, "drafts", "--json").list()
        #expect(drafts.compactMap { ($0["key"] as? [String])?.first } == ["", "a/b", "spring"])
        #expect((drafts[2]["value"] as? [String: Any])?["words"] as? Int == 3)
        #expect(try await ToolRun("get", shop, "empty", "--json").list().isEmpty)
        #expect(await ToolRun("get", shop, "drafts", "no").isRefused(1, naming: "drafts", "no"))
        #expect(await ToolRun("get", shop, "times", "soon").isRefused(naming: "times", "Date"))
        #expect(await ToolRun("get", shop, "draft").isRefused(naming: "draft"))
    }

    /// Catches: words that are no data, and find the entry of the digits that they contain.
    @Test(arguments: fileKinds)
    func `S192: a key of data is read only from hexadecimal digits, as it is shown`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model) { context in
            let values = try context.collection("values", of: String.self, key: Data.self)
            values[Data()] = "empty"
            values[Data([0, 255])] = "two"
        }
        let shop = folder.path("shop")
        #expect(await ToolRun("get", shop, "values").lines == ["  empty", "00ff  two"])
        for key in ["00ff", "00FF"] { #expect(await ToolRun("get", shop, "values", key).output == "two\n", "\(key)") }
        #expect(await ToolRun("get", shop, "values", "").output == "empty\n")
        let wrong = ["no", "0x00ff", "00 ff", "00-ff", "00f", "\u{FF10}\u{FF10}\u{FF46}\u{FF46}", "00ff\u{301}"]
        for key in wrong {
            let run = await ToolRun("get", shop, "values", key)
            #expect(run.isRefused(naming: "values", "Data", "hexadecimal digits"), "\(key): \(run)")
        }
        let file = folder.path("shop.jsonl")
        #expect(await ToolRun("export", shop, file).status == 0)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        for key in wrong {
            try text.replacing(#"["00ff"]"#, with: #"["\#(key)"]"#).write(toFile: file, atomically: true, encoding: .utf8)
            let run = await ToolRun("import", file, folder.path("new"))
            #expect(run.isRefused(naming: "shop.jsonl:", "values", "hexadecimal digits"), "\(key): \(run)")
        }
    }

    @Test(arguments: fileKinds) func `S192: get lists collections of more entries than it reads at once`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model) { context in
            let numbers = try context.collection("numbers", of: Int.self, key: Int32.self)
            for number in Int32(-600)..<700 { numbers[number] = Int(number) * 2 }
        }
        let list = try await ToolRun("get", folder.path("shop"), "numbers", "--json").list()
        #expect(list.compactMap { ($0["key"] as? [String])?.first } == (-600..<700).map { "\($0)" })
    }

    /// Catches: keys that keep the ids of the store from which an export was made, under which the new store finds nothing.
    @Test(arguments: fileKinds)
    func `S192: ids of objects in keys are those of the new store, and other ids are kept with a note`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        let foreign = ObjectID(store: StoreIdentity(UUID()), entity: 2, key: 5)
        // Keys with gaps, so that a copy has other keys.
        try await folder.fill("shop", kind, Shop.model) { context in
            for number in 0..<200 { context.insert("Band")["name"] = .string("gone \(number)") }
        }
        try await folder.fill("shop", kind, Shop.model) { context in
            for band in try context.fetch(EntityFetchRequest("Band")) { context.delete(band) }
            Shop.fill(context)
            let notes = try context.collection("notes", of: String.self, key: ObjectID.self)
            let marks = try context.collection("marks", of: Int.self, key: (String, ObjectID).self)
            for band in try context.fetch(EntityFetchRequest("Band", sortBy: [.init("name")])) {
                guard case .string(let name) = band["name"] else { continue }
                notes[band.objectID] = name
                marks[(name, band.objectID)] = 1
            }
            notes[foreign] = "foreign"
        }
        let shop = folder.path("shop")
        func check(_ run: ToolRun, _ name: String) async throws {
            #expect(run.status == 0, "\(name): \(run)")
            let notes = run.errors.split(separator: "\n")
            #expect(notes.count == 1 && notes[0].contains("notes: the keys of 1 entries"), "\(name): \(run)")
            let bands = try await ToolRun("query", folder.path(name), "Band", "--sort", "name", "--json").list()
            for band in bands {
                let key = "Band \(band["$key"] ?? "")"
                let text = try #require(band["name"] as? String)
                #expect(await ToolRun("get", folder.path(name), "notes", key).output == text + "\n", "\(name)")
                #expect(await ToolRun("get", folder.path(name), "marks", text, key).output == "1\n", "\(name)")
            }
            #expect(bands.count == 2)
            #expect(await ToolRun("get", folder.path(name), "notes", "\(foreign)").output == "foreign\n", "\(name)")
        }
        try await check(await ToolRun("import", shop, folder.path("copy")), "copy")
        try await check(await ToolRun("repair", shop, folder.path("repaired")), "repaired")
        try await check(await ToolRun("export", shop, folder.path("out.sqlite")), "out.sqlite")
        for form in ["jsonl", "csv"] {
            let file = folder.path("out-\(form)")
            let export = await ToolRun("export", shop, file, "--format", form)
            #expect(export.status == 0 && export.errors.isEmpty, "\(export)")
            try await check(await ToolRun("import", file, folder.path("from-\(form)")), "from-\(form)")
        }
        #expect(await ToolRun("export", folder.path("from-jsonl"), folder.path("again")).status == 0)
        #expect(await ToolRun("diff", folder.path("from-jsonl"), folder.path("from-csv")).lines == ["no differences"])
        let json = try await ToolRun("repair", shop, folder.path("json"), "--json").object()
        #expect((json["notes"] as? [String])?.count == 1 && (json["lost"] as? [String])?.isEmpty == true, "\(json)")
        // A key of an object that the file does not have.
        let lines = try String(contentsOfFile: folder.path("out-jsonl"), encoding: .utf8)
        #expect(lines.contains(#""key":["Band 1"]"#), "\(lines)")
        try lines.replacing(#""key":["Band 1"]"#, with: #""key":["Band 9"]"#)
            .write(toFile: folder.path("wrong.jsonl"), atomically: true, encoding: .utf8)
        #expect(await ToolRun("import", folder.path("wrong.jsonl"), folder.path("wrong")).isRefused(naming: "notes", "Band 9"))
    }

    @Test(arguments: fileKinds) func `S192: repair copies collections`(_ kind: StoreKind) async throws {
        let folder = try await Self.filled(kind)
        let run = await ToolRun("repair", folder.path("shop"), folder.path("new"))
        #expect(run.status == 0 && run.output.contains("10 entries of collections, nothing is lost"), "\(run)")
        #expect(await ToolRun("diff", folder.path("shop"), folder.path("new")).lines == ["no differences"])
        #expect(await ToolRun("verify", folder.path("new")).status == 0)
    }

    @Test func `S192: repair of a damaged file makes up no entry of a collection`() async throws {
        let folder = try ToolFolder()
        let values = Dictionary(
            uniqueKeysWithValues: (0..<600).map { ("key \($0)", String(repeating: "\($0) ", count: $0 % 50)) })
        try await folder.fill("shop", .lmdb, Shop.model) { context in
            let texts = try context.collection("texts", of: String.self)
            for (key, value) in values { texts[key] = value }
        }
        let sound = try folder.bytes("shop")
        var random = SeededGenerator()
        var salvaged = 0
        for round in 0..<Rounds.of(30, long: 300) {
            var bytes = sound
            for _ in 0..<2 { bytes[random.below(bytes.count)] ^= UInt8(1 + random.below(255)) }
            let (damaged, repaired) = (folder.path("damaged\(round)"), folder.path("repaired\(round)"))
            try bytes.write(to: URL(fileURLWithPath: damaged))
            let run = await ToolRun("repair", damaged, repaired, "--json")
            guard run.status < 2 else { continue }
            let lost = try #require(try run.object()["lost"] as? [String])
            let list = await ToolRun("get", repaired, "texts", "--json")
            guard list.status == 0 else {
                #expect(!lost.isEmpty, "\(list)")
                continue
            }
            let found = try list.list()
            for entry in found {
                let key = try #require((entry["key"] as? [String])?.first)
                #expect(values[key] == entry["value"] as? String, "\(key)")
            }
            #expect(found.count == values.count || !lost.isEmpty, "\(lost)")
            if found.count < values.count { salvaged += 1 }
        }
        #expect(salvaged > 0, "of so many bytes, some are in pages of values")
    }

    /// Catches: the option --json of a shell, which two dashes made a part of the key.
    @Test(arguments: fileKinds)
    func `S192: a shell that prints JSON finds a key after two dashes`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model) { context in
            let depths = try context.collection("depths", of: String.self, key: Int.self)
            depths[-12] = "deep"
        }
        let run = await ToolRun("shell", folder.path("shop"), "--json", input: ["get depths -- -12"])
        #expect(run.status == 0 && run.errors.isEmpty, "\(run)")
        let entry = try run.object()
        #expect(entry["key"] as? [String] == ["-12"], "\(run)")
        #expect(entry["value"] as? String == "deep", "\(run)")
        #expect(await ToolRun("shell", folder.path("shop"), input: ["get depths -- -12"]).output == "deep\n")
    }
}
