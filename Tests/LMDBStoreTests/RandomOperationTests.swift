import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import LMDBStore

/// The expected content of the store after each save, in dictionaries.
private struct Reference {
    var objects: [[ObjectKey: [Value]]] = [[:], [:]]
    var versions: [[ObjectKey: Generation]] = [[:], [:]]
    var links: Set<Pair> = []

    struct Pair: Hashable {
        var source: ObjectKey
        var destination: ObjectKey
    }

    mutating func delete(_ entity: EntityIndex, _ key: ObjectKey) {
        objects[entity][key] = nil
        versions[entity][key] = nil
        if entity == Samples.track { links = links.filter { $0.source != key && $0.destination != key } }
    }
}

/// Catches: pages, indexes, links or history that do not match the saves.
@Suite struct RandomOperationTests {
    @Test(arguments: [0, 15]) func randomSavesReadBackAsADictionaryHoldsThem(percentWithCompaction: Int) async throws {
        let scratch = try Scratch()
        var random = SeededGenerator()
        var reference = Reference()
        var store = try scratch.store()
        var packed = 0
        for round in 0..<40 {
            try step(store, &reference, &random)
            if random.chance(percentWithCompaction) {
                packed += try await store.compact(CompactionOptions(age: random.chance(50) ? .any : .saves(5), effort: .fast))
                    .pagesPacked
            }
            if round % 20 == 19 {
                try check(store, reference)
                // The writer clears references to deleted objects and refuses a second unique value. These saves bypass it.
                #expect(try store.verify().filter { !Self.isExpected($0) } == [])
            }
            if round == 25 { store = try scratch.store() }
        }
        if percentWithCompaction > 0 {
            // The last compaction may find that earlier ones have packed every page.
            packed += try await store.compact(CompactionOptions(age: .any)).pagesPacked
            #expect(packed > 0)
            try check(store, reference)
        }
        try checkQueries(store, reference, &random)
        #expect(try store.changes(after: 0)?.count == 40)
        #expect(try store.changes(after: 38)?.map(\.generation) == [39, 40])
    }

    private static func isExpected(_ finding: VerificationFinding) -> Bool {
        ["which does not exist.", "but it is unique."].contains { finding.description.hasSuffix($0) }
    }

    private func step(_ store: LMDBStore, _ reference: inout Reference, _ random: inout SeededGenerator) throws {
        var next = reference
        try store.save { layer, transaction in
            let generation = transaction.generation.next
            for entity in [Samples.artist, Samples.track] where random.chance(70) {
                let lease = try transaction.allocateKeys(entity, pages: 1)
                for key in lease.prefix(Int.random(in: 1...64, using: &random)) {
                    let values = value(entity, next, &random)
                    layer.put(Samples.row(values, in: layer), entity: entity, key: key)
                    next.objects[entity][key] = values
                    next.versions[entity][key] = generation
                }
            }
            for entity in [Samples.artist, Samples.track] {
                for key in next.objects[entity].keys.sorted() where random.chance(8) {
                    if layer.row(entity, key) != nil { continue }
                    let isDeletion = random.chance(30)
                    let row = Row.make(
                        kind: isDeletion ? .delete : .update, layer: layer.id,
                        columnCount: store.schema.entities[entity].columns.count)
                    if isDeletion {
                        next.delete(entity, key)
                    } else {
                        let values = value(entity, next, &random)
                        for column in values.indices(as: ColumnIndex.self) where random.chance(40) {
                            row[column] = values[column]
                            next.objects[entity][key]![column] = values[column]
                        }
                        next.versions[entity][key] = generation
                    }
                    layer.put(row, entity: entity, key: key)
                }
            }
            link(layer, &next, &random)
        }
        reference = next
    }

    private func link(_ layer: Layer, _ next: inout Reference, _ random: inout SeededGenerator) {
        let tracks = next.objects[Samples.track].keys.sorted()
        guard !tracks.isEmpty else { return }
        for _ in 0..<Int.random(in: 0...20, using: &random) {
            let pair = Reference.Pair(
                source: tracks.randomElement(using: &random)!, destination: tracks.randomElement(using: &random)!)
            layer.setLink(0, from: pair.source, to: pair.destination, linked: true)
            next.links.insert(pair)
        }
        for pair in next.links where random.chance(5) {
            layer.setLink(0, from: pair.source, to: pair.destination, linked: false)
            next.links.remove(pair)
        }
    }

    private func value(_ entity: EntityIndex, _ reference: Reference, _ random: inout SeededGenerator) -> [Value] {
        let number = Int.random(in: 0..<200, using: &random)
        if entity == Samples.artist {
            // Names longer than an index key, so that keys are cut and collide.
            let name = random.chance(10) ? String(repeating: "x", count: 600) + "\(number % 4)" : "name \(number)"
            return [.string(name), number % 5 == 0 ? .null : .int(Int64(number) - 100)]
        }
        let artists = reference.objects[Samples.artist].keys.sorted()
        return Samples.trackValues(number, artist: random.chance(70) ? artists.randomElement(using: &random) : nil)
    }

    private func check(_ store: LMDBStore, _ reference: Reference) throws {
        let snapshot = try store.snapshot()
        for (entity, objects) in reference.objects.enumerated(as: EntityIndex.self) {
            #expect(try snapshot.keys(StoreQuery(entity: entity)) == objects.keys.sorted())
            for (key, values) in objects {
                for (column, value) in values.enumerated(as: ColumnIndex.self) {
                    #expect(try snapshot.value(entity, key: key, column: column) == value)
                }
                #expect(try snapshot.version(entity, key) == reference.versions[entity][key])
            }
        }
        let forward = Dictionary(grouping: reference.links, by: \.source)
        let backward = Dictionary(grouping: reference.links, by: \.destination)
        for key in reference.objects[Samples.track].keys {
            let ahead = try snapshot.related(.link(0, .forward, destination: Samples.track), to: key)
            #expect(ahead == (forward[key] ?? []).map(\.destination).sorted())
            let behind = try snapshot.related(.link(0, .backward, destination: Samples.track), to: key)
            #expect(behind == (backward[key] ?? []).map(\.source).sorted())
        }
    }

    private func checkQueries(_ store: LMDBStore, _ reference: Reference, _ random: inout SeededGenerator) throws {
        let snapshot = try store.snapshot()
        for _ in 0..<200 {
            let query = randomQuery(reference, &random)
            var expected = try reference.objects[query.entity].keys.sorted().filter {
                try query.predicate.matches(query.entity, key: $0, in: snapshot)
            }
            if let sort = query.sort.first {
                let objects = reference.objects[query.entity]
                let order = expected.sorted { a, b in
                    let result = sort.order(objects[a]![sort.column], objects[b]![sort.column])
                    return result != 0 ? result < 0 : a < b
                }
                expected = order
            }
            expected = Array(expected.dropFirst(query.offset))
            if let limit = query.limit { expected = Array(expected.prefix(limit)) }
            let found = try snapshot.keys(query)
            #expect(found == expected, "\(query)")
            #expect(try snapshot.count(query) == expected.count, "\(query)")
        }
    }

    private func randomQuery(_ reference: Reference, _ random: inout SeededGenerator) -> StoreQuery {
        let number = Int.random(in: 0..<200, using: &random)
        let length = Value.double(Double(number) / 4)
        let parts: [StorePredicate] = [
            .compare(0, .equal, to: .string("isrc-\(number)")), .compare(2, .less, to: .int(Int64(number % 12))),
            .compare(2, .greaterOrEqual, to: .int(Int64(number % 12))), .compare(3, .equal, to: .null),
            .compare(3, .lessOrEqual, to: length),
            .compare(3, .notEqual, to: length), .isIn(2, [.int(1), .int(Int64(number % 12))]),
            .string(0, .hasPrefix, pattern: "isrc-\(number % 20)", sensitivity: .sensitive),
            .string(1, .contains, pattern: "\(number % 9)", sensitivity: .sensitive),
            .compare(5, .equal, to: .bool(number % 2 == 0)),
            .keys(Set(reference.objects[Samples.track].keys.sorted().prefix(number))),
            .toOne(4, .compare(1, .greater, to: .int(0))), .not(.compare(2, .equal, to: .int(3))),
            .compare(
                4, .equal, to: reference.objects[0].keys.sorted().randomElement(using: &random).map { .reference($0) } ?? .null),
            .toMany(.link(0, .forward, destination: Samples.track), .any, where: .compare(5, .equal, to: .bool(true))),
        ]
        let first = parts.randomElement(using: &random)!
        let second = parts.randomElement(using: &random)!
        let predicate: StorePredicate = [first, .and([first, second]), .or([first, second])].randomElement(using: &random)!
        let sorts: [[StoreSort]] = [[], [StoreSort(column: 1)], [StoreSort(column: 3, direction: .descending)]]
        return StoreQuery(
            entity: Samples.track, predicate: predicate, sort: sorts.randomElement(using: &random)!,
            offset: random.chance(30) ? number % 10 : 0, limit: random.chance(40) ? number % 15 : nil)
    }
}
