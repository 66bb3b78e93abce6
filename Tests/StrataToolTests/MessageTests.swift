import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Messages in the words of the tool, each with a remedy.
@Suite struct MessageTests {
    private static func shop() async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        return folder
    }

    @Test func `a wrong name in a path is named with the properties of its own entity`() async throws {
        let folder = try await Self.shop()
        let shop = folder.path("shop")
        for arguments in [["album.Foo = 1"], ["--sort", "album.Foo"], ["--columns", "album.Foo"]] {
            let run = await ToolRun(["query", shop, "Song"] + arguments)
            #expect(run.isRefused(naming: "Album has no property Foo", "price") && !run.errors.contains("seconds"), "\(run)")
        }
        let attribute = await ToolRun("query", shop, "Song", "title.length = 1")
        #expect(attribute.isRefused(naming: "Song.title is an attribute"), "\(attribute)")
    }

    @Test func `a property of objects of a to-many relationship is refused with the way to compare it`() async throws {
        let folder = try await Self.shop()
        let run = await ToolRun("query", folder.path("shop"), "Song", "lists.name = 'even'")
        #expect(run.isRefused(naming: "write any lists (name = …)"), "\(run)")
    }

    @Test func `an aggregate of texts is refused in words of the tool`() async throws {
        let folder = try await Self.shop()
        let run = await ToolRun("query", folder.path("shop"), "Song", "--aggregate", "sum(title)")
        #expect(run.isRefused(naming: "sum(title)", "Use count, min or max") && !run.errors.contains("_:"), "\(run)")
    }

    @Test func `migrate names its option for a loss, and refuses one that the store does not have`() async throws {
        let folder = try await Self.shop()
        var descriptions = EntityDescription.all(in: Shop.model.storeSchema)
        descriptions[0].properties.removeAll { $0.name == "isActive" || $0.name == "since" }
        try await folder.fill("narrower", .lmdb, Model(descriptions, version: SchemaVersion(2))) { _ in }
        let arguments = ["migrate", "--check", folder.path("shop"), "--model", folder.path("narrower")]
        let run = await ToolRun(arguments)
        #expect(run.status == 1 && !run.output.contains("allowsDataLoss"), "\(run)")
        #expect(run.output.contains("--allow-loss Band.since --allow-loss Band.isActive"), "\(run)")
        for (name, reason) in [
            ("Band.isActiv", "did you mean isActive"), ("Bond", "did you mean Band"), ("Bond.name", "no entity Bond"),
        ] {
            let wrong = await ToolRun(arguments + ["--allow-loss", name])
            #expect(wrong.isRefused(naming: "--allow-loss \(name)", reason), "\(wrong)")
        }
        let allowed = await ToolRun(arguments + ["--allow-loss", "Band.since", "--allow-loss", "Band.isActive"])
        #expect(allowed.status == 0, "\(allowed)")
    }

    /// Catches: a full temporary folder that is reported as a refusal of the model. A limit on the size of files takes the place of the
    /// full disk. It leaves room for the copy, but not for what its opening writes.
    @Test func `migrate names the temporary folder if the copy of the store has no room there`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model) { context in
            for number in 0..<10_000 { context.insert("List")["name"] = .string("List \(number) with a long name") }
        }
        var descriptions = EntityDescription.all(in: Shop.model.storeSchema)
        descriptions[0].properties.append(.attribute(.init(name: "label", type: .string, isOptional: true)))
        try await folder.fill("wider", .lmdb, Model(descriptions, version: SchemaVersion(2))) { _ in }
        let backup = await ToolRun("backup", folder.path("shop"), folder.path("copy"))
        #expect(backup.status == 0, "\(backup)")
        let byteCount = try folder.bytes("copy").count
        await #expect(processExitsWith: .success) {
            [shop = folder.path("shop") as String, wider = folder.path("wider") as String, byteCount = byteCount as Int] in
            let arguments = ["migrate", "--check", shop, "--model", wider]
            let unlimited = await ToolRun(arguments)
            try #require(unlimited.status == 0, "\(unlimited)")
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit(rlim_cur: rlim_t(byteCount), rlim_max: rlim_t(1 << 30))
            try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let run = await ToolRun(arguments)
            try #require(run.isRefused(1, naming: shop, "strata-migrate-", "Set TMPDIR"), "\(run)")
            try #require(run.output.isEmpty, "\(run)")
        }
    }

    /// Catches: a promise of equal bytes for stores on SQLite, which have an id and a history.
    @Test func `the help of export promises equal bytes for JSON lines and CSV only`() async throws {
        let folder = try await Self.shop()
        let help = await ToolRun("help", "export").output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(help.contains("as JSON lines or as CSV gives the same bytes") && help.contains("an id and a history of its own"))
        for name in ["one.sqlite", "two.sqlite"] {
            #expect(await ToolRun("export", folder.path("shop"), folder.path(name)).status == 0)
        }
        #expect(try folder.bytes("one.sqlite") != folder.bytes("two.sqlite"))
        #expect(await ToolRun("diff", folder.path("one.sqlite"), folder.path("two.sqlite")).status == 0)
    }

    @Test func `an input of no known kind is refused with the kinds that there are`() async throws {
        let folder = try ToolFolder()
        try Data([0x89, 0x50, 0x4E, 0x47]).write(to: folder.url.appending(path: "picture.png"))
        try Data().write(to: folder.url.appending(path: "empty.sqlite"))
        try Data("{\"a\": 1}\n".utf8).write(to: folder.url.appending(path: "other.json"))
        for (name, reason) in [("picture.png", "SQLite"), ("empty.sqlite", "is empty"), ("other.json", "Convert other data")] {
            let run = await ToolRun("import", folder.path(name), folder.path("new"))
            #expect(run.isRefused(naming: folder.path(name), reason), "\(run)")
        }
    }

    @Test func `errors of input say what can be done`() async throws {
        let folder = try await Self.shop()
        try Data("a,b\n1,2,3\n".utf8).write(to: folder.url.appending(path: "long.csv"))
        try Data("a,b\n1,".utf8 + [0xFF, 0x0A]).write(to: folder.url.appending(path: "latin.csv"))
        try FileManager.default.createDirectory(atPath: folder.path("none"), withIntermediateDirectories: true)
        for (name, remedy) in [("long.csv", "quote fields"), ("latin.csv", "save the file as UTF-8"), ("none", "Name a folder")] {
            let run = await ToolRun("import", folder.path(name), folder.path("new"))
            #expect(run.isRefused(naming: remedy), "\(run)")
        }
        let limit = await ToolRun("query", folder.path("shop"), "Song", "--limit", "abc")
        #expect(limit.isRefused(naming: "abc", "See `strata help query`"), "\(limit)")
    }

    @Test func `a CSV file with another delimiter is imported with a note that names it`() async throws {
        let folder = try ToolFolder()
        try Data("id;name\n1;a\n".utf8).write(to: folder.url.appending(path: "bands.csv"))
        let run = await ToolRun("import", folder.path("bands.csv"), folder.path("new"))
        #expect(run.status == 0 && run.errors.contains("separated by ';', choose that with --delimiter"), "\(run)")
        let chosen = await ToolRun("import", folder.path("bands.csv"), folder.path("chosen"), "--delimiter", ";")
        #expect(chosen.status == 0 && !chosen.errors.contains("choose that"), "\(chosen)")
    }
}
