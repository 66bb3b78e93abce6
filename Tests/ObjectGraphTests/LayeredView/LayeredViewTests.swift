import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

struct LayeredViewTests {
    /// Catches: layers that are read in the wrong order, a deleted object that is visible, or a change that hides another
    /// column's value.
    @Test func valuesAndVersionsAreThoseOfAPlainModel() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            let view = views.view
            for entity in RandomViews.schema.entityIndices {
                let all = views.model.objects[entity]
                for key in 0...(all.keys.max() ?? 0).advanced(by: 2) {
                    #expect(try view.version(entity, key) == all[key].map { .committed($0.version) })
                    for column in RandomViews.schema.entities[entity].columnIndices {
                        try expectSame(view.value(entity, key: key, column: column), all[key]?.values[column])
                    }
                }
            }
        }
    }

    /// Catches: a stale referrer, a new referrer that is missing, or a partner that a layer has deleted.
    @Test func relatedObjectsAreThoseOfAPlainModel() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            let view = views.view
            for key in views.model.objects[RandomViews.artist].keys {
                for relation in [RandomViews.tracksOfArtist, RandomViews.tracksOfLabel] {
                    #expect(try view.related(relation, to: key) == views.model.related(relation, to: key))
                }
            }
            for key in views.model.objects[RandomViews.track].keys {
                #expect(
                    try view.related(RandomViews.labelsOfTrack, to: key)
                        == views.model.related(RandomViews.labelsOfTrack, to: key))
            }
        }
    }

    /// Catches: limit or offset applied before pending changes, an object twice in the result, or ties in another order.
    @Test func S130_queriesSeePendingChangesBeforeSortLimitAndOffset() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            for _ in 0..<20 {
                let query = views.randomQuery()
                #expect(try views.view.keys(query) == views.model.keys(query), "\(query)")
            }
        }
    }

    /// Catches: a count that ignores offset and limit, or that also counts a changed object in the base.
    @Test func S131_countIsTheSizeOfWhatTheSameQueryFetches() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            for _ in 0..<20 {
                let query = views.randomQuery()
                #expect(try views.view.count(query) == views.model.keys(query).count, "\(query)")
            }
        }
    }

    /// Catches: an index of a layer that misses a changed object, a stored object that is found by a value which a layer has replaced, or
    /// numbers of two types that no longer compare equal.
    @Test func `S130, S139: equality on unique columns selects what a plain model selects, after every change`() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            try views.addOpenLayer(changes: 20) { (views: inout RandomViews) throws in
                let query = views.randomLookup()
                let expected = try views.model.keys(query)
                #expect(try views.view.keys(query) == expected, "\(query)")
                #expect(try views.view.count(query) == expected.count, "\(query)")
            }
        }
    }

    /// Catches: an object that is counted both in the base and in a layer, a group with deleted objects, or an outdated minimum
    /// or maximum.
    @Test func S133_aggregatesSeePendingChanges() throws {
        try eachRandomView { (views: inout RandomViews) throws in
            for _ in 0..<20 {
                let query = views.randomQuery()
                let columns = RandomViews.schema.entities[query.entity].columnIndices
                let groupBy = Array(columns.shuffled(using: &views.numbers).prefix(Int.random(in: 0...2, using: &views.numbers)))
                let aggregation = StoreAggregation(
                    entity: query.entity, predicate: query.predicate, groupBy: groupBy,
                    aggregates: [.count, .sum(1), .minimum(0), .maximum(0), .average(1)])
                var all = query
                all.offset = 0
                all.limit = nil
                let keys = try views.model.keys(all)
                let found = try views.view.groups(aggregation)
                let expected = try LayeredView(base: PlainSnapshot(views.model, generation: 9)).groups(aggregation, of: keys)
                #expect(Set(found.keys) == Set(expected.keys), "\(aggregation)")
                for (key, states) in zip(found.keys, found.states) {
                    #expect(try states == expected.states[#require(expected.keys.firstIndex(of: key))], "\(aggregation)")
                }
            }
        }
    }

    @Test func S132_anOffsetPastTheEndGivesNothing() throws {
        var views = RandomViews(seed: 1)
        _ = views.addLayer(changes: 30)
        let query = StoreQuery(entity: 1, sort: [.init(column: 0)], offset: 1_000_000, limit: 5)
        #expect(try views.view.keys(query).isEmpty)
        #expect(try views.view.count(query) == 0)
    }

    private func eachRandomView(
        _ test: String = #function, _ body: (inout RandomViews) throws -> Void
    ) throws {
        let seed = SeededGenerator(test: test).seed
        for round in 0..<Rounds.of(30, long: 600) {
            var views = RandomViews(seed: seed &+ UInt64(round))
            for _ in 0..<round % 4 { _ = views.addLayer(changes: 5 * (round % 7)) }
            try body(&views)
        }
    }

    /// NaN does not equal itself, so values are compared by their order.
    private func expectSame(_ a: Value?, _ b: Value?) throws {
        if a == nil || b == nil {
            #expect(a == b)
        } else {
            #expect(try #require(a).order(#require(b)) == 0)
        }
    }
}
