import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataTool

/// Where the output goes: full disks, pipes that end, and the form of an export.
@Suite struct OutputTests {
    private static func run(_ script: String, _ arguments: String...) throws -> ChildProgram.Result {
        try ChildProgram.run("/bin/bash", ["-c", script, try ChildProgram.built("strata")] + arguments)
    }

    @Test func `output to a full disk is an error of one line with the status 1`() async throws {
        guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        for verb in [
            "export \"$1\" -", "query \"$1\" Song", "query \"$1\" Song --json", "info \"$1\"", "--help", "shell \"$1\" <<< help",
        ] {
            let run = try Self.run("\"$0\" \(verb.replacing(" <<<", with: " > /dev/full <<<")) > /dev/full", folder.path("shop"))
            if verb.hasPrefix("shell") {
                #expect(run.status == 1, "\(verb): \(run)")
                continue
            }
            #expect(run.status == 1 && run.output.split(separator: "\n").count == 1, "\(verb): \(run)")
            #expect(run.output.hasPrefix("strata: cannot write the output: No space left on device."), "\(verb): \(run)")
        }
    }

    @Test func `a pipe whose reader has ended ends the program without a word`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model) { context in
            for number in 0..<20_000 { context.insert("List")["name"] = .string("List \(number) with a long name") }
        }
        for signal in ["", "trap '' PIPE; "] {
            let run = try Self.run("\(signal)\"$0\" export \"$1\" - | head -n 1 | cut -c 1-9", folder.path("shop"))
            #expect(run.output == "{\"$strata\n", "\(run)")
        }
    }

    /// Catches: a hidden copy of the store that stays in the temporary folder.
    @Test func `a pipe whose reader has ended leaves no copy of the store`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        try FileManager.default.createDirectory(atPath: folder.path("tmp"), withIntermediateDirectories: true)
        _ = try Self.run(
            "export TMPDIR=\"$2\"; \"$0\" migrate --check \"$1\" --model \"$1\" | true", folder.path("shop"),
            folder.path("tmp"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("tmp")) == [])
    }

    /// Catches: output that is written into the store, because its file was opened as standard output.
    @Test func `a store does not get the output of a program whose standard streams are closed`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let before = try folder.bytes("shop").prefix(200)
        _ = try Self.run("echo help | \"$0\" shell \"$1\" --write >&-", folder.path("shop"))
        #expect(try folder.bytes("shop").prefix(200) == before)
        #expect(await ToolRun("verify", folder.path("shop")).status == 0)
    }

    /// Catches: an export that replaces a file whose name has the character for bytes that are no text.
    @Test func `an argument that is not UTF-8 is refused`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        try Data("precious".utf8).write(to: folder.url.appending(path: "a\u{FFFD}"))
        let run = try Self.run("cd \"$1\"; \"$0\" export shop $'a\\xff' --format jsonl --replace", folder.path(""))
        #expect(run.status == 2 && run.output.hasPrefix("strata: an argument is not UTF-8"), "\(run)")
        #expect(run.output.split(separator: "\n").count == 1, "\(run)")
        #expect(try folder.bytes("a\u{FFFD}") == Data("precious".utf8))
    }

    @Test(arguments: fileKinds) func `an export has the form of its suffix, and an unknown suffix is refused`(_ kind: StoreKind)
        async throws
    {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let shop = folder.path("shop")
        func isFolder(_ name: String) -> Bool {
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: folder.path(name), isDirectory: &isFolder) && isFolder.boolValue
        }
        for name in ["a.jsonl", "a.ndjson", "a.JSON"] {
            #expect(await ToolRun("export", shop, folder.path(name)).status == 0)
            #expect(try folder.bytes(name).starts(with: Data(#"{"$strata""#.utf8)), "\(name)")
        }
        for name in ["a.sqlite", "a.sqlite3", "a.db"] {
            #expect(await ToolRun("export", shop, folder.path(name)).status == 0)
            #expect(try folder.bytes(name).starts(with: Data("SQLite format 3".utf8)), "\(name)")
        }
        for name in ["out", "dotted.folder/"] {
            #expect(await ToolRun("export", shop, folder.path(name)).status == 0)
            #expect(isFolder(name), "\(name)")
        }
        for name in ["a.csv", "b.strata", "c.txt"] {
            #expect(await ToolRun("export", shop, folder.path(name)).isRefused(naming: name, "--format"), "\(name)")
            #expect(!FileManager.default.fileExists(atPath: folder.path(name)))
            #expect(await ToolRun("export", shop, folder.path(name), "--format", "csv").status == 0)
            #expect(isFolder(name))
        }
        // The folder of a former export.
        #expect(await ToolRun("export", shop, folder.path("c.txt"), "--replace").status == 0)
    }

    @Test func `the end of a long history is read without its beginning`() async throws {
        let folder = try ToolFolder()
        let container = try await folder.container("shop", .lmdb, Shop.model)
        for number in 0..<40 {
            try await container.write { context in
                context.transactionAuthor = number % 10 == 0 ? "ann" : "ben"
                context.insert("List")["name"] = .string("\(number)")
            }
        }
        try await container.close()
        let shop = folder.path("shop")
        func saves(_ arguments: String...) async -> [String] {
            await ToolRun(["history", shop] + arguments).lines.map { String($0.prefix { $0 != " " }) }
        }
        #expect(await saves("--limit", "3") == ["38", "39", "40"])
        #expect(await saves("--limit", "3", "--author", "ann") == ["11", "21", "31"])
        #expect(await saves("--limit", "9", "--author", "ann") == ["1", "11", "21", "31"])
        #expect(await saves("--limit", "100").count == 40)
        #expect(await saves("--limit", "5", "--after", "38") == ["39", "40"])
        #expect(await saves("--limit", "0").isEmpty)
    }

    @Test(arguments: fileKinds) func `a long history is read some saves at a time`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        let container = try await folder.container("shop", kind, Shop.model)
        for number in 0..<450 {
            try await container.write { context in
                context.transactionAuthor = number % 2 == 0 ? "ann" : "ben"
                context.insert("List")["name"] = .string("\(number)")
            }
        }
        let end = HistoryCommand.token(430, in: container.coordinator)
        for (request, sizes) in [(HistoryRequest(), [200, 200, 30]), (HistoryRequest(authors: ["ann"]), [200, 15])] {
            let pages = HistoryPages(request, through: end)
            var found: [[Generation]] = []
            while let page = try await pages.next(in: container.coordinator) { found.append(page.map(\.id)) }
            #expect(found.map(\.count) == sizes)
            #expect(found.joined().elementsEqual(stride(from: 1, through: 430, by: 430 / sizes.reduce(0, +))))
        }
        try await container.close()
        let shop = folder.path("shop")
        func saves(_ arguments: String...) async -> [Int] {
            await ToolRun(["history", shop] + arguments).lines.compactMap { Int($0.prefix { $0 != " " }) }
        }
        #expect(await saves() == Array(1...450))
        #expect(await saves("--after", "7", "--author", "ben") == Array(stride(from: 8, through: 450, by: 2)))
        #expect(await saves("--limit", "300", "--author", "ben") == Array(stride(from: 2, through: 450, by: 2)))
        #expect(await saves("--limit", "210") == Array(241...450))
    }

    @Test(arguments: fileKinds) func `the check of opening can be limited`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        for check in ["roots", "everything"] {
            #expect(await ToolRun("query", folder.path("shop"), "Song", "--count", "--opening-check", check).output == "6\n")
        }
        #expect(await ToolRun("info", folder.path("shop"), "--opening-check", "none").isRefused(naming: "none"))
    }
}
