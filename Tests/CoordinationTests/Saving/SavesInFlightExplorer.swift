import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Random changes, saves, pushes and batches of several contexts, while a blocked writer holds saves back. A failure prints the shortest
/// failing sequence that was found, and its seed.
@Suite struct SavesInFlightExplorer {
    /// One step. It chooses objects that its context shows, by its own seed, so that steps can be left out.
    struct Step: Sendable, CustomStringConvertible {
        enum Action: Sendable {
            case edit, save(isDeferred: Bool, isThrough: Bool), block, release, refresh, rollback, batchDelete
        }

        /// A root (0 to 2), or a child of the first root (3, 4) or of the last (5).
        var context: Int
        var action: Action
        var seed: UInt64

        var description: String { "context \(context), \(action), seed \(seed)" }

        static func sequence(_ count: Int, seed: UInt64) -> [Step] {
            var random = SeededGenerator(seed: seed)
            return (0..<count).map { _ in
                let action: Action =
                    switch random.below(20) {
                    case 0..<10: .edit
                    case 10..<14: .save(isDeferred: random.chance(50), isThrough: random.chance(50))
                    case 14: .block
                    case 15, 16: .release
                    case 17: .refresh
                    case 18: .rollback
                    default: .batchDelete
                    }
                return Step(context: random.below(6), action: action, seed: random.next())
            }
        }
    }

    /// The contexts of one run, and the saves that have not ended.
    private final class Run {
        let container: PersistentContainer
        private let bed: TestBed
        private var contexts: [BackgroundContext] = []
        private var running: [(context: Int?, save: Task<Void, any Error>)] = []
        private let gate = DispatchSemaphore(value: 0)
        private var isBlocked = false

        init(_ kind: StoreKind, seed: UInt64) async throws {
            bed = try TestBed(kind)
            container = try await bed.container()
            for number in 0..<3 { contexts.append(container.coordinator.newBackgroundContext(name: "root \(number)")) }
            await contexts[2].perform { $0.automaticallyMergesChanges = true }
            for parent in [0, 0, 2] { contexts.append(await contexts[parent].newBackgroundChild(name: "child of \(parent)")) }
            var random = SeededGenerator(seed: seed)
            let mixed = MergePolicy.custom { conflicts in
                conflicts.reduce(into: [:]) {
                    $0[$1.objectID] =
                        [.rollback, .storeTrump, .objectTrump, .overwrite, .values([:])][Int($1.objectID.key.rawValue % 5)]
                }
            }
            for context in contexts {
                let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback, mixed]
                let policy = policies[random.below(policies.count)]
                await context.perform { $0.mergePolicy = policy }
            }
        }

        func take(_ step: Step) async throws {
            let context = contexts[step.context]
            switch step.action {
            case .edit:
                try await context.perform { context in
                    var random = SeededGenerator(seed: step.seed)
                    for _ in 0...random.below(3) { try SavesInFlightExplorer.edit(context, &random) }
                }
            case .save(let isDeferred, let isThrough):
                if running.contains(where: { $0.context == step.context }) { return }
                let durability: Durability = isDeferred ? .deferred(within: .seconds(600)) : .durable
                running.append(
                    (
                        step.context,
                        Task {
                            if isThrough {
                                try await context.save(through: .store, durability)
                            } else {
                                try await context.save(durability)
                            }
                        }
                    ))
            case .block:
                if !isBlocked { container.coordinator.writer.queue.async { [gate] in gate.wait() } }
                isBlocked = true
            case .release: try await release()
            case .refresh where step.context >= 3: try await context.refreshFromParent()
            case .refresh: await context.perform { $0.refreshAllObjects() }
            case .rollback: await context.perform { $0.rollback() }
            case .batchDelete:
                let request = EntityFetchRequest(["Profile", "Playlist", "Artist"][Int(step.seed % 3)])
                running.append((nil, Task { [container] in _ = try await container.coordinator.batchDelete(request) }))
            }
        }

        /// Ends all running saves. Throws an error of another type than ``SaveError``.
        func release() async throws {
            if isBlocked { gate.signal() }
            isBlocked = false
            defer { running = [] }
            for (_, save) in running {
                do { try await save.value } catch is SaveError {}
            }
        }

        /// Saves every context, and returns a fault of the store, or nil.
        func fault() async throws -> String? {
            for context in contexts.reversed() {
                do { try await context.save(through: .store) } catch is SaveError { await context.perform { $0.rollback() } }
            }
            try await container.flush()
            let findings = try container.coordinator.store.verify()
            if !findings.isEmpty { return "verify: \(findings)" }
            return try await container.coordinator.newBackgroundContext().perform { context in
                for artist in try context.objects("Artist") {
                    if let profile = artist.relatedObject("profile"), profile.relatedObject("artist") !== artist {
                        return "the profile of artist \(artist.objectID.key) has another artist"
                    }
                }
                for profile in try context.objects("Profile") {
                    if let artist = profile.relatedObject("artist"), artist.relatedObject("profile") !== profile {
                        return "the artist of profile \(profile.objectID.key) has another profile"
                    }
                }
                return nil
            }
        }
    }

    private static func edit(_ context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        func any(_ entity: String) throws -> ManagedObject? { try context.objects(entity).randomElement(using: &random) }
        switch random.below(20) {
        case 0, 1: context.makeArtist("artist")
        case 2, 3:
            let profile = context.insert("Profile")
            profile.setRelatedObject("artist", to: try any("Artist"))
        case 4:
            let track = context.makeTrack("track")
            track["isrc"] = .string("\(random.below(6))")
            track.setRelatedObject("album", to: try any("Album"))
        case 5: context.insert("Album").setRelatedObject("artist", to: try any("Artist"))
        case 6:
            let list = context.insert("Playlist")
            if let track = try any("Track") { list.add(track, to: "tracks") }
        case 7..<11: try any("Artist")?.setRelatedObject("profile", to: try any("Profile"))
        case 11: try any("Artist")?.setRelatedObject("profile", to: nil)
        case 12, 13: try any("Artist")?["born"] = .int(Int64(random.below(100)))
        case 14: try any("Profile")?["text"] = .string("\(random.below(100))")
        case 15: try any("Artist")?.setRelatedObject("mentor", to: try any("Artist"))
        case 16: try any("Track")?["isrc"] = .string("\(random.below(6))")
        case 17: try any("Track")?.setRelatedObject("album", to: try any("Album"))
        default:
            let entity = ["Track", "Artist", "Profile", "Playlist", "Album"][random.below(5)]
            if let object = try any(entity) { context.delete(object) }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S050, S052, S062: random changes during saves leave no wrong relationship, and no save that cannot be settled`(
        _ kind: StoreKind
    ) async throws {
        for round in 0..<Rounds.of(10, long: 1000) {
            let seed = Seed.value &+ UInt64(round)
            let failure = await Shrinking.failure(of: Step.sequence(60, seed: seed), seed: seed, on: "\(kind)") { steps in
                let run = try await Run(kind, seed: seed)
                do { for step in steps { try await run.take(step) } } catch {
                    try? await run.release()
                    throw error
                }
                try await run.release()
                let fault = try await run.fault()
                try await run.container.close()
                return fault
            }
            if let failure { return _ = Issue.record("\(failure)") }
        }
    }
}
