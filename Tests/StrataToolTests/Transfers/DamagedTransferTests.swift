import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Damage that only the checksums of pages show. A copy of a damaged value would have a fresh checksum, and pass for sound.
@Suite struct DamagedTransferTests {
    private static let verse = "a verse that no index contains"
    /// A value in the page of its collection.
    private static let note = "a value of a collection, which no index contains"
    /// A value that is stored outside of its page, as it is.
    private static let blob: Data = {
        var random = SeededGenerator()
        return Data((0..<20_000).map { _ in UInt8(random.below(256)) })
    }()

    private static func filled() async throws -> ToolFolder {
        let folder = try ToolFolder()
        try await folder.fill("shop", .lmdb, Shop.model) { context in
            Shop.fill(context)
            let song = context.insert("Song")
            song["title"] = "Song 7"
            song["seconds"] = 700
            song["text"] = .string(Self.verse)
            let blobs = try context.collection("blobs", of: Data.self)
            blobs["large"] = Self.blob
            blobs["small"] = Data(Self.note.utf8)
        }
        return folder
    }

    /// Writes a copy of the store in which one bit of some bytes is changed, wherever they are in the file.
    private static func damage(_ folder: ToolFolder, at part: Data) throws -> String {
        var bytes = try folder.bytes("shop")
        var start = bytes.startIndex
        var count = 0
        while let found = bytes.range(of: part, in: start..<bytes.endIndex) {
            bytes[found.lowerBound] ^= 1
            start = found.upperBound
            count += 1
        }
        try #require(count > 0)
        try bytes.write(to: folder.url.appending(path: "damaged"))
        return folder.path("damaged")
    }

    private static let parts = [Data(verse.utf8), Data(note.utf8), blob[8_000..<8_064]]

    @Test(arguments: parts) func `a damaged value is neither exported, imported nor backed up`(_ part: Data) async throws {
        let folder = try await Self.filled()
        let damaged = try Self.damage(folder, at: part)
        #expect(await ToolRun("verify", damaged).status == 1)
        let runs = [
            ["export", damaged, "new.jsonl"], ["export", damaged, "new-csv"], ["export", damaged, "new.sqlite"],
            ["export", damaged, "song.jsonl", "--entity", "Song"], ["import", damaged, "new"], ["backup", damaged, "new"],
        ]
        // An export of one entity has no collections.
        for arguments in runs where part == Self.parts[0] || arguments.count == 3 {
            let target = folder.path(arguments[2])
            let run = await ToolRun([arguments[0], damaged, target] + arguments.dropFirst(3))
            #expect(run.isRefused(naming: damaged, "page ", "strata repair"), "\(arguments): \(run)")
            #expect(!FileManager.default.fileExists(atPath: target), "\(arguments)")
        }
    }

    @Test func `repair leaves out a damaged value of a collection`() async throws {
        let folder = try await Self.filled()
        let damaged = try Self.damage(folder, at: Self.parts[2])
        let run = await ToolRun("repair", damaged, folder.path("repaired"))
        #expect(run.status == 1 && run.output.contains("keyed collections: 1 objects are lost"), "\(run)")
        #expect(await ToolRun("get", folder.path("repaired"), "blobs", "small").status == 0)
        #expect(await ToolRun("get", folder.path("repaired"), "blobs", "large").status == 1)
        #expect(await ToolRun("verify", folder.path("repaired")).status == 0)
    }
}
