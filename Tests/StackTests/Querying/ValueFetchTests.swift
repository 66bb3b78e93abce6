import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Requests for values, groups and numbers without objects, on every store and stack, with saved and unsaved objects.
@Suite struct ValueFetchTests {
    /// Inserts two albums and five tracks in a background context, and saves half of them. The context is a child where the
    /// stack has children.
    static func fill(_ container: PersistentContainer) async throws -> BackgroundContext {
        let first = await container.newBackgroundContext()
        try await first.perform { context throws in
            let album = context.insert("Album")
            album["title"] = .string("Blue")
            for (title, plays) in [("a", 3), ("b", 5), ("c", 40)] {
                let track = context.makeTrack(title, plays: plays)
                track.setRelatedObject("album", to: album)
            }
        }
        try await first.save(through: .store)
        let context = await container.newBackgroundContext()
        try await context.perform { context throws in
            let album = context.insert("Album")
            album["title"] = .string("Red")
            context.makeTrack("d", plays: 7).setRelatedObject("album", to: album)
            _ = context.makeTrack("e", plays: 5)
            let tracks = try context.fetch(EntityFetchRequest("Track", matching: .equal("title", .string("c"))))
            tracks.first?["plays"] = .int(4)
            tracks.first?["rating"] = .double(4.5)
        }
        return context
    }

    @Test(arguments: Combination.all)
    func S133_aggregatesIncludeWhatIsNotSaved(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        try await context.perform { context throws in
            let all = EntityFetchRequest("Track")
            #expect(try context.aggregate(.sum("plays"), of: all) == .int(24))
            #expect(try context.aggregate(.min("plays"), of: all) == .int(3))
            #expect(try context.aggregate(.max("plays"), of: all) == .int(7))
            #expect(try context.aggregate(.average("plays"), of: all) == .double(4.8))
            #expect(try context.aggregate(.count, of: all) == .int(5))
            #expect(try context.aggregate(.count("album"), of: all) == .int(4))
            #expect(try context.aggregate(.max("title"), of: all) == .string("e"))
            var below = all
            below.includesPendingChanges = false
            #expect(try context.aggregate(.sum("plays"), of: below) == .int(48))
            let firstTwo = EntityFetchRequest("Track", sortBy: [AttributeSort("plays")], limit: 2)
            #expect(try context.aggregate(.sum("plays"), of: firstTwo) == .int(7))
            let none = EntityFetchRequest("Track", matching: .equal("title", .string("nobody")))
            #expect(try context.aggregate(.sum("plays"), of: none) == .int(0))
            #expect(try context.aggregate(.average("plays"), of: none) == .null)
        }
    }

    @Test(arguments: Combination.all)
    func S133_groupsHaveConditionsAndFollowToOne(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        try await context.perform { context throws in
            var request = EntityValueRequest(
                "Track", fetching: [.property("album.title"), .count, .sum("plays").named("total")],
                groupBy: ["album.title"])
            func rows() throws -> [[Value]] { try context.fetch(request).map(\.values) }
            let alone: [Value] = [.null, .int(1), .int(5)]
            let blue: [Value] = [.string("Blue"), .int(3), .int(12)]
            let red: [Value] = [.string("Red"), .int(1), .int(7)]
            #expect(try rows() == [alone, blue, red])
            request.sortBy = [AttributeSort("total", .descending)]
            #expect(try rows() == [blue, red, alone])
            request.limit = 1
            request.offset = 1
            #expect(try rows() == [red])
            request.limit = nil
            request.offset = 0
            request.having = .compare("total", .greater, to: .int(6))
            #expect(try rows() == [blue, red])
            request.having = .all([ResultColumn.count.is(.equal, 1), .not(.isNil("album.title"))])
            #expect(try rows() == [red])
        }
    }

    @Test(arguments: Combination.all)
    func S133_dictionariesAndDistinctRows(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        try await context.perform { context throws in
            var request = EntityValueRequest(
                "Track", fetching: [.objectID, .property("title"), .property("album")],
                matching: .compare("plays", .greater, to: .int(4)), sortBy: [AttributeSort("title", .descending)], limit: 2)
            let rows = try context.fetch(request)
            #expect(rows.map { $0["title"] } == [.string("e"), .string("d")])
            #expect(rows[0].objectID("album") == nil)
            let album = try #require(rows[1].objectID("album"))
            #expect(try context.existingObject(with: album)["title"] == .string("Red"))
            let track = try #require(rows[1].objectID("objectID"))
            #expect(try context.existingObject(with: track)["title"] == .string("d"))
            #expect(rows[1].dictionary.count == 3)
            request = EntityValueRequest("Track", fetching: [.property("plays")])
            #expect(try context.fetch(request).count == 5)
            request.returnsDistinctResults = true
            #expect(try context.fetch(request).map(\.values) == [[.int(3)], [.int(4)], [.int(5)], [.int(7)]])
            request.includesPendingChanges = false
            #expect(try context.fetch(request).map(\.values) == [[.int(3)], [.int(5)], [.int(40)]])
        }
    }

    /// Catches: an error about groups, whose remedy cannot work for an id.
    @Test(arguments: Combination.all)
    func `S133: distinct rows with the object's id are the rows of all objects`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let context = try await Self.fill(container)
        try await context.perform { context throws in
            var request = EntityValueRequest(
                "Track", fetching: [.objectID, .property("plays")], sortBy: [AttributeSort("title", .descending)])
            let rows = try context.fetch(request).map(\.values)
            request.returnsDistinctResults = true
            #expect(try context.fetch(request).map(\.values) == rows)
            #expect(rows.map { $0[1] } == [.int(5), .int(7), .int(4), .int(5), .int(3)])
            request.propertiesToFetch = [.objectID, .count]
            #expect(throws: FetchError.notGrouped(entity: "Track", property: "objectID")) { try context.fetch(request) }
        }
    }

    @Test func S133_whatCannotBeComputedIsSaidBeforeAnythingIsRead() async throws {
        let container = try await TestBed(.memory).container()
        try await container.newBackgroundContext().perform { context throws in
            func fetch(_ request: EntityValueRequest) throws { _ = try context.fetch(request) }
            #expect(throws: FetchError.unsupportedAggregate(function: "a sum", entity: "Track", property: "title")) {
                try fetch(EntityValueRequest("Track", fetching: [.sum("title")]))
            }
            for column in [ResultColumn(.sum("album.title")), ResultColumn(.maximum("album.title"))] {
                let error = #expect(throws: FetchError.self) { try fetch(EntityValueRequest("Track", fetching: [column])) }
                #expect(error?.message.contains("Track.album.title: it is an attribute of a related object") == true)
            }
            #expect(throws: FetchError.notGrouped(entity: "Track", property: "title")) {
                try fetch(EntityValueRequest("Track", fetching: [.property("title"), .count]))
            }
            #expect(throws: FetchError.unknownProperty(entity: "Track", property: "genre")) {
                try fetch(EntityValueRequest("Track", fetching: [.property("genre")]))
            }
            #expect(throws: FetchError.unknownProperty(entity: "Track", property: "total")) {
                try fetch(EntityValueRequest("Track", fetching: [.count], having: .compare("total", .less, to: .int(1))))
            }
            #expect(throws: FetchError.havingWithoutGroups(entity: "Track")) {
                try fetch(EntityValueRequest("Track", fetching: [.property("title")], having: .isNil("title")))
            }
            // A number, too, has several values in a group.
            #expect(throws: FetchError.notGrouped(entity: "Track", property: "plays")) {
                try context.aggregate(.property("plays"), of: EntityFetchRequest("Track"))
            }
            let a = context.makeTrack("a", plays: .max)
            _ = context.makeTrack("b", plays: 1)
            #expect(throws: FetchError.sumTooLarge(entity: "Track", property: "plays")) {
                try context.aggregate(.sum("plays"), of: EntityFetchRequest("Track"))
            }
            a["plays"] = .int(.max - 1)
            #expect(try context.aggregate(.sum("plays"), of: EntityFetchRequest("Track")) == .int(.max))
        }
    }
}
