import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Merge policies that drop one end of a one-to-one relationship decide about the other end too (S052, S105).
@Suite struct PairPolicyTests {
    /// Two ways to drop the context's changes to an object in conflict.
    enum Dropping: CaseIterable {
        case rollback, custom

        var policy: MergePolicy {
            switch self {
            case .rollback: .rollback
            case .custom: .custom { conflicts in conflicts.reduce(into: [:]) { $0[$1.objectID] = .rollback } }
            }
        }
    }

    /// Two roots of one store, and objects that both have read.
    private struct Roots {
        let container: PersistentContainer
        let ours: BackgroundContext
        let theirs: BackgroundContext
        /// The artists "a" and "b", and the profiles "of a" and "free".
        let a: ObjectID, b: ObjectID, own: ObjectID, free: ObjectID

        init(_ bed: TestBed) async throws {
            container = try await bed.container()
            ours = container.coordinator.newBackgroundContext(name: "ours")
            theirs = container.coordinator.newBackgroundContext(name: "theirs")
            let ids = try await ours.perform(andSave: .durable) { context in
                let (a, b) = (context.makeArtist("a"), context.makeArtist("b"))
                let profiles = ["of a", "free"].map { text in
                    let profile = context.insert("Profile")
                    profile["text"] = .string(text)
                    return profile
                }
                a.setRelatedObject("profile", to: profiles[0])
                return [a, b, profiles[0], profiles[1]].map(\.objectID)
            }
            (a, b, own, free) = (ids[0], ids[1], ids[2], ids[3])
            await theirs.perform { $0.refreshAllObjects() }
        }

        /// Saves a change of theirs.
        func save(_ change: @escaping @Sendable (ManagedObjectContext) throws -> Void) async throws {
            try await theirs.perform(andSave: .durable) { try change($0) }
        }

        /// Saves our change under a policy.
        func save(
            _ policy: MergePolicy, _ change: @escaping @Sendable (ManagedObjectContext) throws -> Void
        ) async throws {
            try await ours.perform { context in
                context.mergePolicy = policy
                try change(context)
            }
            try await ours.save()
            try await IntegrityTests.check(container, "\(policy)")
        }

        /// Returns the committed partner of an artist.
        func profile(of artist: ObjectID) async throws -> ObjectID? {
            try await container.coordinator.newBackgroundContext().perform {
                try $0.existingObject(with: artist).relatedObject("profile")?.objectID
            }
        }
    }

    @Test(arguments: StoreKind.allCases, Dropping.allCases)
    func `S052, S105: an artist in conflict keeps the profile of the store if its changes are dropped`(
        _ kind: StoreKind, _ dropping: Dropping
    ) async throws {
        for isNew in [false, true] {
            let bed = try TestBed(kind)
            let roots = try await Roots(bed)
            let (a, free) = (roots.a, roots.free)
            try await roots.save { try $0.existingObject(with: a)["born"] = .int(1970) }
            try await roots.save(dropping.policy) { context in
                let profile = isNew ? context.insert("Profile") : try context.existingObject(with: free)
                profile["text"] = .string("ours")
                try context.existingObject(with: a).setRelatedObject("profile", to: profile)
            }
            #expect(try await roots.profile(of: a) == roots.own)
            let texts = try await roots.theirs.perform { context in
                context.refreshAllObjects()
                return try context.objects("Profile").map { $0["text"] }
            }
            #expect(texts.contains(.string("ours")), "the rest of the save is written")
        }
    }

    @Test(arguments: StoreKind.allCases, Dropping.allCases)
    func `S052, S105: a profile in conflict keeps the artist of the store if its changes are dropped`(
        _ kind: StoreKind, _ dropping: Dropping
    ) async throws {
        let bed = try TestBed(kind)
        let roots = try await Roots(bed)
        let (a, b, own) = (roots.a, roots.b, roots.own)
        try await roots.save { try $0.existingObject(with: own)["text"] = .string("theirs") }
        try await roots.save(dropping.policy) { context in
            let new = try context.existingObject(with: b)
            new["born"] = .int(1980)
            new.setRelatedObject("profile", to: try context.existingObject(with: own))
        }
        #expect(try await roots.profile(of: a) == own)
        #expect(try await roots.profile(of: b) == nil)
        #expect(try await roots.ours.perform { try $0.existingObject(with: b)["born"] } == .int(1980))
    }

    @Test(arguments: StoreKind.allCases, [MergePolicy.storeTrump] + Dropping.allCases.map(\.policy))
    func `S052, S106: an artist whose deletion is dropped keeps the profile that the save gave away before`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        let bed = try TestBed(kind)
        let roots = try await Roots(bed)
        let (a, b, own) = (roots.a, roots.b, roots.own)
        try await roots.save { try $0.existingObject(with: a)["born"] = .int(1970) }
        try await roots.save(policy) { context in
            let deleted = try context.existingObject(with: a)
            try context.existingObject(with: b).setRelatedObject("profile", to: try context.existingObject(with: own))
            context.delete(deleted)
        }
        #expect(try await roots.profile(of: a) == own)
        #expect(try await roots.profile(of: b) == nil)
    }

    @Test(arguments: StoreKind.allCases, Dropping.allCases)
    func `S050, S105: a reference to an object that the store deleted is dropped with the changes of that object`(
        _ kind: StoreKind, _ dropping: Dropping
    ) async throws {
        let bed = try TestBed(kind)
        let roots = try await Roots(bed)
        let (a, b, free) = (roots.a, roots.b, roots.free)
        try await roots.save { $0.delete(try $0.existingObject(with: b)) }
        try await roots.save(dropping.policy) { context in
            let (artist, profile) = (try context.existingObject(with: b), try context.existingObject(with: free))
            profile["text"] = .string("ours")
            artist.setRelatedObject("profile", to: profile)
            try context.existingObject(with: a).setRelatedObject("mentor", to: artist)
        }
        try await roots.ours.perform { context throws in
            #expect(try context.existingObject(with: free)["text"] == .string("ours"))
            #expect(try context.existingObject(with: free).relatedObject("artist") == nil)
            #expect(try context.existingObject(with: a).relatedObject("mentor") == nil)
        }
    }

    /// Catches: a check that passes on the consequences of a dropped end one partner at a time, and gives up after a number of rounds.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S052, S105: a long chain of exchanged profiles is dropped as a unit`(_ kind: StoreKind, _ isUpward: Bool) async throws {
        let count = 600
        let bed = try TestBed(kind)
        let roots = try await Roots(bed)
        let artists = try await roots.ours.perform(andSave: .durable) { context in
            (0..<count).map { number in
                let artist = context.makeArtist("\(number)")
                artist.setRelatedObject("profile", to: context.insert("Profile"))
                return artist.objectID
            }
        }
        let contested = isUpward ? artists[0] : artists[count - 1]
        try await roots.save { context in
            context.refreshAllObjects()
            try context.existingObject(with: contested)["born"] = .int(1970)
        }
        try await roots.save(.rollback) { context in
            let objects = try artists.map { try context.existingObject(with: $0) }
            let profiles = objects.map { $0.relatedObject("profile") }
            for (number, artist) in objects.enumerated() {
                artist["name"] = .string("ours")
                artist.setRelatedObject("profile", to: profiles[(number + (isUpward ? count - 1 : 1)) % count])
            }
        }
        try await roots.theirs.perform { context in
            context.refreshAllObjects()
            let objects = try artists.map { try context.existingObject(with: $0) }
            #expect(objects.count { $0["name"] == .string("ours") } == count - 1)
            let profiles = objects.compactMap { $0.relatedObject("profile")?.objectID.key }
            #expect(profiles.count == count && profiles == profiles.sorted(), "each artist has its own profile")
        }
    }

    // MARK: Random changes

    /// Each conflict gets one of the resolutions, by the object's key and the seed. The values name one of these profiles.
    private static func mixed(_ seed: UInt64, _ profiles: [ObjectKey]) -> MergePolicy {
        .custom { conflicts in
            conflicts.reduce(into: [:]) { answers, conflict in
                var random = SeededGenerator(seed: seed &+ conflict.objectID.key.rawValue)
                let profile = profiles.randomElement(using: &random)
                let values: [String: Value] =
                    conflict.entityName == "Artist" ? ["profile": profile.map(Value.reference) ?? .null] : [:]
                answers[conflict.objectID] = [.rollback, .storeTrump, .objectTrump, .overwrite, .values(values)][random.below(5)]
            }
        }
    }

    /// Makes random changes of the artists and the profiles that a context shows.
    private static func change(
        _ context: ManagedObjectContext, _ random: inout SeededGenerator, deletes: Bool
    ) throws {
        for _ in 0..<random.below(6) {
            let artists = try context.objects("Artist")
            let profiles = try context.objects("Profile")
            guard let artist = artists.randomElement(using: &random), let profile = profiles.randomElement(using: &random) else {
                continue
            }
            switch random.below(10) {
            case 0..<4: artist.setRelatedObject("profile", to: profile)
            case 4: artist.setRelatedObject("profile", to: nil)
            case 5: profile.setRelatedObject("artist", to: nil)
            case 6: artist["born"] = .int(Int64(random.below(1000)))
            case 7: profile["text"] = .string("\(random.below(1000))")
            case 8: artist.setRelatedObject("profile", to: context.insert("Profile"))
            default: if deletes { context.delete(random.chance(50) ? artist : profile) }
            }
        }
    }

    /// The profiles and the values of artists, and the artists and the values of profiles, by object.
    private static func content(_ context: ManagedObjectContext) throws -> [ObjectID: [Value]] {
        let artists = try context.objects("Artist").map { ($0.objectID, [$0["born"], $0["profile"]]) }
        let profiles = try context.objects("Profile").map { ($0.objectID, [$0["text"], $0["artist"]]) }
        return Dictionary(uniqueKeysWithValues: artists + profiles)
    }

    /// Changes of both sides under each policy. The ends agree, no end has a partner that neither side has given it, and rollback leaves the
    /// objects in conflict as the store has them.
    @Test(arguments: StoreKind.allCases)
    func `S052, S105, S109: the ends of pairs agree after random changes of two contexts under each policy`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        for round in 0..<Rounds.of(60, long: 2000) {
            let seed = Seed.value &+ UInt64(round)
            var random = SeededGenerator(seed: seed)
            let deletes = random.chance(50)
            let (first, second) = (random.next(), random.next())
            let base = try await ours.perform(andSave: .durable) { context in
                context.refreshAllObjects()
                for object in try context.objects("Artist") + context.objects("Profile") { context.delete(object) }
                let artists = (0..<3).map { context.makeArtist("\($0)") }
                for number in 0..<4 {
                    let profile = context.insert("Profile")
                    profile["text"] = .string("\(number)")
                    if number < 3, number != Int(seed % 5) { profile.setRelatedObject("artist", to: artists[number]) }
                }
                context.processPendingChanges()
                return try Self.content(context)
            }
            let profiles = base.keys.filter { $0.entity == Music.query("Profile").entity }.map(\.key).sorted()
            let policies = IntegrityTests.policies + [.rollback] + [0, 1, 2].map { Self.mixed(seed &+ $0, profiles) }
            let policy = policies[random.below(policies.count)]
            try await ours.perform { context in
                context.mergePolicy = policy
                var random = SeededGenerator(seed: first)
                try Self.change(context, &random, deletes: deletes)
            }
            let mine = try await ours.perform { try Self.content($0) }
            let written = try await theirs.perform(andSave: .durable) { context in
                context.refreshAllObjects()
                var random = SeededGenerator(seed: second)
                try Self.change(context, &random, deletes: deletes)
                return Set(context.updatedObjects.map(\.objectID))
            }
            let stored = try await theirs.perform { try Self.content($0) }
            do { try await ours.save() } catch is SaveError { await ours.perform { $0.rollback() } }
            let (saved, fault) = try await container.coordinator.newBackgroundContext().perform {
                (try Self.content($0), try IntegrityExplorer.fault(in: $0))
            }
            let comment = Comment(rawValue: "STRATA_SEED=\(seed), \(kind), \(policy)")
            #expect(fault == nil, comment)
            if case .rollback = policy, !deletes {
                for (id, values) in mine where values != base[id] {
                    if written.contains(id) {
                        #expect(saved[id] == stored[id], comment)
                    } else {
                        #expect(saved[id]?[0] == values[0], comment)
                    }
                }
            }
            if fault != nil { return }
        }
        let findings = try container.coordinator.store.verify()
        #expect(findings.isEmpty)
    }
}
