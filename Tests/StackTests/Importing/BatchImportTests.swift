import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Relationships by unique values in batches, and the progress and cancellation of imports (S137).
@Suite struct BatchImportTests {
    private static func options(_ rows: Int) -> BatchOptions {
        var options = BatchOptions()
        options.rowsPerSave = rows
        return options
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: rows relate to earlier rows and saved objects by unique values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Disc", ["name"], rows: [["One"], ["Two"]])
        for rowsPerSave in [1, 2, 100] {
            let prefix = "\(rowsPerSave)-"
            let rows: [[Value]] = [
                [.string(prefix + "a"), "One", .null], [.string(prefix + "b"), "Two", .string(prefix + "a")],
                [.string(prefix + "c"), .null, .string(prefix + "b")],
            ]
            try await coordinator.insert(
                into: "Song", ["code", "disc.name", "original.code"], rows: rows, options: Self.options(rowsPerSave))
            let shown = try await container.newBatchOperationContext().perform { context throws in
                try context.find(unique: \Song.code, prefix + "c")?.original?.original?.disc?.name
            }
            #expect(shown == "One")
        }
        let error = await #expect(throws: BatchError.self) {
            try await coordinator.insert(into: "Song", ["code", "disc.name"], rows: [["x", "Three"]])
        }
        #expect("\(error as Any)".contains("cannot set Song.disc.name: no Disc has the name \"Three\"."))
        await #expect(throws: FetchError.self) {
            try await coordinator.insert(into: "Song", ["code", "disc.songs"], rows: [["x", "Three"]])
        }
        await #expect(throws: FetchError.notUnique(entity: "Song", property: "title")) {
            try await coordinator.insert(into: "Song", ["code", "original.title"], rows: [["x", "Three"]])
        }
        #expect(try coordinator.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: a batch update relates objects by a unique value`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Disc", ["name"], rows: [["One"], ["Two"]])
        try await coordinator.insert(
            into: "Song", ["code", "plays"], rows: (0..<6).map { [.string("s\($0)"), .int(Int64($0))] })
        let many = FetchRequest<Song>(where: #Predicate { $0.plays >= 3 })
        let result = try await coordinator.batchUpdate(many, .set(\.disc, \.name, to: "Two"), .set(\.plays, to: 9))
        #expect(result.updatedCount == 3)
        try await coordinator.batchUpdate(
            EntityFetchRequest("Song", matching: .compare("plays", .less, to: 3)), set: ["disc.name": "One"])
        let discs = try await container.newBatchOperationContext().perform { context throws in
            try context.fetch(FetchRequest<Disc>(sortBy: [.init(\.name)])).map { $0.songs.count }
        }
        #expect(discs == [3, 3])
        let error = await #expect(throws: BatchError.self) {
            try await coordinator.batchUpdate(many, .set(\.disc, \.name, to: "Three"))
        }
        #expect("\(error as Any)".contains("no Disc has the name \"Three\""))
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a name that is cut at its first dot. The columns of imported files have such names.
    @Test(arguments: StoreKind.allCases)
    func `S137: batches and prefetching take properties whose names contain dots`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model([Bloom.self, Meadow.self]))
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Meadow", ["Meadow.Name"], rows: [["Lake"], ["Hill"]])
        let rows: [[Value]] = [[5.1, "Lake"], [7.0, "Lake"]]
        try await coordinator.insert(into: "Bloom", ["Sepal.Length", "found.in.Meadow.Name"], rows: rows)
        @Sendable func shown() async throws -> [[Value]] {
            try await container.newBatchOperationContext().perform { context throws in
                var request = EntityFetchRequest("Bloom", sortBy: [.init("Sepal.Length")])
                request.relationshipKeyPathsForPrefetching = ["found.in"]
                return try context.fetch(request).map { bloom -> [Value] in
                    let place = bloom.relatedObject("found.in")?["Meadow.Name"] ?? .null
                    return [bloom["Sepal.Length"], bloom["Sepal.Width"], place]
                }
            }
        }
        let short = EntityFetchRequest("Bloom", matching: .compare("Sepal.Length", .less, to: 6.0))
        try await coordinator.batchUpdate(short, set: ["Sepal.Length": 6.5, "found.in.Meadow.Name": "Hill"])
        let byName: [[Value]] = [[6.5, 0.0, "Hill"], [7.0, 0.0, "Lake"]]
        #expect(try await shown() == byName)
        try await coordinator.batchUpdate(
            FetchRequest<Bloom>(where: #Predicate { $0.length < 7 }), .set(\.length, to: 1), .set(\.width, to: 2),
            .set(\.place, \.name, to: "Lake"))
        let typed: [[Value]] = [[1.0, 2.0, "Lake"], [7.0, 0.0, "Lake"]]
        #expect(try await shown() == typed)
        await #expect(throws: FetchError.unknownProperty(entity: "Bloom", property: "Sepal")) {
            try await coordinator.insert(into: "Bloom", ["Sepal.Color"], rows: [[1.0]])
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S139: of two changes of one relationship, by id and by a unique value, the last one applies`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Disc", ["name"], rows: [["One"], ["Two"]])
        try await coordinator.insert(into: "Song", ["code"], rows: [["s"]])
        let two = try await coordinator.newBackgroundContext().perform { context throws in
            try #require(try context.find(unique: \Disc.name, "Two")).managedObject.objectID
        }
        @Sendable func disc() async throws -> String? {
            try await coordinator.newBackgroundContext().perform { try $0.find(unique: \Song.code, "s")?.disc?.name }
        }
        let all = FetchRequest<Song>()
        try await coordinator.batchUpdate(all, .set(\.disc, \.name, to: "One"), .set(\.disc, to: two))
        #expect(try await disc() == "Two")
        try await coordinator.batchUpdate(all, .set(\.disc, to: two), .set(\.disc, \.name, to: "One"))
        #expect(try await disc() == "One")
    }

    /// Runs an import that cancels its own task after the second save of 10 rows. Returns the number of saved rows.
    private static func savedRowsOfCancelledImport(
        _ run: @escaping @Sendable (@escaping @Sendable (BatchProgress) -> Void) async throws -> Void
    ) async throws -> Int {
        let task = Task {
            try await run { if $0.savedRows >= 20 { withUnsafeCurrentTask { $0?.cancel() } } }
        }
        do {
            try await task.value
        } catch BatchError.importStopped(let savedRows, let error) {
            #expect(error is CancellationError)
            #expect(savedRows == 20 || savedRows == 30)
            return savedRows
        }
        Issue.record("the import was not cancelled")
        return 0
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: an import reports its saves, and a cancelled one keeps whole saves only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        let reports = Mutex<[BatchProgress]>([])
        let rows: [[Value]] = (0..<25).map { [.string("s\($0)")] }
        try await coordinator.insert(into: "Song", ["code"], rows: rows, options: Self.options(10)) { progress in
            reports.withLock { $0.append(progress) }
        }
        #expect(reports.withLock { $0.map(\.description) } == ["10 of 25 rows", "20 of 25 rows", "25 of 25 rows"])
        let many: [[Value]] = (100..<2100).map { [.string("s\($0)")] }
        let savedRows = try await Self.savedRowsOfCancelledImport { progress in
            _ = try await coordinator.insert(into: "Song", ["code"], rows: many, options: Self.options(10), progress: progress)
        }
        let count = try await container.newBatchOperationContext().perform { try $0.count(FetchRequest<Song>()) }
        #expect(count == 25 + savedRows)
        let cancelled = Task { [coordinator] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await coordinator.insert(into: "Song", ["code"], rows: [["never"]])
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try coordinator.store.verify() == [])
    }

    @Test(arguments: StoreKind.allCases)
    func `S137: an import of Swift values reports its saves, and a cancelled one keeps whole saves only`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        let reports = Mutex<[String]>([])
        let values = (0..<25).map { SongValue(code: "s\($0)", title: "Title \($0)") }
        let result = try await coordinator.insert(contentsOf: values, as: Song.self, options: Self.options(10)) { progress in
            reports.withLock { $0.append(progress.description) }
        }
        #expect(result.insertedCount == 25)
        #expect(reports.withLock { $0 } == ["10 of 25 rows", "20 of 25 rows", "25 of 25 rows"])
        let many = (100..<2100).map { SongValue(code: "s\($0)") }
        let savedRows = try await Self.savedRowsOfCancelledImport { progress in
            _ = try await coordinator.insert(contentsOf: many, as: Song.self, options: Self.options(10), progress: progress)
        }
        let codes = try await container.newBatchOperationContext().perform { context throws in
            try context.fetch(FetchRequest<Song>()).compactMap(\.code)
        }
        #expect(codes == (values + many.prefix(savedRows)).compactMap(\.code))
        let cancelled = Task { [coordinator] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await coordinator.insert(contentsOf: [SongValue(code: "never")], into: "Song")
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a reference that follows a unique value to the object that had it before the save, although an earlier row has replaced it.
    @Test(arguments: StoreKind.allCases, [1, 100])
    func `S137: no row refers to a unique value that an earlier row has replaced`(_ kind: StoreKind, _ rowsPerSave: Int)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Song", ["code", "title"], rows: [["old", "A"]])
        @Sendable func load(_ rows: [[Value]]) async throws {
            try await coordinator.insert(
                into: "Song", ["code", "title", "original.code"], rows: rows, rule: .update(on: ["title"]),
                options: Self.options(rowsPerSave))
        }
        let saved = await #expect(throws: BatchError.self) {
            try await load([["new", "A", .null], ["x", "B", "old"]])
        }
        #expect("\(saved as Any)".contains("no Song has the code \"old\""))
        let own = await #expect(throws: BatchError.self) {
            try await load([["p", "C", .null], ["q", "C", .null], ["y", "D", "p"]])
        }
        #expect("\(own as Any)".contains("no Song has the code \"p\""))
        // An earlier row may have found the replaced value already.
        let found = await #expect(throws: BatchError.self) {
            try await load([["first", "E", .null], ["r", "F", "first"], ["last", "E", .null], ["z", "G", "first"]])
        }
        #expect("\(found as Any)".contains("no Song has the code \"first\""))
        try await load([["newest", "A", .null], ["s", "H", "newest"]])
        let original = try await container.newBatchOperationContext().perform { context throws in
            try context.find(unique: \Song.code, "s")?.original?.title
        }
        #expect(original == "A")
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: an import that stops because of a destination of a row that it would drop.
    @Test(arguments: StoreKind.allCases, [1, 100])
    func `S137: a row that is dropped needs no destination`(_ kind: StoreKind, _ rowsPerSave: Int) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Song", ["code"], rows: [["saved"]])
        @Sendable func load(_ rows: [[Value]]) async throws -> Int {
            try await coordinator.insert(
                into: "Song", ["code", "disc.name"], rows: rows, rule: .keep(on: ["code"]), options: Self.options(rowsPerSave)
            ).insertedCount
        }
        #expect(try await load([["saved", "none"], ["new", .null], ["new", "none"]]) == 1)
        let error = await #expect(throws: BatchError.self) { _ = try await load([["newer", "none"]]) }
        #expect("\(error as Any)".contains("no Disc has the name \"none\""))
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a row with as many values as the entity has columns, of which two set one column, so that the rest gets no values.
    @Test(arguments: StoreKind.allCases)
    func `S137: two names of one relationship leave the other properties their defaults`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model([Bloom.self, Meadow.self]))
        let coordinator = container.coordinator
        try await coordinator.insert(into: "Meadow", ["Meadow.Name"], rows: [["Lake"]])
        let rows: [[Value]] = [[5.5, .null, "Lake"]]
        let result = try await coordinator.insert(
            into: "Bloom", ["Sepal.Length", "found.in", "found.in.Meadow.Name"], rows: rows)
        #expect(result.insertedCount == 1)
        let blooms = try await container.read { context in
            try context.fetch(FetchRequest<Bloom>()).map { [$0.length.description, $0.width.description, $0.place?.name] }
        }
        #expect(blooms == [["5.5", "0.0", "Lake"]])
        #expect(try coordinator.store.verify() == [])
    }

    /// Catches: a rule that compares no values, by which every object is the same.
    @Test(arguments: StoreKind.allCases)
    func `S137: without properties to compare, each row is a new object`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        for rule in [UpsertRule.update(on: []), .keep(on: [])] {
            try await container.coordinator.insert(into: "Disc", ["name"], rows: [["1\(rule)"], ["2\(rule)"]], rule: rule)
        }
        #expect(try await container.read { try $0.count(EntityFetchRequest("Disc")) } == 4)
    }

    /// Catches: an import that counts a lazy collection first, so that the closures of the program run twice.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S137: an import runs the closures of a lazy collection once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        var seen: Set<String> = []
        var calls = 0
        let distinct = ["a", "b", "a"].lazy.filter { code in
            calls += 1
            return seen.insert(code).inserted
        }
        let rows = distinct.map { [Value.string($0)] }
        let totals = Mutex<[Int?]>([])
        let result = try await container.coordinator.insert(
            into: "Song", ["code"], rows: rows, options: Self.options(10)
        ) { progress in totals.withLock { $0.append(progress.totalRows) } }
        #expect(result.insertedCount == 2 && calls == 3)
        // The number of these rows is known without calling the closure.
        let numbered = (0..<3).lazy.map { [Value.string("s\($0)")] }
        try await container.coordinator.insert(into: "Song", ["code"], rows: numbered, options: Self.options(10)) { progress in
            totals.withLock { $0.append(progress.totalRows) }
        }
        #expect(totals.withLock { $0 } == [nil, 3])
        #expect(try container.coordinator.store.verify() == [])
    }
}

/// A model whose properties are stored under names with dots.
private final class Bloom: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var length: Double { managedObject.get(0) }
    var width: Double { managedObject.get(1) }
    var place: Meadow? { managedObject.toOne(0, 2) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Bloom",
        properties: [
            .attribute(AttributeDescription("Sepal.Length", of: \Bloom.length)),
            .attribute(AttributeDescription("Sepal.Width", of: \Bloom.width)),
            .relationship(RelationshipDescription(name: "found.in", destination: "Meadow", cardinality: .toOne)),
        ])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Bloom.length: "Sepal.Length", \Bloom.width: "Sepal.Width", \Bloom.place: "found.in",
    ]
}

private final class Meadow: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var name: String { managedObject.get(0) }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Meadow",
        properties: [.attribute(AttributeDescription("Meadow.Name", of: \Meadow.name, index: .unique))])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Meadow.name: "Meadow.Name"]
}
