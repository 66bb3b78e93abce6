import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Counts the requests for pages. Each evaluation of a row makes at least one.
private final class CountingSnapshot: StoreSnapshot {
    private let base: any StoreSnapshot
    private let asked = Mutex(0)

    init(_ base: any StoreSnapshot) { self.base = base }

    var pagesAsked: Int { asked.withLock { $0 } }
    var generation: Generation { base.generation }
    var schema: StoreSchema { base.schema }

    func page(_ entity: EntityIndex, _ number: PageNumber) throws -> (any StorePage)? {
        asked.withLock { $0 += 1 }
        return try base.page(entity, number)
    }

    func pageNumbers(_ entity: EntityIndex) throws -> [PageNumber] { try base.pageNumbers(entity) }
    func keys(_ query: StoreQuery) throws -> [ObjectKey] { try base.keys(query) }
    func count(_ query: StoreQuery) throws -> Int { try base.count(query) }
    func groups(_ aggregation: StoreAggregation) throws -> AggregateGroups { try base.groups(aggregation) }
    func lookup(_ entity: EntityIndex, column: ColumnIndex, value: Value) throws -> [ObjectKey] {
        try base.lookup(entity, column: column, value: value)
    }
    func parts(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> (any ValueParts)? {
        try base.parts(entity, key: key, column: column)
    }
    func explain(_ query: StoreQuery) throws -> String { try base.explain(query) }
    func value(_ entity: EntityIndex, key: ObjectKey, column: ColumnIndex) throws -> Value? {
        try base.value(entity, key: key, column: column)
    }
    func related(_ relation: Relation, to key: ObjectKey) throws -> [ObjectKey] { try base.related(relation, to: key) }
    func version(_ entity: EntityIndex, _ key: ObjectKey) throws -> Generation? { try base.version(entity, key) }
}

@Suite struct BatchSourceTests {
    private static let count = 6_400

    /// Creates a view of `count` saved tracks with unique numbers, all with changed plays in a layer, and one album with an unsaved title.
    private static func view(_ bed: TestBed) async throws -> (view: LayeredView, base: CountingSnapshot) {
        let coordinator = try await bed.container().coordinator
        let worker = coordinator.newBackgroundContext()
        let album = await worker.perform { context in
            let album = context.insert("Album")
            album["title"] = .string("old")
            for number in 0..<count {
                let track = context.makeTrack("\(number)")
                track["isrc"] = .string("\(number)")
                if number % 2 == 0 { track.setRelatedObject("album", to: album) }
            }
            return album.objectID.key
        }
        try await worker.save()
        let base = CountingSnapshot(try coordinator.snapshot().state.base)
        let layer = Layer(schema: base.schema)
        func put(_ entity: String, _ property: String, _ value: Value, _ keys: [ObjectKey]) {
            let query = Music.query(entity)
            for key in keys {
                let row = Row.make(
                    kind: .update, layer: layer.id, columnCount: base.schema.entities[query.entity].columns.count)
                row[Music.column(entity, property)] = value
                layer.put(row, entity: query.entity, key: key)
            }
        }
        put("Track", "plays", .int(7), try base.keys(Music.query("Track")))
        put("Album", "title", .string("new"), [album])
        layer.seal()
        return (LayeredView(base: base, layers: [layer]), base)
    }

    /// Catches: a batch that evaluates every changed object, or every object, to find the objects of its own pages.
    @Test(arguments: [
        StorePredicate.string(Music.column("Track", "title"), .hasPrefix, pattern: "1", sensitivity: .sensitive),
        .toOne(Music.column("Track", "album"), .compare(Music.column("Album", "title"), .equal, to: .string("new"))),
    ])
    func S136_aBatchEvaluatesItsOwnCandidatesOnly(_ predicate: StorePredicate) async throws {
        let bed = try TestBed(.memory)
        let (view, base) = try await Self.view(bed)
        let source = try BatchSource(Music.query("Track", predicate), in: view, batchSize: 64)
        var found: [ObjectKey] = []
        let before = base.pagesAsked
        while let batch = try source.next() { found += batch }
        let asked = base.pagesAsked - before
        #expect(found == (try view.keys(Music.query("Track", predicate))))
        #expect(!found.isEmpty && found.count < Self.count)
        #expect(asked < 5 * Self.count, "\(asked) for \(Self.count) objects")
    }

    /// Catches: a look-up that evaluates every changed object, so that a loop of upserts or an import takes quadratic time.
    @Test(arguments: StoreKind.allCases)
    func `S137, S139: a look-up of a unique value evaluates its own candidates only`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let (view, base) = try await Self.view(bed)
        let state = StoreState(base: base, deferred: view.layers, sequence: .zero)
        let entity = try #require(Music.model.entity(named: "Track"))
        let column = Music.column("Track", "isrc")
        let before = base.pagesAsked
        for number in 0..<20 {
            let value = Value.string("\(number)")
            let query = Music.query("Track", .compare(column, .equal, to: value))
            let found = try view.keys(query)
            #expect(found.count == 1)
            #expect(try view.count(query) == 1)
            #expect(try state.key(of: entity, [column], [value]) == found.first)
        }
        let asked = base.pagesAsked - before
        #expect(asked < 20 * 20, "\(asked) for 60 look-ups")
    }
}
