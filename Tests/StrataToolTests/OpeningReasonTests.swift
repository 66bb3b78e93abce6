import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The reason why a file cannot be opened is the same, whatever the path that leads to the file.
@Suite struct OpeningReasonTests {
    /// Catches: reasons of the library, which name the resolved path, that count as reasons about another file.
    @Test(arguments: fileKinds)
    func `a store with two names is refused for that reason, by every path`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        let manager = FileManager.default
        let shop = folder.path("shop")
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        try manager.linkItem(atPath: shop, toPath: folder.path("second"))
        try manager.createSymbolicLink(atPath: folder.path("link"), withDestinationPath: shop)
        let name = folder.url.lastPathComponent
        for path in [shop, folder.path("./shop"), folder.path("../\(name)/shop"), folder.path("link")] {
            for arguments in [["info", path], ["query", path, "Song"], ["repair", path, folder.path("new")]] {
                let run = await ToolRun(arguments)
                #expect(run.isRefused(naming: "2 names (hard links)"), "\(arguments): \(run)")
            }
        }
    }

    @Test func `a file that has no model of a store is refused for that reason`() async throws {
        let folder = try ToolFolder()
        try makeDatabase(folder.path("other.sqlite"), "CREATE TABLE a (b);")
        try Data().write(to: folder.url.appending(path: "empty"))
        for path in [folder.path("other.sqlite"), folder.path("./other.sqlite")] {
            #expect(await ToolRun("info", path).isRefused(naming: path, "strata import"))
        }
        #expect(await ToolRun("info", folder.path("empty")).isRefused(naming: "empty"))
    }

    @Test func `symbolic links in a circle are named as the reason`() async throws {
        let folder = try ToolFolder()
        let manager = FileManager.default
        try manager.createSymbolicLink(atPath: folder.path("a"), withDestinationPath: folder.path("b"))
        try manager.createSymbolicLink(atPath: folder.path("b"), withDestinationPath: folder.path("a"))
        let run = await ToolRun("info", folder.path("a"))
        #expect(run.isRefused(naming: folder.path("a"), "circle"), "\(run)")
        let missing = await ToolRun("info", folder.path("c"))
        #expect(missing.isRefused(naming: folder.path("c"), "no such file"), "\(missing)")
    }
}

/// The superuser can enter every folder, so the test runs in a separate process as another user.
@Suite(.enabled(if: geteuid() == 0, "only the superuser can become another user")) struct ForbiddenFolderTests {
    @Test func `a folder that may not be entered is named as the reason`() async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model, Shop.fill)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path(""))
        await #expect(processExitsWith: .success) { [path = folder.path("shop") as String] in
            try #require(setgid(65_534) == 0 && setuid(65_534) == 0)
            let run = await ToolRun("info", path)
            try #require(run.isRefused(naming: path, "may not enter one of its folders"), "\(run)")
        }
    }

    /// Catches: a temporary file with the mode of the original, which its owner may not write.
    @Test(arguments: ["lmdb", "sqlite"])
    func `a store that its owner may not write is copied, and the copy has its mode`(_ name: String) async throws {
        let folder = try ToolFolder()
        let kind: StoreKind = name == "lmdb" ? .lmdb : .sqlite
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let manager = FileManager.default
        for file in ["", "shop"] {
            try manager.setAttributes([.ownerAccountID: 65_534, .groupOwnerAccountID: 65_534], ofItemAtPath: folder.path(file))
        }
        for file in try manager.contentsOfDirectory(atPath: folder.path("")) where file != "shop" {
            try manager.removeItem(atPath: folder.path(file))
        }
        try manager.setAttributes([.posixPermissions: 0o444], ofItemAtPath: folder.path("shop"))
        await #expect(processExitsWith: .success) { [folder = folder.path("") as String, name = name as String] in
            try #require(setgid(65_534) == 0 && setuid(65_534) == 0)
            let shop = folder + "shop"
            setenv("TMPDIR", folder, 1)
            for verb in [["backup", shop, folder + "copy"], ["compact", shop, "--to", folder + "small"]] {
                // SQLite's stores are not compacted.
                if verb[0] == "compact", name == "sqlite" { continue }
                let run = await ToolRun(verb)
                try #require(run.status == 0, "\(run)")
                let mode = try FileManager.default.attributesOfItem(atPath: verb.last ?? "")[.posixPermissions] as? Int
                try #require(mode == 0o444)
            }
            let check = await ToolRun("migrate", "--check", shop, "--model", folder + "copy")
            try #require(check.status == 0, "\(check)")
            let left = try FileManager.default.contentsOfDirectory(atPath: folder)
            try #require(!left.contains { $0.contains("partial") }, "\(left)")
        }
    }
}
