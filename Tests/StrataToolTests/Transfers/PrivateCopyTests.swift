import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import StrataTool

/// Files that are made from a private store.
@Suite struct PrivateCopyTests {
    private static func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    private static func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    /// Creates a store that only its owner may read.
    private static func privateShop(_ kind: StoreKind) async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        try setMode(0o600, folder.path("shop"))
        return folder
    }

    /// Returns the verbs that create a file from the store, with the files that each creates.
    private static func verbs(_ folder: ToolFolder) -> [(arguments: [String], files: [String])] {
        let shop = folder.path("shop")
        return [
            (["repair", shop, folder.path("repaired")], ["repaired"]),
            (["import", shop, folder.path("new")], ["new"]),
            (["import", shop, folder.path("new.db"), "--kind", "sqlite"], ["new.db"]),
            (["export", shop, folder.path("shop.jsonl")], ["shop.jsonl"]),
            (["export", shop, folder.path("shop.sqlite")], ["shop.sqlite"]),
            (["export", shop, folder.path("csv")], ["csv/model.json", "csv/Band.csv"]),
        ]
    }

    /// Catches: copies that every user may read.
    @Test(arguments: fileKinds) func `S211: copies of a private store are private`(_ kind: StoreKind) async throws {
        let folder = try await Self.privateShop(kind)
        for (arguments, files) in Self.verbs(folder) {
            let run = await ToolRun(arguments)
            #expect(run.status == 0, "\(run)")
            for file in files { #expect(try Self.mode(folder.path(file)) == 0o600, "\(arguments)") }
        }
    }

    /// Catches: a replaced file that gets other permissions than before.
    @Test(arguments: fileKinds, [0o600, 0o640])
    func `S211: a replacement has the mode of the file that it replaces`(_ kind: StoreKind, _ mode: Int) async throws {
        let folder = try await Self.privateShop(kind)
        try Self.setMode(0o644, folder.path("shop"))
        for (arguments, files) in Self.verbs(folder) {
            try #require(await ToolRun(arguments).status == 0)
            for file in files { try Self.setMode(mode, folder.path(file)) }
            let run = await ToolRun(arguments + ["--replace"])
            #expect(run.status == 0, "\(run)")
            for file in files { #expect(try Self.mode(folder.path(file)) == mode, "\(arguments)") }
        }
    }

    /// Catches: a repaired store that cannot be written, because its source is read-only.
    @Test(arguments: fileKinds)
    func `S211: the owner may write to a store that is made from a read-only one`(_ kind: StoreKind) async throws {
        let folder = try await Self.privateShop(kind)
        try Self.setMode(0o400, folder.path("shop"))
        try #require(await ToolRun("repair", folder.path("shop"), folder.path("repaired")).status == 0)
        #expect(try Self.mode(folder.path("repaired")) == 0o600)
    }

    /// Catches: a file with classes that loses the mode of the file that it replaces.
    @Test func `S211: the classes of an import have the mode of the file that they replace`() async throws {
        let folder = try await Self.privateShop(.lmdb)
        let (shop, new, classes) = (folder.path("shop"), folder.path("new"), folder.path("Models.swift"))
        try #require(await ToolRun("import", shop, new, "--swift", classes).status == 0)
        try Self.setMode(0o640, classes)
        try #require(await ToolRun("import", shop, new, "--swift", classes, "--replace").status == 0)
        #expect(try Self.mode(classes) == 0o640)
    }

    /// Catches: a temporary copy of a private store that every user may read.
    @Test func `S211: the temporary copy of a damaged private store is private`() async throws {
        let folder = try await Self.privateShop(.lmdb)
        let sound = try folder.bytes("shop")
        var count = 0
        // Pages 0 and 1 are the meta pages, without which nothing can be copied.
        for page in 2..<(sound.count / 4096) {
            var bytes = sound
            bytes.replaceSubrange((page * 4096)..<((page + 1) * 4096), with: Data(count: 4096))
            let damaged = "damaged\(page)"
            try bytes.write(to: folder.url.appending(path: damaged))
            try Self.setMode(0o600, folder.path(damaged))
            let copy = try? await SalvagedFile(folder.path(damaged), .lmdb, for: folder.path("new"), existing: .refuse)
            guard let copy else { continue }
            #expect(try Self.mode(copy.path) == 0o600)
            copy.discard()
            count += 1
        }
        #expect(count > 0, "some pages can be done without")
    }
}
