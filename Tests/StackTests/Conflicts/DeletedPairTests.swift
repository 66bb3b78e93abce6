import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Pairs of many-to-many relationships whose objects are deleted and written again, before and after a flush (S106).
@Suite struct DeletedPairTests {
    /// A many-to-many relationship by its two ends. The deletion of a track removes its pairs.
    struct Shape: Sendable, CustomStringConvertible {
        var description: String
        var model: Model

        static let all = [
            Shape(description: "nullify", model: model(inverse: "tracks", .nullify)),
            Shape(description: "no action", model: model(inverse: "tracks", .noAction)),
            Shape(description: "no inverse", model: model(inverse: nil, .nullify)),
        ]

        private static func model(inverse: String?, _ rule: DeleteRule) -> Model {
            let playlists = PropertyDescription.relationship(
                .init(
                    name: "playlists", destination: "Playlist", inverse: inverse, cardinality: .toMany, deleteRule: rule,
                    inference: .refused))
            do {
                return try Model([
                    EntityDescription(
                        name: "Track",
                        properties: [
                            .attribute(.init(name: "title", type: .string)), .attribute(.init(name: "plays", type: .int64)),
                        ] + (inverse == nil ? [] : [playlists])),
                    EntityDescription(
                        name: "Playlist",
                        properties: [
                            .attribute(.init(name: "name", type: .string)),
                            .relationship(
                                .init(
                                    name: "tracks", destination: "Track", inverse: inverse == nil ? nil : "playlists",
                                    cardinality: .toMany, deleteRule: rule, inference: .refused)),
                        ]),
                ])
            } catch { preconditionFailure("the model is wrong: \(error)") }
        }
    }

    /// When the pair is saved, and whether the deferred saves are folded before they are written.
    enum Course: String, CaseIterable {
        case durable, deferred, folded

        var durability: Durability { self == .durable ? .durable : .deferred(within: .seconds(600)) }
    }

    /// Returns the plays of the only track, and the tracks of the only playlist, in a new context.
    private static func shown(_ container: PersistentContainer) async throws -> [Value] {
        try await container.coordinator.newBackgroundContext().perform { context in
            let lists = try context.fetch(EntityFetchRequest("Playlist"))
            return try context.fetch(EntityFetchRequest("Track", matching: .equal("title", "t"))).map { $0["plays"] }
                + lists.flatMap { $0.relatedObjects("tracks").map { $0["title"] } }
        }
    }

    /// Catches: a deletion that removes only the pairs that its context has read. The others come back with the object, until a flush.
    @Test(arguments: StoreKind.allCases, Course.allCases)
    func `S106: an object that is written again after its deletion has no pairs`(_ kind: StoreKind, _ course: Course) async throws
    {
        for shape in Shape.all {
            for isBatch in [false, true] {
                let bed = try TestBed(kind)
                let container = try await bed.container(model: shape.model)
                let contexts = (0..<4).map { container.coordinator.newBackgroundContext(name: "\($0)") }
                let (track, playlist) = try await contexts[0].perform(andSave: .durable) { context in
                    let track = context.insert("Track")
                    track["title"] = "t"
                    return (track.objectID, context.insert("Playlist").objectID)
                }
                for context in contexts { await context.perform { $0.refreshAllObjects() } }
                let plays = try await contexts[2].perform { try $0.existingObject(with: track)["plays"] }
                #expect(plays == 0)
                let before = try await contexts[0].perform { try $0.existingObject(with: track)["plays"] }
                #expect(before == 0)
                try await contexts[1].perform(andSave: course.durability) { context in
                    try context.existingObject(with: playlist).add(try context.existingObject(with: track), to: "tracks")
                }
                if isBatch {
                    var options = BatchOptions()
                    options.durability = course.durability
                    _ = try await container.coordinator.batchDelete(EntityFetchRequest("Track"), options: options)
                } else {
                    try await contexts[0].perform(andSave: course.durability) {
                        $0.delete(try $0.existingObject(with: track))
                    }
                }
                try await contexts[2].perform(andSave: course.durability) { context in
                    context.mergePolicy = .objectTrump
                    try context.existingObject(with: track)["plays"] = 7
                }
                for number in 0..<(course == .folded ? 6 : 0) {
                    try await contexts[3].perform(andSave: course.durability) {
                        $0.insert("Track")["title"] = .string("\(number)")
                    }
                }
                let comment: Comment = "\(shape), batch: \(isBatch)"
                #expect(try await Self.shown(container) == [7], comment)
                try await container.flush()
                #expect(try await Self.shown(container) == [7], comment)
                #expect(try container.coordinator.store.verify() == [], comment)
                try await container.close()
            }
        }
    }

    /// Catches: a change set of a batch deletion that does not have the pairs that it removed, so that nothing can restore them.
    @Test(arguments: StoreKind.allCases, [Durability.durable, .deferred(within: .seconds(600))])
    func `S162: undoing an author's batch deletion restores pairs at both ends`(
        _ kind: StoreKind, _ durability: Durability
    ) async throws {
        for entity in ["Track", "Playlist"] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let context = container.coordinator.newBackgroundContext()
            let (track, playlists) = try await context.perform(andSave: durability) { context in
                let track = context.makeTrack("t")
                let playlists = ["a", "b"].map { name in
                    let playlist = context.insert("Playlist")
                    playlist["name"] = .string(name)
                    playlist.add(track, to: "tracks")
                    return playlist.objectID
                }
                return (track.objectID, playlists)
            }
            let before = try container.coordinator.snapshot(owner: "before the batch")
            var options = BatchOptions()
            options.author = "batch"
            options.durability = durability
            let result = try await container.coordinator.batchDelete(EntityFetchRequest(entity), options: options)
            #expect(
                result.changes.flatMap(\.links).map { ($0.sources + $0.destinations).sorted() }
                    == [(playlists.map(\.key) + [track.key]).sorted()])
            #expect(try await container.undoChanges(by: "batch", since: before) == [])
            let related = try await container.coordinator.newBackgroundContext().perform { context in
                try context.existingObject(with: track).relatedObjects("playlists").map(\.objectID)
            }
            #expect(related.sorted { $0.key < $1.key } == playlists.sorted { $0.key < $1.key }, "\(entity)")
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }
}
