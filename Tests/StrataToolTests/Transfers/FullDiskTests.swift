import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Imports without room for the new store.
@Suite struct FullDiskTests {
    /// Catches: hidden files that stay, an error that names them instead of the store, and lines about attempts to save again.
    ///
    /// Files of the importing process are limited to one megabyte, which has the effect of a full disk.
    @Test(arguments: fileKinds) func `an import to a full disk leaves nothing and prints one line`(_ kind: StoreKind) async throws
    {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model) { context in
            for number in 0..<3000 {
                let song = context.insert("Song")
                song["title"] = .string("\(number)")
                song["text"] = .string(String(repeating: "\(number * 7919 % 3000) la ", count: 100))
            }
        }
        let lines = folder.path("shop.jsonl")
        #expect(await ToolRun("export", folder.path("shop"), lines).status == 0)
        let target = folder.path("new")
        let tool = try ChildProgram.built("strata")
        for _ in 0..<5 {
            let result = try ChildProgram.run(
                "/bin/bash",
                ["-c", "trap '' XFSZ; ulimit -f 1000; exec '\(tool)' import '\(lines)' '\(target)' --kind \(kind.rawValue)"])
            #expect(result.status == 1, "\(result)")
            let printed = result.output.split(separator: "\n")
            #expect(printed.count == 1 && result.output.contains("strata: "), "\(result)")
            #expect(result.output.contains(target) && !result.output.contains("partial"), "\(result)")
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter { $0.contains("new") }
            #expect(left == [])
        }
    }

    /// Catches: a folder with tables of two exports. The disk is full when the buffered end of one table is written.
    ///
    /// The limit of 600 KiB leaves the thread sanitizer room for its own file of 512 KiB, which it maps.
    @Test func `an export to a full disk leaves the former one`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("old", .lmdb, Shop.model, Shop.fill)
        try await folder.fill("new", .lmdb, Shop.model) { context in
            for number in 0..<1000 {
                let song = context.insert("Song")
                song["title"] = .string("\(number)")
                song["text"] = .string(String(repeating: "x", count: 628))
            }
        }
        #expect(await ToolRun("export", folder.path("old"), folder.path("out")).status == 0)
        let before = try folder.bytes("out/Song.csv")
        let others = try folder.bytes("out/List.csv")
        let run = try ChildProgram.run(
            "/bin/bash",
            [
                "-c", "trap '' XFSZ; ulimit -f 600; exec \"$0\" export \"$1\" \"$2\" --replace", ChildProgram.built("strata"),
                folder.path("new"), folder.path("out"),
            ])
        #expect(run.status == 1, "\(run)")
        #expect(try folder.bytes("out/Song.csv") == before)
        #expect(try folder.bytes("out/List.csv") == others)
    }
}
