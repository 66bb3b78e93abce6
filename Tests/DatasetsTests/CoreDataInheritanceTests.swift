import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import Datasets
@testable import SQLiteStore

/// Sub-entities of Core Data files become entities that inherit.
@Suite struct CoreDataInheritanceTests {
    private func dataset(_ sql: String, _ model: CoreDataModelCache? = CoreDataGarage.model) throws -> Dataset {
        let file = try CoreDataFolder()
        return try file.read(CoreDataGarage.tables(model) + sql)
    }

    @Test func `a model's sub-entities become subentities with their own properties`() throws {
        let data = try dataset("")
        #expect(data.tables.map(\.name) == ["Vehicle", "Person", "Engine", "Route"])
        let vehicle = data.tables[0]
        #expect(vehicle.isAbstract && vehicle.members == ["Vehicle", "Car", "Truck", "SportCar"])
        #expect(vehicle.subentities.map(\.superentity) == [0, 0, 1] && vehicle.kinds == [1, 2, 3, 1])
        let owners = Dictionary(uniqueKeysWithValues: vehicle.attributes.map { ($0.name, $0.owners) })
        #expect(
            owners == [
                "name": [0], "doors": [1], "size": [1], "sizeOfTruck": [2], "load": [2], "color": [1, 2],
            ])
        #expect(vehicle.attribute(named: "color")?.values == ["red", "blue", .null, "green"])
        #expect(vehicle.attribute(named: "sizeOfTruck")?.values == [.null, "XL", .null, .null])
        #expect(vehicle.attribute(named: "doors")?.isOptional == false && vehicle.attribute(named: "load")?.isOptional == true)
        #expect(data.notes.contains { $0.contains("Truck.size is named sizeOfTruck") })
        #expect(vehicle.references.map(\.name) == ["owner", "engine"] && vehicle.references.map(\.owner) == [0, 3])
        #expect(vehicle.references[0].ranks?.prefix(3) == [0, 1, 0] && vehicle.references[1].ranks == nil)
        let favorite = try #require(data.tables[1].references.first)
        #expect(favorite.name == "favorite" && favorite.destinationMember == 1 && favorite.inverse == "fans")
        let routes = try #require(data.links.first)
        #expect(routes.name == "routes" && routes.inverse == "trucks" && routes.sourceMember == 2)
        let model = try data.model()
        #expect(model.entity(named: "SportCar")?.superentityName == "Car" && model.entity(named: "Vehicle")?.isAbstract == true)
        #expect(model.entity(named: "SportCar")?.attributes.map(\.name) == ["name", "doors", "size", "color"])
        #expect(model.entity(named: "Truck")?.relationship(named: "routes") != nil)
        #expect(model.entity(named: "Vehicle")?.relationship(named: "routes") == nil)
        #expect(model.entity(named: "Person")?.relationship(named: "vehicles")?.isOrdered == true)
        #expect(model.entity(named: "Engine")?.relationships.map(\.name) == ["car"])
    }

    @Test func `without a model the root has all properties and a note says so`() throws {
        let data = try dataset("", nil)
        let vehicle = data.tables[0]
        #expect(vehicle.members == ["Vehicle", "Car", "Truck", "SportCar"] && vehicle.kinds == [1, 2, 3, 1])
        #expect(!vehicle.isAbstract && vehicle.attributes.allSatisfy { $0.owners == [0] })
        #expect(data.notes.contains { $0.contains("which properties the subentities of Vehicle declare is not known") })
        _ = try data.model()
    }

    @Test func `objects that contradict the model are kept and notes say how`() throws {
        // A door of a truck, an object of the abstract root, one of no entity, and a favorite that is a truck.
        let data = try dataset(
            """
            UPDATE ZVEHICLE SET ZDOORS = 9 WHERE Z_PK = 2;
            INSERT INTO ZVEHICLE (Z_PK, Z_ENT, ZNAME) VALUES (7, 1, 'raw'), (8, 99, 'lost');
            UPDATE ZPERSON SET ZFAVORITE = 2 WHERE Z_PK = 1;
            INSERT INTO Z_4ROUTES VALUES (1, 1);
            INSERT INTO Z_99OTHERS VALUES (1, 1);
            ALTER TABLE ZVEHICLE ADD COLUMN ZROUTES INTEGER;
            UPDATE ZVEHICLE SET ZROUTES = 3 WHERE Z_PK = 1;
            """)
        let vehicle = data.tables[0]
        #expect(!vehicle.isAbstract && vehicle.rowCount == 6 && vehicle.kinds.suffix(2) == [0, 0])
        #expect(vehicle.attribute(named: "doors")?.owners == [0] && vehicle.attribute(named: "doors")?.isOptional == true)
        #expect(data.tables[1].references[0].destinationMember == 0 && data.tables[1].references[0].rows[0] == 1)
        #expect(data.links[0].sourceMember == 0)
        // A column with the name of a to-many relationship, which has none.
        let routes = try #require(vehicle.attribute(named: "routes")).values
        #expect(routes.prefix(2).elementsEqual([3, .null]) && data.links[0].name == "routesOfVehicle")
        #expect(data.notes.contains { $0.contains("Vehicle is abstract in the model, but has objects") })
        #expect(data.notes.contains { $0.contains("1 objects of Vehicle have an unknown entity") })
        #expect(data.notes.contains { $0.contains("Z_99OTHERS: 1 links of unknown entities are left out") })
        _ = try data.model()
    }

    /// The garage with constraints and indexes: of the root, of a sub-entity, and of both over the same properties.
    private static func constrained(unique: [[String]], indexed: [[String]], ofCar: [[String]], carIndexes: [[String]] = [])
        -> CoreDataModelCache
    {
        var model = CoreDataModelCache()
        model.add(
            "Vehicle", isAbstract: true,
            [.attribute("name", 700, isOptional: false), .toOne("owner", to: "Person", inverse: "vehicles")], unique: unique,
            indexed: indexed)
        model.add(
            "Car", superentity: "Vehicle", [.attribute("doors", 100, isOptional: false), .attribute("color", 700)],
            unique: ofCar, indexed: carIndexes)
        model.add("SportCar", superentity: "Car", [])
        model.add("Truck", superentity: "Vehicle", [])
        model.add("Person", [.attribute("name", 700), .toMany("vehicles", to: "Vehicle", inverse: "owner")])
        return model
    }

    private static func notes(_ data: Dataset) -> [String] {
        data.notes.filter { $0.hasSuffix("is left out") && $0.contains(" over ") }
    }

    @Test func `a unique constraint of the root is imported, also over the properties of an index`() throws {
        let data = try dataset("", Self.constrained(unique: [["name", "owner"]], indexed: [["name", "owner"]], ofCar: []))
        #expect(data.tables[0].indexes == [.unique("name", "owner")])
        // The archive repeats it for each sub-entity.
        #expect(Self.notes(data).isEmpty, "\(data.notes)")
    }

    @Test func `a unique constraint of a sub-entity is noted, also if the root has an index over its properties`() throws {
        let data = try dataset(
            "", Self.constrained(unique: [], indexed: [["name", "owner"]], ofCar: [["name", "owner"], ["doors", "color"]]))
        #expect(data.tables[0].indexes == [.index("name", "owner")])
        #expect(
            Self.notes(data) == [
                "Car: the unique constraint over name, owner is left out",
                "Car: the unique constraint over doors, color is left out",
            ])
    }

    @Test func `what the root's index or constraint does already needs no note`() throws {
        let data = try dataset(
            "", Self.constrained(unique: [["name"]], indexed: [], ofCar: [["name"]], carIndexes: [["name"], ["doors", "name"]]))
        #expect(data.tables[0].indexes == [.unique("name")])
        #expect(Self.notes(data) == ["Car: the index over doors, name is left out"])
    }

    @Test func `a constraint that the values break is noted once`() throws {
        let data = try dataset(
            "UPDATE ZVEHICLE SET ZNAME = 'Golf' WHERE Z_PK = 4;", Self.constrained(unique: [["name"]], indexed: [], ofCar: []))
        #expect(data.tables[0].indexes == [.index("name")])
        #expect(data.notes.count { $0.contains("the unique constraint over name") } == 1, "\(data.notes)")
    }

    @Test func `a circle of superentities is broken at an entity with a table`() throws {
        let data = try dataset("UPDATE Z_PRIMARYKEY SET Z_SUPER = 3 WHERE Z_ENT = 1;")
        #expect(data.tables[0].members.contains("Car") && data.tables[0].rowCount == 4)
        #expect(data.notes.contains { $0.contains("Vehicle inherits from itself") })
        _ = try data.model()
        let many = (100..<15_000).map { "(\($0), 'E\($0)', \($0 - 1))" }.joined(separator: ",")
        let error = try #require(throws: DatasetError.self) {
            try dataset("INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER) VALUES \(many);")
        }
        #expect(error.description.contains("Z_PRIMARYKEY has"))
    }

    @Test func `a file with flipped bytes is read or refused`() throws {
        let file = try CoreDataFolder()
        _ = try file.read(CoreDataGarage.tables(CoreDataGarage.model))
        let sound = try Data(contentsOf: file.store)
        var random = SeededGenerator()
        for _ in 0..<Rounds.of(150, long: 5000) {
            var damaged = sound
            for _ in 0...random.below(8) { damaged[100 + random.below(damaged.count - 100)] = UInt8(random.below(256)) }
            try damaged.write(to: file.store)
            if let data = try? Dataset.read(file.store.path) { _ = try? data.model() }
        }
    }
}

/// Binary data in separate files.
@Suite struct ExternalDataTests {
    private static let name = "0F8C44B3-9A0B-4C4D-8E56-3C1F2E6A7B90"

    private static func marker(_ name: String) -> String {
        "x'02" + name.utf8.map { String($0, radix: 16) }.joined() + "00'"
    }

    /// A store of notes with images: inline data, and a file.
    private static func tables(isExternal: Bool?, _ second: String) -> String {
        var model = CoreDataModelCache()
        model.add("Note", [.attribute("image", 1000, isExternal: isExternal ?? false), .attribute("id", 1100)])
        let cache = isExternal == nil ? "" : "INSERT INTO Z_MODELCACHE VALUES (\(model.sqlLiteral));"
        return CoreDataGarage.header + cache + """
            INSERT INTO Z_PRIMARYKEY VALUES (1, 'Note', 0, 2);
            CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZIMAGE BLOB, ZID BLOB);
            INSERT INTO ZNOTE VALUES (4, 1, 1, x'01414243', NULL), (5, 1, 1, \(second), NULL), (6, 1, 1, NULL, NULL);
            """
    }

    private func image(_ data: Dataset) -> [Value]? {
        data.tables[0].attribute(named: "image").map { Array($0.values) }
    }

    @Test func `values in files and after markers are read, with a model and without`() throws {
        for isExternal in [true, false, nil] {
            let file = try CoreDataFolder()
            try file.addExternal(Self.name, Data("large".utf8))
            let data = try file.read(Self.tables(isExternal: isExternal, Self.marker(Self.name)))
            #expect(image(data) == [.data(Data("ABC".utf8)), .data(Data("large".utf8)), .null])
            #expect(data.notes.contains { $0.contains("1 values are in separate files") })
        }
    }

    @Test func `a missing file is an error with object and file, or null if asked`() throws {
        let file = try CoreDataFolder()
        let sql = Self.tables(isExternal: true, Self.marker(Self.name))
        let error = try #require(throws: DatasetError.self) { try file.read(sql) }
        #expect(error.description.contains("Note 5.image") && error.description.contains(Self.name))
        let data = try Dataset.read(file.store.path, options: DatasetOptions(leavesOutMissingFiles: true))
        #expect(image(data) == [.data(Data("ABC".utf8)), .null, .null])
        #expect(data.notes.contains { $0.contains("Note 5.image became null") })
        // A link could lead out of the folder.
        try Data("secret".utf8).write(to: file.url.appending(path: "secret"))
        try FileManager.default.createDirectory(at: file.external, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            at: file.external.appending(path: Self.name), withDestinationURL: file.url.appending(path: "secret"))
        #expect(throws: DatasetError.self) { try Dataset.read(file.store.path) }
    }

    @Test func `a name that leads out of the folder is refused`() throws {
        let file = try CoreDataFolder()
        try Data("secret".utf8).write(to: file.url.appending(path: "secret"))
        for name in ["../../secret", "/etc/passwd", String(Self.name.dropLast(3)) + "/..", ""] {
            let sql = Self.tables(isExternal: true, Self.marker(name))
            let error = try #require(throws: DatasetError.self) { try file.read(sql) }
            #expect(error.description.contains("Note 5.image names a file that Core Data cannot have written"))
            // Without a word from the model, it is data like any other.
            let data = try file.read(Self.tables(isExternal: false, Self.marker(name)))
            #expect(image(data)?[0] == .data(Data([1, 65, 66, 67])))
        }
    }

    @Test func `values without markers stay as they are`() throws {
        let file = try CoreDataFolder()
        let plain = try file.read(Self.tables(isExternal: false, "x'01FF'"))
        #expect(image(plain) == [.data(Data([1, 65, 66, 67])), .data(Data([1, 255])), .null])
        let marked = try file.read(Self.tables(isExternal: true, "x'77FF'"))
        #expect(image(marked) == [.data(Data("ABC".utf8)), .data(Data([0x77, 255])), .null])
        #expect(marked.notes.contains { $0.contains("1 values have no marker") })
        let unknown = try file.read(Self.tables(isExternal: nil, "x'01FF'"))
        #expect(unknown.tables[0].attribute(named: "image")?.values[0] == .data(Data([1, 65, 66, 67])))
        #expect(unknown.notes.contains { $0.contains("they are kept as they are") })
    }
}

/// A folder with a Core Data file, which is removed with the value.
private final class CoreDataFolder {
    let url: URL
    var store: URL { url.appending(path: "App.sqlite") }
    var external: URL { url.appending(path: ".App_SUPPORT/_EXTERNAL_DATA") }

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "strata-core-data-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func addExternal(_ name: String, _ data: Data) throws {
        try FileManager.default.createDirectory(at: external, withIntermediateDirectories: true)
        try data.write(to: external.appending(path: name))
    }

    /// Creates the file and reads it.
    func read(_ sql: String) throws -> Dataset {
        for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: store.path + end) }
        try SQLiteConnection(path: store.path, role: .creator).runScript(sql)
        return try Dataset.readInMemoryAndInFiles(store.path)
    }
}
