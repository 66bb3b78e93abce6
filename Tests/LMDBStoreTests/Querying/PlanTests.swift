import StoreInterface
import StoreModel
import Testing

@testable import LMDBStore

/// The plans of queries in a store that is large enough for a choice.
@Suite struct PlanTests {
    private static let (kind, size, name, owner, weight): (ColumnIndex, ColumnIndex, ColumnIndex, ColumnIndex, ColumnIndex) = (
        0, 1, 2, 3, 4
    )
    private static let schema = StoreSchema(entities: [
        EntitySchema(
            name: "Box",
            columns: [
                ColumnSchema(name: "kind", type: .int64, index: .indexed),
                ColumnSchema(name: "size", type: .int64, index: .indexed), ColumnSchema(name: "name", type: .string),
                ColumnSchema(name: "owner", type: .reference, isOptional: true, destination: 1),
                ColumnSchema(name: "weight", type: .double, index: .indexed),
            ], indexes: [IndexSchema(columns: [0, 2])]),
        EntitySchema(name: "Owner", columns: [ColumnSchema(name: "name", type: .string, index: .unique)]),
    ])

    /// Creates 6400 boxes on 100 pages: 20 kinds in turn, each size once, weights mostly small.
    private static func boxes() throws -> (scratch: Scratch, store: LMDBStore, snapshot: any StoreSnapshot) {
        let scratch = try Scratch()
        let store = try LMDBStore.open(scratch.url, schema: schema)
        try store.save { layer, _ in
            for owner in 64..<164 as Range<UInt64> {
                layer.put(Samples.row([.string("owner \(owner)")], in: layer), entity: 1, key: ObjectKey(rawValue: owner))
            }
            for key in 64..<6464 as Range<UInt64> {
                let weight = key % 1000 == 0 ? 1e9 + Double(key) : Double(key % 7)
                let values: [Value] = [
                    .int(Int64(key % 20)), .int(Int64(key &* 7919 % 6400)), .string("box \(key % 13)"),
                    .reference(ObjectKey(rawValue: 64 + key / 64 % 100)), .double(weight),
                ]
                layer.put(Samples.row(values, in: layer), entity: 0, key: ObjectKey(rawValue: key))
            }
        }
        return (scratch, store, try store.snapshot())
    }

    private static func query(
        _ predicate: StorePredicate, _ sort: [StoreSort] = [], limit: Int? = nil
    ) -> StoreQuery { StoreQuery(entity: 0, predicate: predicate, sort: sort, limit: limit) }

    /// Returns the keys that match, sorted, from every object of the entity.
    private static func sortedMatches(_ query: StoreQuery, in snapshot: any StoreSnapshot) throws -> [ObjectKey] {
        let all = try snapshot.keys(StoreQuery(entity: query.entity))
        let matching = try all.filter { try query.predicate.matches(query.entity, key: $0, in: snapshot) }
        return try matching.map { key in
            (key, try query.sort.map { try snapshot.value(query.entity, key: key, column: $0.column) ?? .null })
        }
        .sorted { a, b in
            for (number, sort) in query.sort.enumerated() {
                let order = sort.order(a.1[number], b.1[number])
                if order != 0 { return order < 0 }
            }
            return a.0 < b.0
        }.map(\.0)
    }

    @Test func S135_explainSaysWhatIsDone() throws {
        let (scratch, store, snapshot) = try Self.boxes()
        defer { withExtendedLifetime((scratch, store)) {} }
        let sizes = StorePredicate.and([
            .compare(Self.size, .greaterOrEqual, to: .int(100)), .compare(Self.size, .less, to: .int(300)),
        ])
        let kind = StorePredicate.compare(Self.kind, .equal, to: .int(3))
        let even = StorePredicate.compareColumns(Self.kind, .less, to: Self.size)
        let bySize = [StoreSort(column: Self.size)]
        let cases: [(StoreQuery, String)] = [
            (Self.query(sizes), "index on size, range"),
            (Self.query(.compare(Self.size, .greater, to: .int(300))), "scan of 100 pages"),
            (Self.query(.compare(Self.weight, .greater, to: .double(1000))), "index on weight, range"),
            (Self.query(.and([kind, sizes])), "index on size, range; and index on kind, equality"),
            (Self.query(.and([kind, .compare(Self.name, .equal, to: .string("box 3"))])), "index on kind + name, equality"),
            (
                Self.query(.and([kind, .string(Self.name, .hasPrefix, pattern: "box 1", sensitivity: .sensitive)])),
                "index on kind + name, prefix"
            ),
            (
                Self.query(.or([sizes, .compare(Self.size, .equal, to: .int(5000))])),
                "index on size, range; or index on size, equality"
            ),
            (
                Self.query(.toOne(Self.owner, .compare(0, .equal, to: .string("owner 70")))),
                "index on owner, by Owner found first"
            ),
            (Self.query(.constant(true), bySize, limit: 10), "index on size, in its order"),
            (Self.query(sizes, bySize), "index on size, range, in its order"),
            (
                Self.query(kind, [StoreSort(column: Self.name, direction: .descending)], limit: 5),
                "index on kind + name, equality, in its order"
            ),
            (
                Self.query(even, bySize, limit: 5),
                "index on size, in its order; the objects are checked on the way, a scan if few of them match"
            ),
            (
                Self.query(.constant(true), [StoreSort(column: Self.name)], limit: 5),
                "scan of 100 pages; the first 5 kept while reading"
            ),
            (Self.query(kind, [StoreSort(column: Self.owner)]), "index on kind, equality; sorted in memory"),
            (
                StoreQuery(entity: 1, predicate: .toMany(.referrers(entity: 0, column: Self.owner), .any, where: sizes)),
                "those related to Box found first"
            ),
        ]
        for (query, words) in cases {
            let found = try snapshot.explain(query)
            #expect(found == words || found == words.replacing("kind, equality;", with: "kind + name, equality;"), "\(query)")
            let sorted = try Self.sortedMatches(query, in: snapshot)
            #expect(try snapshot.keys(query) == Array(sorted.prefix(query.limit ?? .max)), "\(words)")
        }
    }

    /// The estimate assumes an even spread where there is none. Reading detects the error.
    @Test func S135_anEstimateThatIsWrongCostsNoResult() throws {
        let (scratch, store, snapshot) = try Self.boxes()
        defer { withExtendedLifetime((scratch, store)) {} }
        let query = Self.query(.compare(Self.weight, .less, to: .double(100)))
        #expect(try snapshot.explain(query) == "scan of 100 pages")
        #expect(try snapshot.count(query) == 6394)
        #expect(try snapshot.keys(query).count == 6394)
    }
}
