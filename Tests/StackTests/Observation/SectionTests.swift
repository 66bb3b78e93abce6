import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Sections of live results, against a model that groups what the context fetches.
@Suite @MainActor struct SectionTests {
    private static let sections = [
        AttributeSort("plays"), AttributeSort("plays", .descending), AttributeSort("album.title"),
        AttributeSort("isrc", .descending), AttributeSort("isrc", nils: .last), AttributeSort("isrc", .descending, nils: .first),
        AttributeSort("album.title", nils: .last),
    ]

    /// Catches: a section that stays without objects, an object that changes its section without a move, and counts that differ from
    /// the list after a merge, a save, or a change of the objects that sections are named after.
    @Test(arguments: Combination.all)
    func `S141: sections are those of a sorted fetch, and differences lead to them`(_ combination: Combination) async throws {
        var random = SeededGenerator(test: #function)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.mergePolicy = .objectTrump
        for number in 0..<3 {
            let album = main.insert("Album")
            album["title"] = .string("album \(number)")
        }
        try await container.saveMain()
        let section = Self.sections[Int.random(in: 0..<Self.sections.count, using: &random)]
        let limit = random.chance(1, in: 3) ? 8 : nil
        let offset = random.chance(1, in: 3) ? 2 : 0
        let request = EntityFetchRequest(
            "Track", matching: .compare("rating", .greater, to: .double(1)), sortBy: [AttributeSort("title")], limit: limit,
            offset: offset)
        let controller = try FetchedResultsController(request, sectionedBy: section, context: main)
        controller.minimumInterval = .zero
        try controller.performFetch()
        var shown = ShownSections(controller.snapshot)
        controller.onChange = { shown.apply($0) }
        for round in 0..<25 {
            let seed = random.next()
            if random.chance(1, in: 2) {
                try Self.change(main, seed)
                main.processPendingChanges()
                if random.chance(1, in: 3) { try await main.save(through: .store) }
                if random.chance(1, in: 8) { main.rollback() }
            } else {
                let worker = container.newBackgroundContext(name: "worker \(round)")
                try await worker.perform { try Self.change($0, seed) }
                try await worker.save()
            }
            main.processPendingChanges()
            try await until("the sections follow") {
                let groups = try request.sections(by: section, in: main) { track in
                    section.attribute == "album.title"
                        ? track.relatedObject("album")?["title"] ?? .null : track[section.attribute]
                }
                let snapshot = controller.snapshot
                return snapshot.sections.map(\.value) == groups.map(\.value) && shown.sections == groups.map(\.ids)
                    && snapshot.sections.map { Array(snapshot[$0.range]) } == groups.map(\.ids)
            }
        }
        try await container.flush()
    }

    private nonisolated static func change(_ context: ManagedObjectContext, _ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let albums = try context.fetch(EntityFetchRequest("Album"))
        for number in 0..<Int.random(in: 1...6, using: &random) {
            let tracks = try context.fetch(EntityFetchRequest("Track"))
            guard tracks.count > 4, !random.chance(1, in: 3), let track = tracks.randomElement(using: &random) else {
                let track = context.makeTrack("\(seed % 100) \(number)", plays: Int.random(in: 0...3, using: &random))
                track.setRelatedObject("album", to: random.chance(1, in: 3) ? nil : albums.randomElement(using: &random))
                continue
            }
            switch Int.random(in: 0..<6, using: &random) {
            case 0: context.delete(track)
            case 1: track["plays"] = .int(Int64.random(in: 0...3, using: &random))
            case 2: track.setRelatedObject("album", to: random.chance(1, in: 4) ? nil : albums.randomElement(using: &random))
            case 3: albums.randomElement(using: &random)?["title"] = .string("album \(Int.random(in: 0...3, using: &random))")
            case 4: track["rating"] = .double(Double.random(in: 0...3, using: &random))
            default: track["isrc"] = random.chance(1, in: 3) ? .null : .string("\(Int.random(in: 0...1_000_000, using: &random))")
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S141: an object whose section changes is moved, though its position stays`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let tracks = ["a", "b", "c"].map { main.makeTrack($0, plays: $0 == "c" ? 2 : 1) }
        try await main.save()
        let controller = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("title")]), sectionedBy: AttributeSort("plays"), context: main)
        controller.minimumInterval = .zero
        try controller.performFetch()
        #expect(controller.snapshot.sections.map(\.name) == ["1", "2"])
        #expect(controller.snapshot.sections.map(\.range) == [0..<2, 2..<3])
        var updates: [ResultUpdate] = []
        controller.onChange = { updates.append($0) }
        tracks[1]["plays"] = .int(2)
        main.processPendingChanges()
        try await until("the update arrives") { updates.count == 1 }
        let difference = try #require(updates[0].sectionDifference)
        #expect(updates[0].difference.moves.isEmpty)
        #expect(
            difference.moves == [
                .init(from: SectionPosition(section: 0, item: 1), to: SectionPosition(section: 1, item: 0))
            ])
        #expect(difference.deletedSections.isEmpty && difference.insertedSections.isEmpty && difference.updates.isEmpty)
        tracks[0]["plays"] = .int(3)
        main.processPendingChanges()
        try await until("the update arrives") { updates.count == 2 }
        let next = try #require(updates[1].sectionDifference)
        #expect(next.deletedSections == [0] && next.insertedSections == [1])
        #expect(next.moves == [.init(from: SectionPosition(section: 0, item: 0), to: SectionPosition(section: 1, item: 0))])
        try await container.flush()
    }

    @Test func `S141: results show their sections, and a result without sections has none`() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container()
        let main = container.mainContext
        let (first, second) = (main.insert("Album"), main.insert("Album"))
        (first["title"], second["title"]) = (.string("\u{65}\u{301}"), .string("\u{e9}"))
        for (title, album) in [("a", second), ("b", first), ("c", nil), ("d", second)] {
            main.makeTrack(title).setRelatedObject("album", to: album)
        }
        let request = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])
        let results = try Results(request, sectionedBy: AttributeSort("album.title"), context: main)
        // Two texts that look the same are two sections, because strings are compared by code points.
        #expect(results.sections.map(\.value) == [.null, first["title"], second["title"]])
        #expect(
            results.sections.map { results[$0.range].map { $0["title"] } }
                == [["c"], ["b"], ["a", "d"]].map { $0.map(Value.string) })
        #expect(try Results(request, context: main).sections.isEmpty)
    }

    @Test func `sections by text that ignores case are refused`() async throws {
        let bed = try TestBed(.memory)
        let container = try await bed.container()
        let error = FetchError.unsupportedSections(entity: "Track", property: "title")
        #expect(throws: error) {
            try Results(
                EntityFetchRequest("Track"), sectionedBy: AttributeSort("title", comparing: .caseInsensitive),
                context: container.mainContext)
        }
    }
}
