import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import StrataTool
import Synchronization
import TestSupport
import Testing

/// A verb that is interrupted while it writes a file leaves nothing behind.
@Suite struct InterruptedTransferTests {
    private static let runs = [
        ["export", "new.jsonl"], ["export", "new-csv"], ["export", "new.sqlite"], ["import", "new"], ["repair", "new"],
    ]

    /// The task of the verb is cancelled, as an interrupt cancels it, when the bar of the copied objects is first shown.
    @Test(arguments: runs) func `a verb whose task is cancelled while it copies objects leaves no file`(_ run: [String])
        async throws
    {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let before = try FileManager.default.contentsOfDirectory(atPath: folder.path("")).sorted()
        let console = Console(
            write: { _ in }, complain: { #expect($0 == "strata: cancelled") },
            showProgress: { text in
                guard text.contains("objects") else { return }
                withUnsafeCurrentTask { $0?.cancel() }
            })
        let status = await StrataProgram.run([run[0], folder.path("shop"), folder.path(run[1])], console: console)
        #expect(status == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("")).sorted() == before)
    }

    /// Catches: a store that stays after its classes found no room. The classes are in their temporary file when the first object is copied.
    @Test func `the classes of an import are written before the store gets its name`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let path = folder.path("")
        let written = Mutex(false)
        let console = Console(
            write: { _ in }, complain: { Issue.record("\($0)") },
            showProgress: { text in
                guard text.contains("objects") else { return }
                let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
                let classes = names.first { $0.hasPrefix(".Models.swift.partial") && !$0.hasSuffix("-use") }
                guard let classes, let source = try? String(contentsOfFile: path + classes, encoding: .utf8) else { return }
                if source.contains("class Song") { written.withLock { $0 = true } }
            })
        let arguments = ["import", folder.path("shop"), folder.path("new"), "--swift", folder.path("Models.swift")]
        #expect(await StrataProgram.run(arguments, console: console) == 0)
        #expect(written.withLock { $0 })
        #expect(try String(contentsOfFile: folder.path("Models.swift"), encoding: .utf8).contains("class Song"))
    }

    /// Catches: an import of files of two exports. A table becomes a folder while the objects are written, so that the new table cannot
    /// replace it.
    @Test(arguments: [("model.json", false), ("Song.csv", true)])
    func `a folder of which only some files were replaced is not imported`(_ name: String, _ isMixed: Bool) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        let (shop, out, table) = (folder.path("shop"), folder.path("out"), folder.path("out/" + name))
        #expect(await ToolRun("export", shop, out).status == 0)
        let console = Console(
            write: { _ in }, complain: { #expect($0.contains("cannot be replaced")) },
            showProgress: { text in
                guard text.contains("objects"), unlink(table) == 0 else { return }
                mkdir(table, 0o700)
            })
        #expect(await StrataProgram.run(["export", shop, out, "--replace"], console: console) == 2)
        #expect(FileManager.default.fileExists(atPath: folder.path("out/$incomplete")) == isMixed)
        if isMixed {
            let run = await ToolRun("import", out, folder.path("new"))
            #expect(run.isRefused(naming: out, "not completed", "--replace"), "\(run)")
        }
        #expect(rmdir(table) == 0)
        #expect(await ToolRun("export", shop, out, "--replace").status == 0)
        let names = try FileManager.default.contentsOfDirectory(atPath: out)
        #expect(!names.contains { $0.contains("incomplete") || $0.contains("partial") }, "\(names)")
        #expect(await ToolRun("import", out, folder.path("new")).status == 0)
    }

    /// The temporary file exists before the first of the objects is read, and there are far more of them than the program can copy before the
    /// signal comes.
    @Test func `a signal ends an import, which removes its temporary files first`() async throws {
        let folder = try ToolFolder()
        let model = try Model([
            EntityDescription(name: "Leaf", properties: [.attribute(.init(name: "title", type: .string))])
        ])
        try await folder.fill("leaves", .lmdb, model) { _ in }
        #expect(await ToolRun("export", folder.path("leaves"), folder.path("input")).status == 0)
        try FileManager.default.removeItem(atPath: folder.path("input/Leaf.csv"))
        let script = """
            cd "$1"
            (echo '$id,title'; seq -f '%.0f,leaf' 1 1000000) > input/Leaf.csv
            "$2" import input new & import=$!
            until ls -A | grep -q '^\\.new\\.partial'; do kill -0 $import || break; sleep 0.02; done
            kill -TERM $import
            wait $import
            """
        let arguments = ["-c", script, "import", folder.path(""), try ChildProgram.built("strata")]
        let result = try await Task.detached { try ChildProgram.run("/bin/bash", arguments) }.value
        #expect(result.status == 1 && result.output == "strata: cancelled\n", "\(result)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path(""))
        #expect(!names.contains { $0.contains("new") }, "\(names)")
    }
}
