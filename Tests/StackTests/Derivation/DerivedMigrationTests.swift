import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Files that get derived attributes, or other ones (S201).
@Suite struct DerivedMigrationTests {
    private static let stores: [StoreKind] = [.lmdb, .sqlite]

    private static func fill(_ container: PersistentContainer) async throws {
        let context = container.coordinator.newBackgroundContext()
        await context.perform { context in
            for number in 0..<150 {
                let artist = context.makeArtist(named: "artist \(number)")
                artist["sortName"] = .string("sort \(number)")
                let album = context.makeRecord("Album \(number)")
                album.setRelatedObject("artist", to: artist)
                for track in 0..<(number % 4) { context.makeSong("t\(track)", length: Int64(number), rating: 1, on: album) }
            }
        }
        try await context.save()
    }

    /// Catches: derived attributes that begin with zero, and objects whose pages are not visited.
    @Test(arguments: stores)
    func `S201: opening a file with new derived attributes computes the values of all objects`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let plain = try await bed.container(model: RecordLibrary.make(isDerived: false))
        try await Self.fill(plain)
        try await plain.close()
        try await bed.closed()
        let derived = try await bed.container(.split, model: RecordLibrary.make(version: 2))
        #expect(try await RecordLibrary.differences(in: derived) == [])
        let counted = try await derived.coordinator.newBackgroundContext().perform { context in
            try context.count(EntityFetchRequest("Album", matching: .equal("trackCount", .int(3))))
        }
        #expect(counted == 37)
        let generation = try derived.coordinator.snapshot().generation
        try await derived.close()
        try await bed.closed()
        // The values are there: opening again writes nothing.
        let again = try await bed.container(model: RecordLibrary.make(version: 2))
        #expect(try again.coordinator.snapshot().generation == generation)
        try await again.close()
    }

    /// Catches: values that stay those of the former derivation because column and type are the same.
    @Test(arguments: stores)
    func `S201: a changed derivation computes its values anew, and others keep theirs`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: RecordLibrary.model)
        try await Self.fill(first)
        try await first.close()
        try await bed.closed()
        let second = try await bed.container(model: RecordLibrary.make(name: "sortName", version: 2))
        let names = try await second.coordinator.newBackgroundContext().perform { context in
            try context.fetch(EntityFetchRequest("Album", sortBy: [AttributeSort("title")])).map { $0["artistName"] }
        }
        #expect(names.first == "sort 0" && names.allSatisfy { "\($0)".contains("sort") })
        #expect(try await second.coordinator.verify() == [])
        try await second.close()
    }

    /// Albums with a label and tracks with a length, which are required from version 2 on. Then the first title may be nil.
    private static func labels(_ version: Int) throws -> Model {
        let isFirst = version == 1
        return try Model(
            [
                EntityDescription(
                    name: "Album",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .attribute(
                            .init(name: "label", type: .string, isOptional: isFirst, defaultValue: isFirst ? .null : "None")),
                        .attribute(.init(name: "labelKey", type: .string, isOptional: true, derivation: .lowercased("label"))),
                        .attribute(.init(name: "total", type: .int64, derivation: .sum(of: "tracks.length"))),
                        .attribute(
                            .init(name: "mean", type: .double, isOptional: true, derivation: .average(of: "tracks.length"))),
                        .attribute(
                            .init(
                                name: "firstTitle", type: .string, isOptional: !isFirst, derivation: .minimum(of: "tracks.title"))
                        ),
                        .relationship(.init(name: "tracks", destination: "Track", inverse: "album", cardinality: .toMany)),
                    ]),
                EntityDescription(
                    name: "Track",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .attribute(.init(name: "length", type: .int32, isOptional: isFirst, defaultValue: isFirst ? .null : 7)),
                        .attribute(
                            .init(name: "albumLabel", type: .string, isOptional: true, derivation: .value(at: "album.label"))),
                        .relationship(.init(name: "album", destination: "Album", inverse: "tracks", cardinality: .toOne)),
                    ]),
            ], version: .init(version))
    }

    /// Catches: values that stay because their derivation does, although the migration changes what they are derived from, or what they
    /// are if there is nothing to derive them from.
    @Test(arguments: stores)
    func `S201: a source that becomes required, and a value that may be nil, compute the values anew`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: try Self.labels(1))
        let worker = first.coordinator.newBackgroundContext()
        let (full, empty, track) = await worker.perform { context in
            let (full, empty) = (context.makeRecord("Full"), context.makeRecord("Empty"))
            let track = context.insert("Track")
            track["title"] = "one"
            track.setRelatedObject("album", to: full)
            return (full.objectID, empty.objectID, track.objectID)
        }
        try await worker.save()
        #expect(try await first.coordinator.verify() == [])
        try await first.close()
        try await bed.closed()
        let second = try await bed.container(model: try Self.labels(2))
        let values = try await second.coordinator.newBackgroundContext().perform { context in
            let album = try context.existingObject(with: full)
            let other = try context.existingObject(with: empty)
            let song = try context.existingObject(with: track)
            return [
                album["labelKey"], album["total"], album["mean"], album["firstTitle"], other["firstTitle"], song["albumLabel"],
            ]
        }
        let wanted: [Value] = ["none", 7, 7.0, "one", .null, "None"]
        #expect(values == wanted)
        #expect(try await second.coordinator.verify() == [])
        try await second.close()
    }

    /// Albums with a text to sort by, which programs set or which is derived.
    private static func sorting(_ version: Int, by derivation: Derivation?) throws -> Model {
        let properties: [PropertyDescription] = [
            .attribute(.init(name: "title", type: .string)),
            .attribute(.init(name: "sortTitle", type: .string, isOptional: true, derivation: derivation)),
        ]
        return try Model([EntityDescription(name: "Album", properties: properties)], version: .init(version))
    }

    private static func sortTitles(_ container: PersistentContainer) async throws -> [Value] {
        try await container.read { context in
            try context.fetch(EntityFetchRequest("Album", sortBy: [AttributeSort("title")])).map { $0["sortTitle"] }
        }
    }

    /// Catches: values that computed ones replace unasked, because the name and the type of their column stay.
    @Test(arguments: stores)
    func `S165, S201: an attribute with values becomes derived only by permission, and a derived one without`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let plain = try Self.sorting(1, by: nil)
        let first = try await bed.container(model: plain)
        try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            for (title, text) in [("The A", "a"), ("The B", "b")] { context.makeRecord(title)["sortTitle"] = .string(text) }
            _ = context.makeRecord("C")
        }
        try await first.close()
        let derived = try Self.sorting(2, by: .lowercased("title"))
        let loss = "it would drop Album.sortTitle (2 values; saves derive it now). To keep what they hold"
        for plan in [nil, MigrationPlan([.lightweight(from: plain, to: derived)])] {
            try await bed.closed()
            let dryRun = try await derived.changes(opening: bed.description, migrationPlan: plan)
            #expect(dryRun.refusal?.message.contains(loss) == true, "\(dryRun)")
            #expect(dryRun.lines.contains("~ Album.sortTitle: string? → string?, derived, and drops 2"), "\(dryRun)")
            try await bed.closed()
            let error = await #expect(throws: StoreError.self) {
                _ = try await PersistentContainer(model: derived, store: bed.description, migrationPlan: plan)
            }
            #expect(error?.code == .schemaMismatch && error?.message.contains(loss) == true, "\(String(describing: error))")
        }
        try await bed.closed()
        let same = try await bed.container(model: plain)
        #expect(try await Self.sortTitles(same) == [.null, "a", "b"], "the file is unchanged")
        try await same.close()
        try await bed.closed()
        let staged = try TestBed(kind)
        try FileManager.default.copyItem(at: bed.file, to: staged.file)
        let custom = try await PersistentContainer(
            model: derived, store: staged.description, migrationPlan: MigrationPlan([.custom(from: plain, to: derived)]))
        #expect(try await Self.sortTitles(custom) == ["c", "the a", "the b"])
        try await custom.close()
        let allowed = try await PersistentContainer(
            model: derived, store: bed.description, allowsDataLoss: ["Album.sortTitle"])
        #expect(try await Self.sortTitles(allowed) == ["c", "the a", "the b"])
        try await allowed.close()
        try await bed.closed()
        // Another derivation loses only computed values.
        let other = try await bed.container(model: try Self.sorting(3, by: .folded("title")))
        #expect(try await other.coordinator.verify() == [])
        try await other.close()
    }

    /// Catches: a crash between the change of the schema and the last value, after which the rest would stay wrong.
    @Test(arguments: stores)
    func `S201: an interrupted computation continues at the next opening`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let plain = try await bed.container(model: RecordLibrary.make(isDerived: false))
        try await Self.fill(plain)
        try await plain.close()
        try await bed.closed()
        // The state in which a process leaves the file that dies before the first value.
        let schema = RecordLibrary.make(version: 2).storeSchema
        do {
            let store = try bed.description.open(schema.markingDerivations { _, _ in true }.withKeyedValues)
            try store.shutDown()
        }
        try await bed.closed()
        let found = try await Model(storedIn: bed.description)
        #expect(found.entity(named: "Album")?.attribute(named: "trackCount")?.isDerived == true)
        let derived = try await bed.container(model: RecordLibrary.make(version: 2))
        #expect(try await RecordLibrary.differences(in: derived) == [])
        try await derived.close()
    }

    /// Catches: an older program that takes the file back to its derivation, after which neither program could open it.
    @Test(arguments: stores)
    func `S201: an older program of the same version is refused, and the file stays with the newer one`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        for name in ["name", "sortName"] {
            let container = try await bed.container(model: RecordLibrary.make(name: name))
            if name == "name" { try await Self.fill(container) }
            try await container.close()
            try await bed.closed()
        }
        do {
            _ = try await bed.container(model: RecordLibrary.make())
            Issue.record("the file has another derivation")
        } catch let error as StoreError {
            #expect(error.code == .schemaTooNew, "\(error)")
        }
        try await bed.closed()
        let newer = try await bed.container(model: RecordLibrary.make(name: "sortName"))
        #expect(try await newer.coordinator.verify() == [])
        try await newer.close()
    }

    /// Catches: stages of a plan that open the copy without computing, and stages that convert a column and so move the others.
    @Test(arguments: stores)
    func `S201: a stage of a plan finds derived values, and keeps them`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (old, new) = (RecordLibrary.make(isDerived: false), RecordLibrary.make(version: 2))
        let plain = try await bed.container(model: old)
        try await Self.fill(plain)
        try await plain.close()
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: old, to: new,
                didMigrate: { context in
                    let albums = EntityFetchRequest("Album", matching: .equal("trackCount", .int(3)))
                    for album in try context.fetch(albums) { context.makeSong("new", on: album) }
                })
        ])
        let migrated = try await PersistentContainer(model: new, store: bed.description, migrationPlan: plan)
        #expect(try await RecordLibrary.differences(in: migrated) == [])
        let counted = try await migrated.coordinator.newBackgroundContext().perform { context in
            try context.count(EntityFetchRequest("Album", matching: .equal("trackCount", .int(4))))
        }
        #expect(counted == 37)
        try await migrated.close()
    }

    /// Catches: a program that knows the file only by its stored model, and so writes wrong derived values.
    @Test(arguments: stores)
    func `S200: a program with the model of the file keeps derived values too`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: RecordLibrary.model)
        try await Self.fill(first)
        try await first.close()
        try await bed.closed()
        let stored = try await bed.container(model: try await Model(storedIn: bed.description))
        let context = stored.coordinator.newBackgroundContext()
        try await context.perform { context in
            let album = try context.fetch(EntityFetchRequest("Album"))[0]
            context.makeSong("new", length: 9, rating: 2, on: album)
            album.relatedObject("artist")?["name"] = "renamed"
        }
        try await context.save()
        try await stored.close()
        try await bed.closed()
        let last = try await bed.container(model: RecordLibrary.model)
        #expect(try await RecordLibrary.differences(in: last) == [])
        try await last.close()
    }

    /// Catches: values that change by saves of an older library and are never noticed.
    @Test(arguments: StoreKind.allCases)
    func `S200: verification finds a wrong derived value`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: RecordLibrary.model)
        let context = container.coordinator.newBackgroundContext()
        let id = await context.perform { $0.makeRecord("A").objectID }
        try await context.save()
        let store = container.coordinator.store
        let layer = Layer(schema: store.schema)
        let album = store.schema.entities[id.entity]
        let row = Row.make(kind: .update, layer: layer.id, columnCount: album.columns.count)
        row[try #require(album.columnIndices.first { album.columns[$0].name == "trackCount" })] = 7
        layer.put(row, entity: id.entity, key: id.key)
        layer.seal()
        try store.write(.durable) { transaction in
            layer.stamp(transaction.nextGeneration)
            try transaction.apply(layer, changes: layer.changeSet())
        }
        let found = try await container.coordinator.verify()
        #expect(found.count == 1 && found[0].description.hasPrefix("Album.trackCount of "))
        try await container.close()
    }

    static func addTracks(path: String, kind: String, count: Int) async throws {
        let url = URL(fileURLWithPath: path)
        let container = try await PersistentContainer(
            model: RecordLibrary.model, store: kind == "lmdb" ? .lmdb(url) : .sqlite(url), stack: .siblings)
        let context = container.coordinator.newBackgroundContext()
        for number in 0..<count {
            try await context.perform { context in
                if number % 5 == 0 { context.refreshAllObjects() }
                let album = try context.fetch(EntityFetchRequest("Album"))[0]
                context.makeSong("t\(number)", length: 1, on: album)
            }
            try await context.save(number % 2 == 0 ? .durable : .deferred(within: .milliseconds(5)))
        }
        try await container.flush()
        try await container.close()
    }

    /// Catches: a count that is computed before another process's save, and not again in the transaction.
    @Test(arguments: stores)
    func `S200: two processes that add tracks to one album end with the right count`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings, model: RecordLibrary.model)
        let context = container.coordinator.newBackgroundContext()
        let id = await context.perform { $0.makeRecord("A").objectID }
        try await context.save()
        async let other: Void = {
            await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = kind.rawValue as String] in
                try await DerivedMigrationTests.addTracks(path: path, kind: kind, count: 60)
            }
        }()
        for number in 0..<60 {
            try await context.perform { context in
                context.makeSong("own \(number)", length: 1, on: try context.existingObject(with: id))
            }
            try await context.save(number % 3 == 0 ? .durable : .deferred(within: .milliseconds(5)))
        }
        await other
        try await container.flush()
        #expect(try await RecordLibrary.differences(in: container) == [])
        let count = try await container.coordinator.newBackgroundContext().perform { context in
            try context.existingObject(with: id)["trackCount"]
        }
        #expect(count == 120)
        try await container.close()
    }

    /// Catches: values that are never computed, because the plan takes the marked file for one of its models.
    @Test(arguments: stores, [false, true])
    func `S201: an interrupted computation continues under a plan of a later model`(_ kind: StoreKind, _ isCustom: Bool)
        async throws
    {
        let bed = try TestBed(kind)
        let plain = try await bed.container(model: RecordLibrary.make(isDerived: false))
        try await Self.fill(plain)
        try await plain.close()
        try await bed.closed()
        let (second, third) = (RecordLibrary.make(version: 2), RecordLibrary.make(version: 3))
        do {
            // As a process leaves the file that is killed before it has computed anything.
            let store = try bed.description.open(second.storeSchema.markingDerivations { _, _ in true }.withKeyedValues)
            try store.shutDown()
        }
        try await bed.closed()
        let stage: MigrationStage = isCustom ? .custom(from: second, to: third) : .lightweight(from: second, to: third)
        let migrated = try await PersistentContainer(
            model: third, store: bed.description, migrationPlan: MigrationPlan([stage]))
        #expect(try await RecordLibrary.differences(in: migrated) == [])
        #expect(try await migrated.coordinator.verify() == [])
        try await migrated.close()
    }

    /// Catches: a derivation that looks unchanged, because the names in it are taken to be exchanged once more.
    @Test(arguments: stores)
    func `S201: a derivation that changes after names were exchanged computes its values`(_ kind: StoreKind) async throws {
        func model(_ version: Int, from source: String) throws -> Model {
            let isExchanged = version > 1
            let properties: [PropertyDescription] = [
                .attribute(.init(name: "a", type: .string, renamedFrom: isExchanged ? "b" : nil)),
                .attribute(.init(name: "b", type: .string, renamedFrom: isExchanged ? "a" : nil)),
                .attribute(.init(name: "d", type: .string, derivation: .lowercased(source))),
            ]
            return try Model([EntityDescription(name: "Thing", properties: properties)], version: .init(version))
        }
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1, from: "a"))
        try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            let thing = context.insert("Thing")
            (thing["a"], thing["b"]) = ("ONE", "TWO")
        }
        try await first.close()
        for (version, source, expected) in [(2, "a", "two"), (3, "b", "one"), (4, "b", "one")] {
            try await bed.closed()
            let changes = try await model(version, from: source).changes(opening: bed.description)
            #expect("\(changes)".contains("Thing.d") == (version < 4), "\(changes)")
            let next = try await bed.container(model: model(version, from: source))
            #expect(try await next.coordinator.verify() == [])
            #expect(try await next.read { try $0.fetch(EntityFetchRequest("Thing")).map { $0["d"] } } == [.string(expected)])
            try await next.close()
        }
    }

    /// Catches: a slower process that takes the file of a faster one back to the time before its values.
    @Test(arguments: stores)
    func `S201: a file whose derived values are complete is not marked as incomplete again`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let model = RecordLibrary.make(version: 2)
        let container = try await bed.container(model: model)
        let marked = model.storeSchema.markingDerivations { _, _ in true }.withKeyedValues
        #expect(throws: StoreError.self) { _ = try bed.description.open(marked) }
        let context = container.coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeRecord("A") }
        try await context.save()
        try await container.close()
    }
}
