import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Stores of Core Data with inheritance, imported by the tool.
@Suite struct CoreDataImportTests {
    @Test(arguments: fileKinds)
    func `sub-entities become subclasses in the store and in the printed model`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try makeDatabase(folder.path("garage.sqlite"), CoreDataGarage.tables(CoreDataGarage.model))
        let out = folder.path("out")
        let run = await ToolRun(
            "import", folder.path("garage.sqlite"), out, "--kind", kind == .sqlite ? "sqlite" : "lmdb", "--swift",
            folder.path("Models.swift"))
        #expect(run.status == 0, "\(run.errors)")
        func names(_ words: String...) async throws -> [String] {
            let found = await ToolRun(["query", out] + words + ["--json"])
            #expect(found.status == 0, "\(found.errors)")
            return try found.list().compactMap { $0["name"] as? String }
        }
        #expect(try await names("Vehicle", "--sort", "name") == ["Actros", "Alpine", "Golf", "Panda"])
        #expect(try await names("Car", "--sort", "name") == ["Alpine", "Golf", "Panda"])
        #expect(try await names("SportCar", "engine.power = 300 and doors = 2") == ["Alpine"])
        #expect(try await names("Truck", "sizeOfTruck = 'XL' and routes.count = 2 and color = 'blue'") == ["Actros"])
        #expect(try await names("Vehicle", "owner.name = 'Ann'").count == 2)
        #expect(try await names("Person", "favorite.name = 'Golf'") == ["Bob"])
        #expect(await ToolRun("query", out, "Vehicle", "doors = 2").isRefused(naming: "doors"))
        #expect(await ToolRun("verify", out).status == 0)
        let classes = try String(contentsOfFile: folder.path("Models.swift"), encoding: .utf8)
        let printed = await ToolRun("model", out).output
        for text in [
            "@Model(isAbstract: true) class Vehicle {", "@Model class Car: Vehicle {", "@Model final class SportCar: Car {",
            "@Model final class Truck: Vehicle {", "    var doors: Int16\n", "    var sizeOfTruck: String?\n",
            "    init(name: String, doors: Int16) {",
        ] {
            #expect(classes.contains(text), "\(text)")
            #expect(printed.contains(text), "\(text)")
        }
        #expect(classes.contains("@Relationship var favorite: Car?"))
        #expect(
            classes.contains("@Relationship(inverse: \\Route.trucks) var routes: [Route]")
                || classes.contains("var trucks: [Truck]"))
        try await opensWithClasses(folder, kind)
        // An abstract entity with objects in subentities survives an export.
        #expect(await ToolRun("export", out, folder.path("garage.jsonl")).status == 0)
        let again = await ToolRun("import", folder.path("garage.jsonl"), folder.path("again"))
        #expect(again.status == 0, "\(again.errors)")
        #expect(await ToolRun("diff", out, folder.path("again")).lines == ["no differences"])
    }

    @Test(arguments: fileKinds) func `info counts the objects of sub-entities below their root`(_ kind: StoreKind) async throws {
        let folder = try ToolFolder()
        try makeDatabase(folder.path("garage.sqlite"), CoreDataGarage.tables(CoreDataGarage.model))
        let out = folder.path("out")
        let words = ["import", folder.path("garage.sqlite"), out, "--kind", kind == .sqlite ? "sqlite" : "lmdb"]
        #expect(await ToolRun(words).status == 0)
        let lines = await ToolRun("info", out, "--no-model").lines.map {
            $0.split(separator: " ").prefix(4).joined(separator: " ")
        }
        let start = try #require(lines.firstIndex { $0.hasPrefix("Vehicle 4") })
        #expect(lines[(start + 1)...].prefix(3) == ["of these Car 3", "of these SportCar 1", "of these Truck 1"], "\(lines)")
        let entities = try #require(try await ToolRun("info", out, "--json").object()["entities"] as? [[String: Any]])
        let vehicle = try #require(entities.first { $0["name"] as? String == "Vehicle" })
        let found = try #require(vehicle["subentities"] as? [[String: Any]])
        #expect(found.map { $0["name"] as? String }.contains("SportCar") && found.count == 3, "\(found)")
    }

    /// The new store opens with the model of the classes, whose relationships lead to subclasses.
    private func opensWithClasses(_ folder: ToolFolder, _ kind: StoreKind) async throws {
        let model = try Dataset.read(folder.path("garage.sqlite")).model()
        let container = try await folder.container("out", kind, model)
        let found = try await container.read { context in
            let bob = try context.fetch(EntityFetchRequest("Person", matching: .equal("name", "Bob")))[0]
            let truck = try context.fetch(EntityFetchRequest("Truck"))[0]
            let engine = try context.fetch(EntityFetchRequest("Engine"))[0]
            return [
                bob.relatedObject("favorite")?.entityName ?? "", engine.relatedObject("car")?.entityName ?? "",
                truck.entityName, bob.relatedObjects("vehicles").map(\.entityName).joined(),
                "\(truck.relatedObjects("routes").count)",
            ]
        }
        #expect(found == ["Car", "SportCar", "Truck", "SportCar", "2"])
        try await container.close()
    }

    @Test func `a missing file of binary data stops the import, unless it may be left out`() async throws {
        let folder = try ToolFolder()
        let name = "0F8C44B3-9A0B-4C4D-8E56-3C1F2E6A7B90"
        var model = CoreDataModelCache()
        model.add("Note", [.attribute("image", 1000, isOptional: false, isExternal: true)])
        let marker = name.utf8.map { String($0, radix: 16) }.joined()
        try makeDatabase(
            folder.path("App.sqlite"),
            CoreDataGarage.header + """
                INSERT INTO Z_MODELCACHE VALUES (\(model.sqlLiteral));
                INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 2);
                CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZIMAGE BLOB);
                INSERT INTO ZNOTE VALUES (4, 1, 1, x'02\(marker)00'), (5, 1, 1, x'0141');
                """)
        let refused = await ToolRun("import", folder.path("App.sqlite"), folder.path("out"))
        #expect(refused.isRefused(naming: "Note 4.image", name, "--without-missing-files"), "\(refused.errors)")
        let run = await ToolRun("import", folder.path("App.sqlite"), folder.path("out"), "--without-missing-files")
        #expect(run.status == 0 && run.errors.contains("Note 4.image became null"), "\(run)")
        let files = folder.url.appending(path: ".App_SUPPORT/_EXTERNAL_DATA")
        try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 200_000).write(to: files.appending(path: name))
        #expect(await ToolRun("import", folder.path("App.sqlite"), folder.path("whole")).status == 0)
        let found = try await ToolRun("query", folder.path("whole"), "Note", "--json").list()
        #expect((found[0]["image"] as? String).flatMap { Data(base64Encoded: $0) }?.count == 200_000)
    }
}
