import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The dry run of an opening, and the check of files of released versions (S202, S203).
@Suite struct ModelHistoryTests {
    private static let stores: [StoreKind] = [.lmdb, .sqlite]

    private static func description(_ kind: StoreKind) -> @Sendable (URL) -> StoreDescription {
        { kind == .lmdb ? .lmdb($0) : .sqlite($0) }
    }

    /// Three versions: bands with songs; songs with another name, an index and a genre; and no bands.
    private static func model(_ version: Int) throws -> Model {
        let isFirst = version == 1
        var song: [PropertyDescription] = [
            .attribute(
                .init(
                    name: isFirst ? "name" : "title", type: .string, index: isFirst ? .none : .indexed,
                    renamedFrom: isFirst ? nil : "name")),
            .attribute(.init(name: "plays", type: isFirst ? .int32 : .int64)),
        ]
        if !isFirst { song.append(.attribute(.init(name: "genre", type: .string, isOptional: true))) }
        if version < 3 {
            song.append(.relationship(.init(name: "band", destination: "Band", inverse: "songs", cardinality: .toOne)))
        }
        var entities = [EntityDescription(name: "Song", properties: song)]
        if version < 3 {
            entities.append(
                EntityDescription(
                    name: "Band",
                    properties: [
                        .attribute(.init(name: "name", type: .string)),
                        .relationship(.init(name: "songs", destination: "Song", inverse: "band", cardinality: .toMany)),
                    ]))
        }
        return try Model(entities, version: .init(version))
    }

    private static func fill(_ kind: StoreKind, _ file: URL, _ version: Int) async throws {
        let container = try await PersistentContainer(model: try model(version), store: description(kind)(file))
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            let band = version < 3 ? context.insert("Band") : nil
            for number in 0..<3 {
                let song = context.insert("Song")
                song["plays"] = .int(Int64(number))
                if let band { song.setRelatedObject("band", to: band) }
            }
        }
        try await context.save()
        try await container.close()
    }

    private static func closed(_ kind: StoreKind, _ file: URL) async throws {
        try await until("the file is closed") {
            guard let copy = try? description(kind)(file).migration?.makeCopy() else { return false }
            copy.discard()
            return true
        }
    }

    /// Catches: a dry run that promises an opening to a program that is older than the file, and a file that lets the older program in
    /// because a keyed value was stored meanwhile.
    @Test(arguments: stores, [false, true])
    func `S163, S202: the dry run and the opening refuse an earlier model of the same version`(
        _ kind: StoreKind, withKeyedValues: Bool
    ) async throws {
        let bed = try TestBed(kind)
        func model(_ names: [String]) throws -> Model {
            let properties = names.map { PropertyDescription.attribute(.init(name: $0, type: .int32, isOptional: true)) }
            return try Model([EntityDescription(name: "Thing", properties: properties)])
        }
        for names in [["a"], ["a", "b"]] {
            let container = try await PersistentContainer(model: try model(names), store: bed.description)
            if withKeyedValues, names.count == 2 {
                try await container.write { context in
                    try context.collection("drafts", of: Int.self)["spring"] = 1
                }
            }
            try await container.close()
        }
        let refusal = try await model(["a"]).changes(opening: bed.description).refusal
        #expect(refusal?.code == .schemaTooNew && refusal?.message.contains("newer model") == true)
        let error = await #expect(throws: StoreError.self) { _ = try await bed.container(model: try model(["a"])) }
        #expect(error?.message == refusal?.message)
        let readOnly: StoreDescription = kind == .lmdb ? .lmdb(bed.file, readOnly: true) : .sqlite(bed.file, readOnly: true)
        let observing = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: try model(["a"]), store: readOnly)
        }
        #expect(observing?.code == .schemaTooNew)
        #expect(try await model(["a", "b"]).changes(opening: bed.description).isEmpty)
    }

    /// Catches: a dry run that changes the file, forgets a kind of change, or finds another answer than the opening.
    @Test(arguments: stores)
    func `S202: a dry run lists what opening would rename, add, widen, index and drop, and changes nothing`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let file = bed.file
        try await Self.fill(kind, file, 1)
        try await Self.closed(kind, file)
        let bytes = try Data(contentsOf: file)
        let store = Self.description(kind)(file)
        let same = try await Self.model(1).changes(opening: store)
        #expect(same.isEmpty && same.fileVersion == SchemaVersion(1) && "\(same)" == "no changes")
        let second = try await Self.model(2).changes(opening: store)
        #expect(second.refusal == nil)
        #expect(
            second.lines == [
                "~ Song.name → Song.title", "~ Song.title: string → string, indexed", "~ Song.plays: int32 → int64",
                "+ Song.genre: string?", "~ version 1.0.0 → 2.0.0",
            ], "\(second)")
        let third = try await Self.model(3).changes(opening: store)
        #expect(third.lines.contains("- Band, and drops 1") && third.lines.contains("- Song.band, and drops 3"), "\(third)")
        #expect(third.refusal?.code == .schemaMismatch && third.refusal?.message.contains("Band (1 object)") == true)
        let allowed = try await Self.model(3).changes(opening: store, allowsDataLoss: ["Band"])
        #expect(allowed.refusal == nil && allowed.lines == third.lines)
        // A second pair of eyes: the opening itself.
        await #expect(throws: StoreError.self) { try await PersistentContainer(model: try Self.model(3), store: store) }
        try await Self.closed(kind, file)
        #expect(try Data(contentsOf: file) == bytes)
        let newer = bed.folder.appendingPathComponent("newer")
        try await Self.fill(kind, newer, 2)
        try await Self.closed(kind, newer)
        let older = try await Self.model(1).changes(opening: Self.description(kind)(newer))
        #expect(older.refusal?.code == .schemaTooNew)
    }

    private static func trip(_ properties: [PropertyDescription] = []) -> EntityDescription {
        EntityDescription(name: "Trip", properties: [.attribute(.init(name: "name", type: .string))] + properties)
    }

    private static func subentity(
        _ name: String, _ properties: [PropertyDescription] = [], of superentity: String = "Trip", isAbstract: Bool = false
    ) -> EntityDescription {
        EntityDescription(
            name: name, properties: properties, renamedFrom: name == "WorkTrip" ? "BusinessTrip" : nil, superentity: superentity,
            isAbstract: isAbstract)
    }

    private static func note(isOptional: Bool = true) -> PropertyDescription {
        .attribute(.init(name: "note", type: .string, isOptional: isOptional, defaultValue: isOptional ? .null : "none"))
    }

    /// Versions of a hierarchy, and the lines of the dry run that opens a file of the version before.
    private static func hierarchies() -> [(entities: [EntityDescription], lines: [String])] {
        [
            ([trip([note()])], []),
            ([trip([note()]), subentity("BusinessTrip")], ["+ BusinessTrip: inherits from Trip"]),
            (
                [trip(), subentity("BusinessTrip", [note()]), subentity("Conference", of: "BusinessTrip")],
                ["+ Conference: inherits from BusinessTrip", "~ Trip.note: string? → string? of BusinessTrip, and drops 1"]
            ),
            (
                [
                    trip(), subentity("WorkTrip", [note(isOptional: false)], isAbstract: true),
                    subentity("Conference", of: "WorkTrip"),
                ],
                [
                    "~ BusinessTrip → WorkTrip", "~ WorkTrip: inherits from Trip → inherits from Trip, abstract",
                    "~ Trip.note: string? of BusinessTrip → string of WorkTrip",
                ]
            ),
            (
                [trip(), subentity("WorkTrip", [note(isOptional: false)]), subentity("Conference")],
                [
                    "~ WorkTrip: inherits from Trip, abstract → inherits from Trip",
                    "~ Conference: inherits from WorkTrip → inherits from Trip", "- WorkTrip.note, and drops 1",
                ]
            ),
        ]
    }

    /// Catches: a dry run without changes, although opening writes a schema after which older programs are refused.
    @Test(arguments: stores)
    func `S186, S202: a dry run lists what changes in a hierarchy, and counts the values that objects lose`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let store = Self.description(kind)(bed.file)
        for (position, version) in Self.hierarchies().enumerated() {
            let model = try Model(version.entities, version: .init(position + 1))
            let allowed: Set<String> = ["Trip.note", "WorkTrip.note"]
            if position > 0 {
                let changes = try await model.changes(opening: store, allowsDataLoss: allowed)
                let lines = version.lines + ["~ version \(position).0.0 → \(position + 1).0.0"]
                #expect(changes.lines == lines && changes.refusal == nil, "\(changes)")
            }
            let container = try await PersistentContainer(model: model, store: store, allowsDataLoss: allowed)
            let worker = container.coordinator.newBackgroundContext()
            await worker.perform { context in
                if position == 0 { context.insert("Trip")["note"] = "lost" }
                if position == 3 { context.insert("Conference")["note"] = "kept" }
            }
            try await worker.save()
            try await container.close()
            try await Self.closed(kind, bed.file)
            #expect(try await model.changes(opening: store).isEmpty)
        }
        let last = try Model([Self.trip(), Self.subentity("WorkTrip", [Self.note(isOptional: false)])], version: .init(6))
        let changes = try await last.changes(opening: store)
        #expect(changes.lines.first == "- Conference", "opening never drops these objects: \(changes)")
        #expect(changes.refusal?.message.contains("Conference (1 object") == true, "\(changes)")
    }

    @Test(arguments: stores)
    func `S202: a dry run lists the stages of a plan, and derived attributes to compute`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(kind, bed.file, 1)
        try await Self.closed(kind, bed.file)
        let store = Self.description(kind)(bed.file)
        let plan = MigrationPlan([
            .lightweight(from: try Self.model(1), to: try Self.model(2)), .custom(from: try Self.model(2), to: try Self.model(3)),
        ])
        let planned = try await Self.model(3).changes(opening: store, migrationPlan: plan)
        #expect(planned.steps.map(\.isCustom) == [false, true] && planned.refusal == nil, "\(planned)")
        let missing = try await Self.model(3).changes(
            opening: store, migrationPlan: MigrationPlan([.lightweight(from: try Self.model(2), to: try Self.model(3))]))
        #expect(missing.refusal?.message.contains("no stage") == true)
        let other = bed.folder.appendingPathComponent("library")
        let plain = try await PersistentContainer(
            model: RecordLibrary.make(isDerived: false), store: Self.description(kind)(other))
        try await plain.close()
        try await Self.closed(kind, other)
        let derived = try await RecordLibrary.make(version: 2).changes(opening: Self.description(kind)(other))
        #expect(derived.lines.contains("~ Album.trackCount: computed for all objects"), "\(derived)")
        await #expect(throws: StoreError.self) { _ = try await Self.model(1).changes(opening: .memory) }
    }

    /// Catches: a check that works on the files themselves, skips one, or passes a file that does not open.
    @Test(arguments: stores)
    func `S203: files of released versions are checked on copies, and a failure names the file`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let fixtures = bed.folder.appendingPathComponent("fixtures")
        try FileManager.default.createDirectory(at: fixtures, withIntermediateDirectories: true)
        for version in 1...3 {
            let file = fixtures.appendingPathComponent("v\(version).store")
            try await Self.fill(kind, file, version)
            try await Self.closed(kind, file)
        }
        func contents() throws -> [String: Data] {
            let names = try FileManager.default.contentsOfDirectory(atPath: fixtures.path)
            return try Dictionary(
                uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: fixtures.appendingPathComponent($0))) })
        }
        let before = try contents()
        let plan = MigrationPlan([
            .lightweight(from: try Self.model(1), to: try Self.model(2)),
            .custom(
                from: try Self.model(2), to: try Self.model(3),
                didMigrate: { context in for _ in 0..<2 { _ = context.insert("Song") } }),
        ])
        let history = ModelHistory(
            model: try Self.model(3), migrationPlan: plan, store: Self.description(kind))
        let reports = try await history.check(fixtures: fixtures)
        #expect(reports.map(\.file.lastPathComponent) == ["v1.store", "v2.store", "v3.store"])
        #expect(reports.map(\.objectsBefore) == [["Song": 3, "Band": 1], ["Song": 3, "Band": 1], ["Song": 3]])
        #expect(reports.map(\.objectsAfter) == [["Song": 5], ["Song": 5], ["Song": 3]])
        #expect(reports[0].activities.contains("the change from 2.0.0 to 3.0.0") && reports[2].activities == [])
        #expect("\(reports[0])".contains("Song 3 → 5") && "\(reports[0])".contains("Band 1 → gone"), "\(reports[0])")
        #expect(try contents() == before, "the files are only read")
        // Without the plan, the first file loses values.
        do {
            _ = try await ModelHistory(model: try Self.model(3), store: Self.description(kind)).check(fixtures: fixtures)
            Issue.record("a file with bands opens without them")
        } catch let error as FixtureError {
            #expect(error.file.lastPathComponent == "v1.store" && "\(error)".contains("v1.store") && "\(error)".contains("Band"))
        }
        #expect(try contents() == before, "the files are only read")
        let empty = bed.folder.appendingPathComponent("empty")
        try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: true)
        await #expect(throws: StoreError.self) { try await history.check(fixtures: empty) }
        let text = bed.folder.appendingPathComponent("note")
        try Data("no store".utf8).write(to: text)
        await #expect(throws: FixtureError.self) { try await history.check(fixtures: [text]) }
    }

    /// Catches: the hidden entity of an order, of which the report says that it is gone.
    @Test(arguments: stores)
    func `S203: the report of a file counts no positions of ordered relationships`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await PersistentContainer(model: try Mixes.model(), store: Self.description(kind)(bed.file))
        _ = try await Mixes.make("abc", in: first.coordinator.newBackgroundContext())
        try await first.close()
        try await Self.closed(kind, bed.file)
        let history = ModelHistory(model: try Mixes.model(), store: Self.description(kind))
        let report = try #require(try await history.check(fixtures: [bed.file]).first)
        #expect(report.objectsBefore == ["Mix": 1, "Song": 3] && report.objectsAfter == report.objectsBefore)
        #expect(!"\(report)".contains("gone"), "\(report)")
    }

    /// Catches: objects of an inheriting entity that a stage loses, although the report has no number that changes by them.
    @Test(arguments: stores)
    func `S186, S203: the report of a file counts the objects of each entity of a hierarchy`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let entities = [Self.trip(), Self.subentity("BusinessTrip"), Self.subentity("Conference", of: "BusinessTrip")]
        let (first, second) = (try Model(entities, version: .init(1)), try Model(entities, version: .init(2)))
        let container = try await PersistentContainer(model: first, store: Self.description(kind)(bed.file))
        for name in entities.map(\.name) {
            try await container.coordinator.insert(into: name, ["name"], rows: [["a"]])
        }
        try await container.close()
        try await Self.closed(kind, bed.file)
        let plan = MigrationPlan([
            .custom(
                from: first, to: second,
                didMigrate: { context in
                    for trip in try context.fetch(EntityFetchRequest("Conference")) { context.delete(trip) }
                })
        ])
        let history = ModelHistory(model: second, migrationPlan: plan, store: Self.description(kind))
        let report = try #require(try await history.check(fixtures: [bed.file]).first)
        #expect(report.objectsBefore == ["Trip": 3, "BusinessTrip": 2, "Conference": 1])
        #expect(report.objectsAfter == ["Trip": 2, "BusinessTrip": 1, "Conference": 0])
        #expect("\(report)".contains("Conference 1 → 0"), "\(report)")
    }

    /// Catches: a dry run that checks no stage for losses if one of them is custom.
    @Test(arguments: stores)
    func `S202: a dry run refuses what a lightweight stage before a custom one would drop`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(kind, bed.file, 2)
        try await Self.closed(kind, bed.file)
        let store = Self.description(kind)(bed.file)
        let fourth = try Model(
            [
                EntityDescription(
                    name: "Song",
                    properties: [
                        .attribute(.init(name: "title", type: .string, index: .indexed)),
                        .attribute(.init(name: "plays", type: .int64)),
                        .attribute(.init(name: "genre", type: .string, isOptional: true)),
                        .attribute(.init(name: "mood", type: .string, isOptional: true)),
                    ])
            ], version: .init(4))
        let plan = MigrationPlan([
            .lightweight(from: try Self.model(2), to: try Self.model(3)), .custom(from: try Self.model(3), to: fourth),
        ])
        let changes = try await fourth.changes(opening: store, migrationPlan: plan)
        #expect(changes.refusal?.code == .schemaMismatch)
        await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(model: fourth, store: store, migrationPlan: plan)
        }
        #expect(try await fourth.changes(opening: store, migrationPlan: plan, allowsDataLoss: ["Band"]).refusal == nil)
    }

    /// Catches: a dry run that opens a copy for writing, which begins a branch of it.
    @Test(arguments: stores)
    func `S202: a dry run leaves a backup as it is`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(kind, bed.file, 2)
        let backup = bed.folder.appendingPathComponent("backup")
        let container = try await PersistentContainer(model: try Self.model(2), store: Self.description(kind)(bed.file))
        try await container.coordinator.backup(to: backup)
        try await container.close()
        let before = try Data(contentsOf: backup)
        let changes = try await Self.model(3).changes(opening: Self.description(kind)(backup))
        #expect(!changes.lines.isEmpty)
        #expect(try Data(contentsOf: backup) == before)
    }
}
