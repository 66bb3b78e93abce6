import Foundation
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Requests that would lose something, or that have no effect.
@Suite struct RefusalTests {
    private static func shop() async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        return folder
    }

    @Test func `a new store does not replace the file that is read`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        try FileManager.default.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: shop)
        let before = try folder.bytes("shop")
        for target in [shop, folder.path("link")] {
            for verb in ["repair", "import"] {
                #expect(await ToolRun(verb, shop, target, "--replace").isRefused(naming: target, "another name"), "\(verb)")
            }
        }
        #expect(await ToolRun("export", shop, shop, "--format", "jsonl", "--replace").isRefused(naming: shop))
        for swift in [shop, folder.path("new")] {
            let run = await ToolRun("import", shop, folder.path("new"), "--swift", swift, "--replace")
            #expect(run.isRefused(naming: swift))
        }
        #expect(try folder.bytes("shop") == before)
    }

    /// Catches: a table that replaces the store that it comes from, and a removed store that has the name of the file of the collections.
    @Test(arguments: fileKinds) func `an export to the folder of its store replaces no file of the store`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        let names = ["Song.csv", "model.json", "$collections.csv"]
        for name in names {
            try FileManager.default.createDirectory(atPath: folder.path(name), withIntermediateDirectories: false)
            try await folder.fill("\(name)/\(name)", kind, Shop.model, Shop.fill)
            let (store, place) = (folder.path("\(name)/\(name)"), folder.path(name))
            let before = try folder.bytes("\(name)/\(name)")
            let run = await ToolRun("export", store, place, "--format", "csv", "--replace")
            #expect(run.isRefused(naming: store, "another name or folder"), "\(run)")
            #expect(try folder.bytes("\(name)/\(name)") == before)
            // The log and the lock of the store may be there.
            let others = try FileManager.default.contentsOfDirectory(atPath: place).filter { !$0.hasPrefix(name) }
            #expect(others == [])
        }
    }

    @Test func `a folder of CSV files that cannot be created is refused, and leaves nothing`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        try "text".write(toFile: folder.path("text"), atomically: true, encoding: .utf8)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.path("")).sorted()
        let long = String(repeating: "x", count: 300)
        let reasons = [
            "text": "is a file", "text/in": "Not a directory", "text/in/it": "Not a directory", long: "too long",
            "new/\(long)": "too long",
            "shop-wal": "log or lock file", "shop-signal": "is a file",
        ]
        for (name, reason) in reasons {
            let run = await ToolRun("export", shop, folder.path(name), "--format", "csv", "--replace")
            #expect(run.isRefused(naming: name, reason), "\(run)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("")).sorted() == before, "\(name)")
        }
        #expect(await ToolRun("export", shop, "", "--format", "csv").isRefused(naming: "another name"))
    }

    @Test func `a new store is not created beside the log of another`() async throws {
        let folder = try await Self.shop()
        let target = folder.path("new.sqlite")
        for suffix in ["-wal", "-journal"] {
            try Data("log".utf8).write(to: URL(filePath: target + suffix))
            #expect(await ToolRun("export", folder.path("shop"), target).isRefused(naming: "new.sqlite" + suffix, "Close it"))
            #expect(!FileManager.default.fileExists(atPath: target))
            try FileManager.default.removeItem(atPath: target + suffix)
        }
        #expect(await ToolRun("export", folder.path("shop"), target).status == 0)
    }

    /// Catches: a log or a lock of a store that is overwritten, so that the store loses saves.
    @Test func `no verb writes a file that belongs to another store, or beside its log`() async throws {
        let folder = try await Self.shop()
        let (shop, lines) = (folder.path("shop"), folder.path("shop.jsonl"))
        try await folder.fill("other", .sqlite, Shop.model, Shop.fill)
        #expect(await ToolRun("export", shop, lines).status == 0)
        let verbs = [
            ["import", lines], ["export", shop, "--format", "jsonl"], ["export", shop, "--format", "sqlite"], ["backup", shop],
            ["backup", folder.path("other")], ["repair", shop],
        ]
        let wal = folder.path("other-wal")
        try Data("log".utf8).write(to: URL(filePath: wal))
        let before = try folder.bytes("other")
        for verb in verbs {
            let rest = verb.dropFirst(2) + ["--replace"]
            for suffix in ["-wal", "-shm", "-journal", "-lock", "-signal"] {
                let run = await ToolRun(verb.prefix(2) + [folder.path("other" + suffix)] + rest)
                #expect(run.isRefused(naming: "other" + suffix, "another name"), "\(verb): \(run)")
            }
            if verb.contains(folder.path("other")) { continue }
            let run = await ToolRun(verb.prefix(2) + [folder.path("other")] + rest)
            #expect(run.isRefused(naming: "other-wal", "Close it"), "\(verb): \(run)")
        }
        #expect(try folder.bytes("other") == before && folder.bytes("other-wal") == Data("log".utf8))
    }

    /// Catches: the empty log that a reader leaves, which was taken for that of a store in use.
    @Test func `an SQLite store is replaced after it was read`() async throws {
        let folder = try await Self.shop()
        let (shop, copy, target) = (folder.path("shop"), folder.path("copy.sqlite"), folder.path("new.sqlite"))
        #expect(await ToolRun("export", shop, copy).status == 0)
        for verb in [["export", shop, target], ["import", shop, target, "--kind", "sqlite"], ["backup", copy, target]] {
            for _ in 0..<2 {
                let run = await ToolRun(verb + ["--replace"])
                #expect(run.status == 0, "\(verb): \(run)")
                let query = await ToolRun("query", target, "Song", "--count")
                #expect(query.lines == ["6"], "\(verb): \(query)")
            }
        }
        #expect(await ToolRun("verify", target).status == 0)
    }

    /// Catches: a file that is replaced under another process, which shares its log with the new file.
    @Test func `an SQLite store that is open elsewhere is not replaced`() async throws {
        let folder = try await Self.shop()
        let (shop, target) = (folder.path("shop"), folder.path("new.sqlite"))
        #expect(await ToolRun("export", shop, target).status == 0)
        let reader = try await PersistentContainer(
            model: Shop.model, store: .sqlite(URL(fileURLWithPath: target), readOnly: true))
        let before = try folder.bytes("new.sqlite")
        for verb in ["export", "import"] {
            let run = await ToolRun([verb, shop, target, "--replace"] + (verb == "import" ? ["--kind", "sqlite"] : []))
            #expect(run.isRefused(1, naming: "new.sqlite", "has it open"), "\(run)")
        }
        #expect(try folder.bytes("new.sqlite") == before)
        try await reader.close()
        #expect(await ToolRun("export", shop, target, "--replace").status == 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains("partial") }
        #expect(left == [])
    }

    @Test func `options for data of other programs are refused where they have no effect`() async throws {
        let folder = try await Self.shop()
        let (lines, tables) = (folder.path("shop.jsonl"), folder.path("tables"))
        #expect(await ToolRun("export", folder.path("shop"), lines).status == 0)
        #expect(await ToolRun("export", folder.path("shop"), tables).status == 0)
        for input in [lines, tables, folder.path("shop")] {
            let options = [
                ["--exclude", "Song"], ["--types", "a=text"], ["--references", "a=b"], ["--no-references"],
                ["--null-words", "x"],
            ]
            for option in options {
                let run = await ToolRun(["import", input, folder.path("new")] + option)
                #expect(run.isRefused(naming: input, option[0]), "\(run)")
            }
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path("new")))
    }

    /// Catches: a store that is complete although its verb fails.
    @Test func `an existing file for classes is noticed before the import`() async throws {
        let folder = try await Self.shop()
        let classes = folder.path("Models.swift")
        try Data("mine".utf8).write(to: URL(filePath: classes))
        let run = await ToolRun("import", folder.path("shop"), folder.path("new"), "--swift", classes)
        #expect(run.isRefused(naming: "Models.swift"))
        #expect(try folder.bytes("Models.swift") == Data("mine".utf8))
        #expect(!FileManager.default.fileExists(atPath: folder.path("new")))
    }

    @Test func `the shell refuses to change the store that it reads`() async throws {
        let folder = try await Self.shop()
        let run = await ToolRun("shell", folder.path("shop"), input: ["compact --write", "query Song --count"])
        #expect(run.status == 2 && run.lines == ["6"] && run.errors.contains("outside of the shell"), "\(run)")
    }

    @Test func `a query computes aggregates or the number of objects, and explains both`() async throws {
        let folder = try await Self.shop()
        let query = ["query", folder.path("shop"), "Song", "--aggregate", "count", "--group-by", "seconds", "--sort", "-count"]
        let both = await ToolRun(query + ["--count"])
        #expect(both.status == 2 && both.errors.contains("--aggregate count"), "\(both)")
        #expect(await ToolRun(query + ["--explain"]).status == 0)
        #expect(await ToolRun(query).status == 0)
    }

    @Test func `diff shows the pairs of a relationship that only one store has`() async throws {
        let folder = try ToolFolder()
        let song = PropertyDescription.attribute(.init(name: "title", type: .string))
        let list = PropertyDescription.attribute(.init(name: "name", type: .string))
        let related = try Model([
            EntityDescription(
                name: "Song",
                properties: [
                    song, .relationship(.init(name: "lists", destination: "List", inverse: "songs", cardinality: .toMany)),
                ]),
            EntityDescription(
                name: "List",
                properties: [
                    list, .relationship(.init(name: "songs", destination: "Song", inverse: "lists", cardinality: .toMany)),
                ]),
        ])
        let plain = try Model([
            EntityDescription(name: "Song", properties: [song]), EntityDescription(name: "List", properties: [list]),
        ])
        for (name, model) in [("related", related), ("plain", plain)] {
            try await folder.fill(name, .lmdb, model) { context in
                let song = context.insert("Song")
                let list = context.insert("List")
                if name == "related" { song.add(list, to: "lists") }
            }
        }
        for names in [("related", "plain"), ("plain", "related")] {
            let run = await ToolRun("diff", folder.path(names.0), folder.path(names.1))
            #expect(run.status == 1 && run.output.contains("1 objects"), "\(run)")
        }
    }

    /// Catches: escape sequences in texts, which a terminal executes, and lines that look like other differences.
    @Test func `control characters of values are not printed`() async throws {
        let folder = try await Self.shop()
        let (shop, old) = (folder.path("shop"), folder.path("old"))
        #expect(await ToolRun("backup", shop, old).status == 0)
        let container = try await folder.container("shop", .lmdb, Shop.model)
        let key = try await container.write { context in
            let song = context.insert("Song")
            song["title"] = "red \u{1B}[31m\n+ Song 99"
            return song.objectID.key
        }
        try await container.close()
        for run in [await ToolRun("get", shop, "Song", "\(key)"), await ToolRun("diff", old, shop)] {
            #expect(run.output.contains("Song") && !run.output.contains("\u{1B}"), "\(run)")
        }
        #expect(await !ToolRun("diff", old, shop).lines.contains { $0.hasPrefix("+ Song 99") })
    }

    /// Catches: names in an edited file that a terminal executes or that break the line of an error, a note or a result.
    @Test func `control characters of names are not printed`() async throws {
        let folder = try await Self.shop()
        let (lines, csv) = (folder.path("shop.jsonl"), folder.path("names.csv"))
        #expect(await ToolRun("export", folder.path("shop"), lines).status == 0)
        let text = try String(contentsOfFile: lines, encoding: .utf8)
        try (text + #"{"$entity":"a\u001b[31m\nb","$id":1}"#).write(toFile: lines, atomically: true, encoding: .utf8)
        try "\"a\u{1B}[31m\nb\",c\n1,2\n".write(toFile: csv, atomically: true, encoding: .utf8)
        let runs = [
            await ToolRun("import", lines, folder.path("new")), await ToolRun("import", csv, folder.path("from csv")),
            await ToolRun("backup", folder.path("shop"), folder.path("two\nlines\u{1B}")),
            await ToolRun("verify", folder.path("two\nlines\u{1B}")),
            await ToolRun("info", folder.path("two\nlines\u{1B}")),
            await ToolRun("compact", folder.path("two\nlines\u{1B}"), "--write"),
        ]
        for run in runs {
            let printed = run.errors + run.output
            #expect(!printed.contains("\u{1B}") && !printed.contains("\nb") && !printed.contains("\nlines"), "\(run)")
        }
        #expect(runs[0].isRefused(naming: "a [31m b"), "\(runs[0])")
        #expect(runs.dropFirst().allSatisfy { $0.status == 0 })
    }

    /// Catches: a file with the name -, where the other verbs write to standard output.
    @Test func `a store is not written to standard output`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        for run in [["backup", shop, "-"], ["repair", shop, "-"], ["import", shop, "-"], ["compact", shop, "--to", "-"]] {
            let result = await ToolRun(run)
            #expect(result.isRefused(naming: "standard output", "Name a file"), "\(run): \(result)")
        }
        #expect(!FileManager.default.fileExists(atPath: "-"))
    }

    @Test func `help for a verb that does not exist is refused`() async {
        let run = await ToolRun("help", "exprt")
        #expect(run.isRefused(naming: "exprt: no such verb", "export"), "\(run)")
        #expect(await ToolRun("help").status == 0)
        #expect(await ToolRun("help", "export").status == 0)
    }

    @Test func `a range that begins or ends with nil is refused, like an order that is compared with nil`() async throws {
        let folder = try await Self.shop()
        for condition in [
            "seconds between nil and 5", "seconds between 5 and nil", "text not between nil and nil", "seconds < nil",
        ] {
            let run = await ToolRun("query", folder.path("shop"), "Song", condition)
            #expect(run.isRefused(naming: "nil can only be compared with"), "\(condition): \(run)")
        }
    }

    @Test func `a negative number is refused by the option that it is given to`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        let cases = [
            ["query", shop, "Song", "--limit", "-1"], ["query", shop, "Song", "--offset", "-1"],
            ["watch", shop, "Song", "--times", "-1"], ["history", shop, "--limit", "-1"], ["history", shop, "--after", "-1"],
            ["diff", shop, "--from", "-1"], ["diff", shop, "--from", "1", "--to", "-1"], ["studio", shop, "--port", "-1"],
        ]
        for arguments in cases {
            let run = await ToolRun(arguments)
            let option = arguments[arguments.count - 2]
            #expect(run.isRefused(naming: option) && !run.errors.contains("Missing value"), "\(arguments): \(run)")
        }
    }

    @Test func `a negative key is a key and no option`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model) { context in
            Shop.fill(context)
            try context.collection("depths", of: String.self, key: Int.self)[-12] = "deep"
        }
        let shop = folder.path("shop")
        let found = await ToolRun("get", shop, "depths", "-12")
        #expect(found.status == 0 && found.output == "deep\n", "\(found)")
        #expect(await ToolRun("get", shop, "depths", "-12", "--json").output.contains("deep"))
        #expect(await ToolRun("get", shop, "depths", "--json", "--", "-12").output.contains("deep"))
        let run = await ToolRun("get", shop, "Song", "-1")
        #expect(run.isRefused(naming: "Song -1: no object"), "\(run)")
        let unknown = await ToolRun("get", shop, "Song", "1", "--jsno")
        #expect(unknown.isRefused(naming: "Unknown option '--jsno'"), "\(unknown)")
    }

    /// Catches: reading `/dev/zero` for ever, or a pipe that no program writes to.
    @Test func `a device or pipe is refused as an input`() async throws {
        let folder = try ToolFolder()
        try #require(mkfifo(folder.path("pipe"), 0o600) == 0)
        for path in ["/dev/null", "/dev/zero", folder.path("pipe")] {
            let run = await ToolRun("import", path, folder.path("new"))
            #expect(run.isRefused(naming: path, "not a regular file"), "\(run)")
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: ["bands.csv", "model.json"])
    func `a pipe in a folder is refused as an input`(_ name: String) async throws {
        let folder = try ToolFolder()
        try FileManager.default.createDirectory(atPath: folder.path("in"), withIntermediateDirectories: true)
        try #require(mkfifo(folder.path("in/" + name), 0o600) == 0)
        let run = await ToolRun("import", folder.path("in"), folder.path("new"))
        #expect(run.isRefused(naming: name, "regular file"), "\(run)")
    }

    @Test func `a new store does not replace a file of the folder that is read`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let tables = folder.path("tables")
        #expect(await ToolRun("export", folder.path("shop"), tables, "--format", "csv").status == 0)
        let before = try folder.bytes("tables/Song.csv")
        for rest in [["\(tables)/Song.csv"], [folder.path("new"), "--swift", "\(tables)/Song.csv"]] {
            let run = await ToolRun(["import", tables] + rest + ["--replace"])
            #expect(run.isRefused(naming: "Song.csv", "another name"), "\(run)")
        }
        #expect(try folder.bytes("tables/Song.csv") == before)
    }

    @Test func `a CSV file that is not the excluded one is refused, as in a folder`() async throws {
        let folder = try ToolFolder()
        let file = folder.path("bands.csv")
        try "name\nBlur\n".write(toFile: file, atomically: true, encoding: .utf8)
        for (name, reason) in [("nope", "has no table nope"), ("Bands", "leave out --exclude")] {
            let run = await ToolRun("import", file, folder.path("new"), "--exclude", name)
            #expect(run.isRefused(naming: file, reason), "\(run)")
        }
        let all = await ToolRun("import", folder.path(""), folder.path("new"), "--exclude", "bands")
        #expect(all.isRefused(naming: "leave out --exclude"), "\(all)")
    }
}
