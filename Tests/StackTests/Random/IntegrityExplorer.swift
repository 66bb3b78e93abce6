import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random short sequences of changes by roots, children and batches. After each save the committed state is checked (S050 …
/// S053).
@Suite struct IntegrityExplorer {
    /// Checks a new context: references lead to objects, one-to-one ends agree, and properties and predicates agree.
    static func check(_ context: ManagedObjectContext, _ comment: String) throws {
        for entity in Music.model.entities {
            let objects = try context.objects(entity.name)
            for relationship in entity.relationships {
                guard case .toOne(let column) = relationship.kind else { continue }
                let isNil = Set(try context.keys(matching: Music.query(entity.name, .compare(column, .equal, to: .null))))
                for object in objects {
                    let key = object[relationship.name].referenceKey
                    let other = object.relatedObject(relationship.name)
                    let subject = "\(comment): \(entity.name) \(object.objectID.key).\(relationship.name)"
                    #expect((key == nil) == (other == nil), "\(subject) leads to nothing: \(String(describing: key))")
                    #expect((other == nil) == isNil.contains(object.objectID.key), "\(subject): predicate")
                    guard let other, let inverse = relationship.inverse else { continue }
                    let back = context.model.entities[relationship.destination].relationships[inverse]
                    switch back.kind {
                    case .toOne: #expect(other.relatedObject(back.name) === object, "\(subject): the other end")
                    case .toMany: #expect(other.relatedObjects(back.name).contains(object), "\(subject): the other end")
                    }
                }
            }
        }
    }

    /// Makes one random change, using the objects that the context shows.
    private static func change(_ context: ManagedObjectContext, _ generator: inout SeededGenerator) throws -> String {
        func any(_ entity: String, _ generator: inout SeededGenerator) throws -> ManagedObject? {
            try context.objects(entity).randomElement(using: &generator)
        }
        switch Int.random(in: 0..<14, using: &generator) {
        case 0:
            context.makeArtist("artist")
            return "insert artist"
        case 1:
            context.insert("Profile")
            return "insert profile"
        case 2:
            context.insert("Album").setRelatedObject("artist", to: try any("Artist", &generator))
            return "insert album"
        case 3:
            context.makeTrack("track").setRelatedObject("album", to: try any("Album", &generator))
            return "insert track"
        case 4:
            context.insert("Playlist")
            return "insert playlist"
        case 5, 6, 7:
            let entity = ["Artist", "Profile", "Album", "Track", "Playlist"].randomElement(using: &generator) ?? "Artist"
            guard let object = try any(entity, &generator) else { return "" }
            context.delete(object)
            return "delete \(entity) \(object.objectID.key)"
        case 8, 9:
            guard let artist = try any("Artist", &generator) else { return "" }
            let profile = Bool.random(using: &generator) ? try any("Profile", &generator) : nil
            artist.setRelatedObject("profile", to: profile)
            return "artist \(artist.objectID.key).profile = \(profile.map { "\($0.objectID.key)" } ?? "nil")"
        case 10:
            guard let artist = try any("Artist", &generator) else { return "" }
            let mentor = try any("Artist", &generator)
            artist.setRelatedObject("mentor", to: mentor)
            return "artist \(artist.objectID.key).mentor = \(mentor.map { "\($0.objectID.key)" } ?? "nil")"
        case 11:
            guard let album = try any("Album", &generator) else { return "" }
            let artist = try any("Artist", &generator)
            album.setRelatedObject("artist", to: artist)
            album["title"] = .string("\(Int.random(in: 0..<9, using: &generator))")
            return "album \(album.objectID.key).artist = \(artist.map { "\($0.objectID.key)" } ?? "nil")"
        case 12:
            guard let track = try any("Track", &generator), let list = try any("Playlist", &generator) else { return "" }
            if Bool.random(using: &generator) { list.add(track, to: "tracks") } else { list.remove(track, from: "tracks") }
            return "pair \(track.objectID.key), \(list.objectID.key)"
        default:
            guard let artist = try any("Artist", &generator) else { return "" }
            artist["born"] = .int(Int64.random(in: 0..<9, using: &generator))
            return "artist \(artist.objectID.key).born"
        }
    }

    private static let isPrinting = ProcessInfo.processInfo.environment["STRATA_SEED"] != nil
    private static let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback]

    /// Saves one level or through to the store, with a random policy of the root.
    private static func save(
        _ context: BackgroundContext, below root: BackgroundContext, _ generator: inout SeededGenerator
    ) async throws -> String {
        let policy = policies.randomElement(using: &generator) ?? .error
        await root.perform { $0.mergePolicy = policy }
        let durability: Durability = Bool.random(using: &generator) ? .durable : .deferred
        guard Bool.random(using: &generator) else {
            try await context.save(durability)
            return "save \(policy) \(durability)"
        }
        try await context.save(through: .store, durability)
        return "save through \(policy) \(durability)"
    }

    /// Runs one sequence on one store.
    private static func run(_ kind: StoreKind, seed: UInt64, steps: Int) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await explore(container, "\(kind), seed \(seed)", seed: seed, steps: steps)
        let findings = try container.coordinator.store.verify()
        #expect(findings.isEmpty, "\(kind), seed \(seed)")
    }

    /// Makes the changes of one process. Prints them if the environment has STRATA_SEED.
    private static func explore(
        _ container: PersistentContainer, _ comment: String, seed: UInt64, steps: Int
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        let roots = [container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext()]
        var children: [BackgroundContext] = []
        for root in roots { children.append(await root.perform { $0.newBackgroundChild() }) }
        for _ in 0..<steps {
            let number = Int.random(in: 0..<4, using: &generator)
            let context = number < 2 ? roots[number] : children[number - 2]
            let action = Int.random(in: 0..<20, using: &generator)
            var line = ""
            do {
                switch action {
                case 0..<11:
                    let seed = generator.next()
                    line = try await context.perform { context in
                        var generator = SeededGenerator(seed: seed)
                        return try change(context, &generator)
                    }
                case 11..<15:
                    line = try await save(context, below: roots[number % 2], &generator)
                case 15:
                    line = "refresh"
                    if number < 2 {
                        await context.perform { $0.refreshAllObjects() }
                    } else {
                        try await context.refreshFromParent()
                    }
                case 16:
                    line = "rollback"
                    await context.perform { $0.rollback() }
                case 17:
                    let entity = ["Artist", "Album", "Profile", "Playlist"].randomElement(using: &generator) ?? "Artist"
                    line = "batch delete \(entity)"
                    try await container.coordinator.batchDelete(EntityFetchRequest(entity, limit: 1))
                case 18:
                    let seed = generator.next()
                    line = try await context.perform { context in
                        var generator = SeededGenerator(seed: seed)
                        guard let object = try context.objects("Artist").randomElement(using: &generator) else { return "" }
                        context.refresh(object, mergeChanges: false)
                        return "drop changes of artist \(object.objectID.key)"
                    }
                default:
                    line = "new child"
                    if number >= 2 { children[number - 2] = await roots[number - 2].perform { $0.newBackgroundChild() } }
                }
                if isPrinting { print("\(number): \(line)") }
            } catch let error as SaveError {
                if isPrinting { print("\(number): \(line): \(error)") }
                await context.perform { $0.rollback() }
                await roots[number % 2].perform { $0.rollback() }
            }
            try await container.coordinator.refresh()
            try await container.coordinator.newBackgroundContext().perform { try check($0, comment) }
        }
        try await container.coordinator.flush()
    }

    @Test(arguments: StoreKind.allCases)
    func `S050: random roots, children and batches leave no wrong relationship`(_ kind: StoreKind) async throws {
        for round in 0..<Rounds.of(12, long: 2000) {
            let seed = Seed.value &+ UInt64(round)
            do {
                try await Self.run(kind, seed: seed, steps: 60)
            } catch {
                Issue.record("\(kind), STRATA_SEED=\(seed): \(error)")
            }
        }
    }

    /// Catches: changes made by a second process between a read and a save, such as the deletion of an object that is being
    /// related.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S050: two processes that change one file at random leave no wrong relationship`(_ kind: StoreKind) async throws {
        for round in 0..<Rounds.of(3, long: 200) {
            let seed = Seed.value &+ UInt64(2 * round)
            let bed = try TestBed(kind)
            let container = try await bed.container()
            async let first: Void = Self.process(kind, bed.folder, seed)
            async let second: Void = Self.process(kind, bed.folder, seed &+ 1)
            _ = await (first, second)
            let comment = "\(kind), seeds \(seed) and \(seed &+ 1)"
            try await container.coordinator.refresh()
            #expect(try container.coordinator.store.snapshot().generation > 0, "\(comment): nothing was saved")
            try await container.coordinator.newBackgroundContext().perform { try Self.check($0, comment) }
            let findings = try container.coordinator.store.verify()
            #expect(findings.isEmpty, "\(comment)")
        }
    }

    private static func process(_ kind: StoreKind, _ folder: URL, _ seed: UInt64) async {
        await #expect(processExitsWith: .success) {
            [name = kind.rawValue as String, folder = folder as URL, seed = seed as UInt64] in
            let kind = try #require(StoreKind(rawValue: name))
            let bed = TestBed(kind, in: folder)
            let container = try await bed.container()
            try await IntegrityExplorer.explore(container, "\(name), seed \(seed), one of two processes", seed: seed, steps: 60)
        }
    }
}
