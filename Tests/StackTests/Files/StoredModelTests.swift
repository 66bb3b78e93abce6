import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Opening a file without the model that it was written with, and the sizes of its tables.
@Suite struct StoredModelTests {
    private func description(_ bed: TestBed, readOnly: Bool) -> StoreDescription {
        bed.kind == .lmdb ? .lmdb(bed.file, readOnly: readOnly) : .sqlite(bed.file, readOnly: readOnly)
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `a file opens with the model that is stored in it`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let writer = try await bed.container()
        try await writer.write { context in
            let artist = context.insert("Artist")
            artist["name"] = "Ann"
            let album = context.insert("Album")
            album["title"] = "One"
            album.setRelatedObject("artist", to: artist)
        }
        // While the file is open for writing in this process, its model can be read.
        let early = try await Model(storedIn: description(bed, readOnly: false))
        #expect(early.storeSchema.withoutHints == Music.model.storeSchema.withoutHints)
        try await writer.close()
        let before = try Data(contentsOf: bed.file)
        let store = description(bed, readOnly: true)
        let model = try await Model(storedIn: store)
        #expect(model.entities.map(\.name) == Music.model.entities.map(\.name))
        #expect(model.storeSchema.withoutHints == Music.model.storeSchema.withoutHints)
        let reader = try await PersistentContainer(model: model, store: store)
        let title = try await reader.read { context in
            try context.fetch(EntityFetchRequest("Album", matching: .equal("artist.name", "Ann"))).map { $0["title"] }
        }
        #expect(title == ["One"])
        let sizes = try await reader.coordinator.tableSizes()
        // SQLite knows sizes only if it was compiled with its statistics of pages.
        if kind == .lmdb || !sizes.isEmpty {
            #expect(sizes.first { $0.content == .objects && $0.name == "Album" }.map { $0.entries == 1 && $0.bytes > 0 } == true)
            #expect(sizes.contains { $0.content == .index && $0.name.hasPrefix("Track(") })
            #expect(sizes.contains { $0.content == .link } && sizes.contains { $0.content == .history && $0.entries > 0 })
            #expect(sizes.reduce(0) { $0 + $1.bytes } <= (try reader.coordinator.fileBytes()))
        }
        try await reader.close()
        #expect(try Data(contentsOf: bed.file) == before)
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `a file that another process has open shows its stored model`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let writer = try await bed.container()
        try await writer.write { context in context.insert("Artist")["name"] = "Ann" }
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, isLMDB = (kind == .lmdb) as Bool] in
            let url = URL(fileURLWithPath: path)
            let store: StoreDescription = isLMDB ? .lmdb(url, readOnly: true) : .sqlite(url, readOnly: true)
            let container = try await PersistentContainer(model: Model(storedIn: store), store: store)
            let count = try await container.read { try $0.count(EntityFetchRequest("Artist")) }
            guard count == 1 else { fatalError("\(count)") }
        }
        try await writer.write { context in context.insert("Artist")["name"] = "Bob" }
        try await writer.close()
    }

    /// Entities that inherit from each other, from none, or twice; and a hierarchy without a column of types.
    private static var wrongHierarchies: [StoreSchema] {
        func schema(_ parents: [(name: String, parent: String)], column: String = "type of object") -> StoreSchema {
            var entity = EntitySchema(name: "A", columns: [ColumnSchema(name: column, type: .int32)])
            entity.subentities = parents.map { SubentitySchema(name: $0.name, superentity: $0.parent, properties: []) }
            return StoreSchema(entities: [entity])
        }
        var empty = schema([("B", "A")])
        empty.entities[0].columns = []
        return [
            schema([("B", "C"), ("C", "B")]), schema([("B", "X")]), schema([("B", "A"), ("B", "A")]), schema([("A", "A")]),
            schema([("B", "A")], column: "kind"), empty,
        ]
    }

    @Test func `a store without a stored model is an error`() async throws {
        let bed = try TestBed(.lmdb)
        for readOnly in [false, true] {
            for kind in [StoreKind.lmdb, .sqlite] {
                let url = bed.folder.appendingPathComponent("missing")
                let store: StoreDescription = kind == .lmdb ? .lmdb(url, readOnly: readOnly) : .sqlite(url, readOnly: readOnly)
                let error = await #expect(throws: StoreError.self) { try await Model(storedIn: store) }
                #expect(error?.code == .cannotOpen)
                #expect(!FileManager.default.fileExists(atPath: url.path))
            }
        }
        let error = await #expect(throws: StoreError.self) { try await Model(storedIn: .memory) }
        #expect(error?.code == .unsupported)
    }

    @Test func `a schema with numbers that lead nowhere is refused`() throws {
        let column = ColumnSchema(name: "a", type: .reference, isOptional: true, index: .indexed, destination: 7)
        let schemas =
            [
                StoreSchema(entities: [EntitySchema(name: "A", columns: [column])]),
                StoreSchema(
                    entities: [EntitySchema(name: "A", columns: [])], links: [LinkSchema(name: "A.b", source: 0, destination: 1)]),
                StoreSchema(
                    entities: [EntitySchema(name: "A", columns: [], indexes: [IndexSchema(columns: [3])])]),
                StoreSchema(entities: [EntitySchema(name: "A", columns: []), EntitySchema(name: "a", columns: [])]),
                // A link under a name that no model gives to it.
                StoreSchema(
                    entities: [EntitySchema(name: "A", columns: [])], links: [LinkSchema(name: "b", source: 0, destination: 0)]),
            ] + Self.wrongHierarchies
        for schema in schemas {
            let error = #expect(throws: StoreError.self) { try Model(stored: schema) }
            #expect(error?.code == .schemaMismatch)
        }
        #expect(try Model(stored: StoreSchema(entities: [])).entities.isEmpty)
    }
}
