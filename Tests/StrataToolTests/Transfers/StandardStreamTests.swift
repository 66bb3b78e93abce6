import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Notes are on standard error, so that they never mix with data on standard output.
@Suite struct StandardStreamTests {
    private static let note = "1 references to objects that do not exist became null\n"

    @Test func `the objects on standard output are those of a file, byte for byte, also with notes`() async throws {
        let folder = try ToolFolder()
        let shop = folder.path("shop")
        try await folder.fill("shop", .sqlite, Shop.model, Shop.fill)
        // A reference to an object that does not exist, which an export notes.
        try makeDatabase(shop, "UPDATE Album SET band = 99999 WHERE title = 'Blur';")
        let file = await ToolRun("export", shop, folder.path("shop.jsonl"))
        #expect(file.status == 0 && file.errors == Self.note && file.lines.count == 1, "\(file)")
        let piped = await ToolRun("export", shop, "-")
        #expect(piped.status == 0 && piped.errors == Self.note, "\(piped)")
        #expect(try Data(piped.output.utf8) == folder.bytes("shop.jsonl"))
        // In the shell, too.
        let shell = await ToolRun("shell", shop, input: ["export -"])
        #expect(shell.output == piped.output && shell.errors == Self.note, "\(shell)")
        let json = await ToolRun("export", shop, folder.path("other.jsonl"), "--json")
        #expect(try json.errors.isEmpty && (json.object()["notes"] as? [String])?.count == 1, "\(json)")
        let copy = await ToolRun("import", shop, folder.path("copy"))
        #expect(copy.status == 0 && copy.errors == Self.note && copy.lines.count == 1, "\(copy)")
    }

    @Test(arguments: fileKinds) func `an export without notes writes its data only`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        #expect(await ToolRun("export", folder.path("shop"), folder.path("shop.jsonl")).status == 0)
        let piped = await ToolRun("export", folder.path("shop"), "-")
        #expect(piped.status == 0 && piped.errors.isEmpty)
        #expect(try Data(piped.output.utf8) == folder.bytes("shop.jsonl"))
    }

    @Test func `the classes on standard output are those of a file, byte for byte`() async throws {
        let folder = try ToolFolder()
        let garage = folder.path("garage.sqlite")
        try makeDatabase(garage, CoreDataGarage.tables(CoreDataGarage.model))
        let file = await ToolRun("import", garage, folder.path("first"), "--swift", folder.path("Models.swift"))
        #expect(file.status == 0 && file.lines.count == 1, "\(file)")
        #expect(file.errors.contains("Truck.size is named sizeOfTruck: "), "\(file)")
        let piped = await ToolRun("import", garage, folder.path("second"), "--swift", "-")
        #expect(piped.status == 0)
        #expect(try Data(piped.output.utf8) == folder.bytes("Models.swift"))
        // The result is shown after the notes.
        let line = file.output.replacing("first: ", with: "second: ")
        #expect(piped.errors == file.errors + line, "\(piped.errors)")
        let mixed = await ToolRun("import", garage, folder.path("third"), "--swift", "-", "--json")
        #expect(mixed.isRefused(naming: "--json", "--swift") && mixed.output.isEmpty, "\(mixed)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("third")))
    }
}
