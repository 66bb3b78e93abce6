import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes by several contexts, children and batches. Afterwards each derived value equals the one computed from its objects.
@Suite struct DerivedRandomTests {
    private static func pick(_ entity: String, _ context: ManagedObjectContext, _ random: inout SeededGenerator) throws
        -> ManagedObject?
    {
        let found = try context.fetch(EntityFetchRequest(entity))
        return found.isEmpty ? nil : found[random.below(found.count)]
    }

    private static func change(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        let name = "é\(random.below(20))"
        switch random.below(13) {
        case 0:
            let artist = context.makeArtist(named: name)
            artist.setRelatedObject("mentor", to: try pick("Artist", context, &random))
        case 1:
            let album = context.makeRecord(name)
            album.setRelatedObject("artist", to: try pick("Artist", context, &random))
        case 2, 3, 4:
            context.makeSong(
                name, length: random.chance(80) ? Int64(random.below(9)) : nil, rating: Double(random.below(5)),
                on: try pick("Album", context, &random))
        case 5: try pick("Artist", context, &random)?["name"] = .string(name)
        case 6: try pick("Artist", context, &random)?.setRelatedObject("mentor", to: try pick("Artist", context, &random))
        case 7: try pick("Album", context, &random)?.setRelatedObject("artist", to: try pick("Artist", context, &random))
        case 8: try pick("Track", context, &random)?.setRelatedObject("album", to: try pick("Album", context, &random))
        case 9:
            let track = try pick("Track", context, &random)
            track?["length"] = random.chance(80) ? .int(Int64(random.below(9))) : .null
            if random.chance(50) { track?["title"] = .string(name) }
        case 10:
            let tag = try random.chance(40) ? context.insert("Tag") : pick("Tag", context, &random)
            tag?["weight"] = .int(Int64(random.below(100)))
            if let album = try pick("Album", context, &random), let tag {
                if random.chance(70) { album.add(tag, to: "tags") } else { album.remove(tag, from: "tags") }
            }
        case 11: try pick("Album", context, &random)?["title"] = .string(name)
        default:
            let entity = ["Artist", "Album", "Track", "Tag"][random.below(4)]
            if let object = try pick(entity, context, &random) { context.delete(object) }
        }
    }

    private static func batch(_ coordinator: PersistentStoreCoordinator, _ random: inout SeededGenerator) async throws {
        let album = random.next()
        let key = try await coordinator.newBackgroundContext().perform { context in
            let albums = try context.fetchIDs(EntityFetchRequest("Album"))
            return albums.isEmpty ? nil : albums[Int(album % UInt64(albums.count))].key
        }
        let reference = key.map(Value.reference) ?? .null
        let options = BatchOptions()
        switch random.below(4) {
        case 0:
            try await coordinator.insert(
                into: "Track", ["title", "length", "rating", "album"], rows: [["b", 3, 1.0, reference], ["c", 4, 2.0, .null]],
                options: options)
        case 1:
            try await coordinator.batchUpdate(
                EntityFetchRequest("Track", matching: .compare("length", .less, to: .int(Int64(random.below(4))))),
                set: ["album": reference], options: options)
        case 2:
            try await coordinator.batchDelete(
                EntityFetchRequest("Track", matching: .equal("length", .int(Int64(random.below(9))))), options: options)
        default:
            try await coordinator.batchUpdate(
                EntityFetchRequest("Artist", matching: .compare("name", .less, to: .string("é15"))), set: ["name": "batch"],
                options: options)
        }
    }

    /// Catches: any order of saves, merges, policies, deletions and batches after which a derived value is wrong.
    @Test(arguments: Combination.all)
    func `S200: after random changes each derived value is that of its objects`(_ combination: Combination) async throws {
        var random = SeededGenerator(test: #function)
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: RecordLibrary.model)
        let policies: [MergePolicy] = [.objectTrump, .storeTrump, .overwrite, .rollback, .error]
        var contexts = [container.coordinator.newBackgroundContext(), await container.newBackgroundContext()]
        contexts.append(await contexts[0].newBackgroundChild())
        for round in 0..<Rounds.of(30, long: 600) {
            if random.chance(10) {
                // A batch may meet the delete rules of a newer state.
                try await Self.batch(container.coordinator, &random)
                continue
            }
            let context = contexts[random.below(contexts.count)]
            let start = random
            let policy = policies[random.below(policies.count)]
            random = try await context.perform { context in
                var random = start
                context.mergePolicy = policy
                for _ in 0...random.below(4) { try Self.change(context, &random) }
                return random
            }
            do {
                let durability: Durability = random.chance(40) ? .deferred(within: .seconds(600)) : .durable
                if random.chance(60) {
                    try await context.save(through: .store, durability)
                } else {
                    try await context.save(durability)
                }
            } catch is SaveError {
                await context.perform { $0.rollback() }
            }
            if random.chance(30) { await context.perform { $0.refreshAllObjects() } }
            if round % 20 == 19 {
                let differences = try await RecordLibrary.differences(in: container)
                #expect(differences == [], "round \(round), seed \(random.seed)")
                if !differences.isEmpty { break }
            }
        }
        #expect(try await RecordLibrary.differences(in: container) == [], "seed \(random.seed)")
        try await container.close()
    }
}
