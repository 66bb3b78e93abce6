import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Opening with a changed model drops no values without permission (S165).
@Suite struct DataLossTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private static let title = PropertyDescription.attribute(.init(name: "title", type: .string))
    private static let rating = PropertyDescription.attribute(.init(name: "rating", type: .int32, isOptional: true))
    private static let unused = PropertyDescription.attribute(.init(name: "unused", type: .int32, isOptional: true))

    private static func relation(
        _ name: String, _ destination: String, _ inverse: String, _ cardinality: Cardinality
    ) -> PropertyDescription {
        .relationship(.init(name: name, destination: destination, inverse: inverse, cardinality: cardinality))
    }

    /// Creates a store with some tracks that have a rating, playlists of them, and labels without objects.
    private static func full() throws -> Model {
        try Model([
            EntityDescription(
                name: "Track", properties: [title, rating, unused, relation("playlists", "Playlist", "tracks", .toMany)]),
            EntityDescription(name: "Playlist", properties: [title, relation("tracks", "Track", "playlists", .toMany)]),
            EntityDescription(name: "Label", properties: [title]),
        ])
    }

    private static func plain(_ version: Int = 2) throws -> Model {
        try Model([EntityDescription(name: "Track", properties: [title])], version: .init(version))
    }

    private static func fill(_ bed: TestBed) async throws {
        let container = try await bed.container(model: try full())
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            let playlist = context.insert("Playlist")
            playlist["title"] = .string("all")
            for number in 0..<100 {
                let track = context.insert("Track")
                track["title"] = .string("track \(number)")
                if number % 10 == 0 { track["rating"] = .int(Int64(number)) }
                if number < 20 { track.setRelatedObjects("playlists", to: [playlist]) }
            }
        }
        try await worker.save(.durable)
    }

    private static func refusal(_ bed: TestBed, _ model: Model, allowing: Set<String> = []) async throws -> String {
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: model, store: bed.description, allowsDataLoss: allowing)
        }
        #expect(error?.code == .schemaMismatch, "\(String(describing: error))")
        return error?.message ?? ""
    }

    private static func count(_ container: PersistentContainer, _ entity: String) async throws -> Int {
        try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest(entity)) }
    }

    @Test(arguments: kinds) func `S165: what holds values is dropped only by name, and the error counts it`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        let message = try await Self.refusal(bed, Self.plain())
        for words in ["Track.rating (10 values)", "Playlist (1 object)", "Track.playlists (20 pairs)", "allowsDataLoss: ["] {
            #expect(message.contains(words), "\(message)")
        }
        // Properties and entities without values are not mentioned.
        #expect(!message.contains("unused") && !message.contains("Label"), "\(message)")
        #expect(!message.contains("higher version"))
        let rest = try await Self.refusal(bed, Self.plain(3), allowing: ["Playlist"])
        #expect(rest.contains("Track.rating (10 values)") && !rest.contains("Playlist ("), "\(rest)")
        try await bed.closed()
        // The file is unchanged.
        do {
            let container = try await bed.container(model: try Self.full())
            #expect(try await Self.count(container, "Playlist") == 1)
            let findings = try container.coordinator.store.verify()
            #expect(findings == [])
        }
        try await bed.closed()
        // The pairs are dropped with one of their ends.
        let container = try await PersistentContainer(
            model: try Self.plain(), store: bed.description, allowsDataLoss: ["Playlist", "Track.rating"])
        #expect(try await Self.count(container, "Track") == 100)
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: kinds) func `S165: a model that shares no entity with the file is refused at any version`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        for version in [0, 1, 99] {
            let other = try Model([EntityDescription(name: "Invoice", properties: [Self.title])], version: .init(version))
            let message = try await Self.refusal(bed, other)
            for word in ["Label, Playlist, Track", "Invoice"] { #expect(message.contains(word), "\(message)") }
            #expect(!message.contains("higher version"))
        }
        try await bed.closed()
        let container = try await bed.container(model: try Self.full())
        #expect(try await Self.count(container, "Track") == 100)
    }

    /// Catches: an older model that is taken for another program's, because all entities of the file have new names.
    @Test(arguments: kinds) func `S164: a file whose entities have all been renamed is too new for the model before`(
        _ kind: StoreKind
    ) async throws {
        let old = try Model([EntityDescription(name: "Track", properties: [Self.title])], version: .init(1))
        let new = try Model([EntityDescription(name: "Song", properties: [Self.title], renamedFrom: "Track")], version: .init(2))
        let bed = try TestBed(kind)
        for model in [old, new] { try await bed.container(model: model).close() }
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: old, store: bed.description)
        }
        #expect(error?.code == .schemaTooNew, "\(String(describing: error))")
        // A file that never had the former name does not tell whose model it is.
        let other = try TestBed(kind)
        try await other.container(model: new).close()
        let message = try await Self.refusal(other, old)
        #expect(message.contains("is a newer version of this one, update the program"), "\(message)")
    }

    /// Catches: hidden entities of orders, which an error lists and which would have to be named.
    @Test(arguments: kinds) func `S165: a file with ordered relationships is replaced if all its entities are named`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let mixes = try await bed.container(model: try Mixes.model())
        _ = try await Mixes.make("abc", in: mixes.coordinator.newBackgroundContext())
        try await mixes.close()
        let other = try Model([EntityDescription(name: "Invoice", properties: [Self.title])], version: .init(2))
        let message = try await Self.refusal(bed, other, allowing: ["Mix"])
        #expect(message.contains("The file has Mix, Song; the model has Invoice"), "\(message)")
        try await bed.closed()
        let container = try await PersistentContainer(model: other, store: bed.description, allowsDataLoss: ["Mix", "Song"])
        #expect(try await Self.count(container, "Invoice") == 0)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: kinds) func `S165: what holds no values goes without being asked for`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        _ = try await bed.container(model: try Self.full())
        try await bed.closed()
        let container = try await bed.container(model: try Self.plain())
        #expect(try await Self.count(container, "Track") == 0)
    }

    @Test(arguments: kinds) func `S165: a custom stage may drop, a lightweight stage of a plan may not`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed)
        try await bed.closed()
        let (full, plain) = (try Self.full(), try Self.plain())
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(
                model: plain, store: bed.description, migrationPlan: MigrationPlan([.lightweight(from: full, to: plain)]))
        }
        #expect(error?.message.contains("Track.rating (10 values)") == true, "\(String(describing: error))")
        try await bed.closed()
        let container = try await PersistentContainer(
            model: plain, store: bed.description, migrationPlan: MigrationPlan([.custom(from: full, to: plain)]))
        #expect(try await Self.count(container, "Track") == 100)
    }
}

/// A plan with lightweight stages only (S165).
@Suite struct LightweightPlanTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private static func model(_ version: Int, _ attributes: [AttributeDescription]) throws -> Model {
        try Model(
            [EntityDescription(name: "Thing", properties: attributes.map { .attribute($0) })], version: .init(version))
    }

    private static let number = AttributeDescription(name: "number", type: .int32)
    private static func first() throws -> Model { try model(1, [.init(name: "name", type: .string), number]) }
    private static func second() throws -> Model {
        try model(
            2,
            [
                .init(name: "title", type: .string, index: .indexed, renamedFrom: "name"), number,
                .init(name: "between", type: .int32, defaultValue: .int(7)),
            ])
    }
    private static func third() throws -> Model {
        try model(
            3,
            [
                .init(name: "number", type: .int64, index: .indexed), .init(name: "title", type: .string),
                .init(name: "extra", type: .string, defaultValue: .string("new")),
            ])
    }

    private static func plan() throws -> MigrationPlan {
        MigrationPlan([.lightweight(from: try first(), to: try second()), .lightweight(from: try second(), to: try third())])
    }

    private static func check(_ container: PersistentContainer) async throws {
        try await container.coordinator.finishMigration()
        let texts = try await container.newBatchOperationContext().perform { context in
            let fives = try context.count(EntityFetchRequest("Thing", matching: .equal("number", .int(5))))
            #expect(fives == 1)
            return try context.fetch(EntityFetchRequest("Thing")).map { "\($0["title"]) \($0["extra"])" }
        }
        #expect(texts == (0..<200).map { "\(Value.string("thing \($0)")) \(Value.string("new"))" })
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: kinds, [1, 2]) func `S165: lightweight stages run in their order from where the file is`(
        _ kind: StoreKind, _ start: Int
    ) async throws {
        let bed = try TestBed(kind)
        do {
            let container = try await bed.container(model: start == 1 ? Self.first() : Self.second())
            try await container.coordinator.insert(
                into: "Thing", [start == 1 ? "name" : "title", "number"],
                rows: (0..<200).map { [.string("thing \($0)"), .int(Int64($0))] })
        }
        try await bed.closed()
        // A file that has reached only the second model has values that the third model does not have.
        let dropped: Set<String> = start == 2 ? ["Thing.between"] : []
        do {
            let container = try await PersistentContainer(
                model: try Self.third(), store: bed.description, migrationPlan: try Self.plan(), allowsDataLoss: dropped)
            try await Self.check(container)
        }
        try await bed.closed()
        let again = try await PersistentContainer(
            model: try Self.third(), store: bed.description, migrationPlan: try Self.plan())
        try await Self.check(again)
    }

    @Test(arguments: kinds) func `S164: a lightweight stage that is refused leaves the file before the first one`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        do {
            let container = try await bed.container(model: try Self.first())
            try await container.coordinator.insert(into: "Thing", ["name", "number"], rows: [[.string("a"), .int(1)]])
        }
        try await bed.closed()
        let narrow = try Self.model(3, [.init(name: "title", type: .bool)])
        let plan = MigrationPlan([
            .lightweight(from: try Self.first(), to: try Self.second()), .lightweight(from: try Self.second(), to: narrow),
        ])
        await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: narrow, store: bed.description, migrationPlan: plan)
        }
        try await bed.closed()
        let found = try bed.description.migration?.storedSchema()
        #expect(found == (try Self.first().storeSchema.withoutHints))
    }
}
