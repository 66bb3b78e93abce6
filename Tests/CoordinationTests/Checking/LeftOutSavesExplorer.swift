import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Random deferred saves of several contexts under all merge policies, of which the store refuses some when it writes them. After each
/// step the newest state is checked. A failure prints the shortest failing sequence that was found, and its seed.
@Suite struct LeftOutSavesExplorer {
    private enum Change: String, CaseIterable {
        case artist, profile, album, track, unwritable, delete, setProfile, setArtist, setAlbum, setBorn, setCode
    }

    private enum Action: CustomStringConvertible {
        case change(Change)
        case save(PolicyKind, isDurable: Bool)
        case flush, refresh, rollback

        var description: String {
            switch self {
            case .change(let change): change.rawValue
            case .save(let policy, let isDurable): "save(\(policy)\(isDurable ? ", durable" : ""))"
            case .flush: "flush"
            case .refresh: "refresh"
            case .rollback: "rollback"
            }
        }
    }

    private struct Step: Sendable, CustomStringConvertible {
        var number: Int
        var context: Int
        var action: Action
        /// The seed of the choice of objects and values.
        var seed: UInt64

        var description: String { "\(number): context \(context), \(action)" }

        static func sequence(_ count: Int, seed: UInt64) -> [Step] {
            var random = SeededGenerator(seed: seed)
            return (0..<count).map { number in
                let action: Action =
                    switch random.below(12) {
                    case 0..<7: .change(Change.allCases.randomElement(using: &random) ?? .artist)
                    case 7..<10: .save(PolicyKind.allCases.randomElement(using: &random) ?? .error, isDurable: random.chance(10))
                    case 10: random.chance(60) ? .flush : .rollback
                    default: .refresh
                    }
                return Step(number: number, context: random.below(3), action: action, seed: random.next())
            }
        }
    }

    private struct Run {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator: PersistentStoreCoordinator
        let contexts: [BackgroundContext]
        var leftOut = 0

        init() throws {
            let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
            self.coordinator = coordinator
            contexts = (0..<3).map { coordinator.newBackgroundContext(name: "context \($0)") }
            let (track, title) = (Music.query("Track").entity, Music.column("Track", "title"))
            store.refuse { layer in
                var isRefused = false
                layer.forEachRow(of: track, \.touched) { _, row in
                    if row.isSet(title), row[title] == "unwritable" { isRefused = true }
                }
                return isRefused ? StoreError(.valueTooLarge, "a value is too large. Change it") : nil
            }
        }

        mutating func take(_ step: Step) async throws -> String? {
            let context = contexts[step.context]
            do { try await act(step, context) } catch SaveError.deferredSavesFailed(let failures) {
                leftOut += failures.count
            } catch is SaveError {
                await context.perform { $0.rollback() }
            } catch let error as StoreError where error.code == .valueTooLarge {
                await context.perform { $0.rollback() }
            }
            let fault = try await coordinator.newBackgroundContext().perform { try LeftOutSavesExplorer.fault(in: $0) }
            return fault.map { "after step \(step.number): \($0)" }
        }

        private func act(_ step: Step, _ context: BackgroundContext) async throws {
            let seed = step.seed
            switch step.action {
            case .change(let change):
                try await context.perform { context in
                    var random = SeededGenerator(seed: seed)
                    try LeftOutSavesExplorer.make(change, in: context, &random)
                }
            case .save(let policy, let isDurable):
                await context.perform { $0.mergePolicy = policy.mergePolicy }
                try await context.save(isDurable ? .durable : .deferred(within: .seconds(600)))
            case .flush: try await coordinator.flush()
            case .refresh: await context.perform { $0.refreshAllObjects() }
            case .rollback: await context.perform { $0.rollback() }
            }
        }
    }

    private static func make(_ change: Change, in context: ManagedObjectContext, _ random: inout SeededGenerator) throws {
        func any(_ entity: String) throws -> ManagedObject? { try context.objects(entity).randomElement(using: &random) }
        switch change {
        case .artist: context.makeArtist("artist")
        case .profile: context.insert("Profile")
        case .album: context.insert("Album").setRelatedObject("artist", to: try any("Artist"))
        case .track:
            let track = context.makeTrack("track")
            track.setRelatedObject("album", to: try any("Album"))
            track["isrc"] = code(&random)
        case .unwritable: context.makeTrack("unwritable")
        case .delete:
            let entity = ["Artist", "Profile", "Album", "Track"].randomElement(using: &random) ?? "Artist"
            if let object = try any(entity) { context.delete(object) }
        case .setProfile: try any("Artist")?.setRelatedObject("profile", to: try any("Profile"))
        case .setArtist: try any("Album")?.setRelatedObject("artist", to: try any("Artist"))
        case .setAlbum: try any("Track")?.setRelatedObject("album", to: try any("Album"))
        case .setBorn: try any("Artist")?["born"] = .int(Int64(random.below(9)))
        case .setCode: try any("Track")?["isrc"] = code(&random)
        }
    }

    private static func code(_ random: inout SeededGenerator) -> Value { .string(["A", "B", "C"][random.below(3)]) }

    /// Returns a fault of the state that a new context shows, in words, or nil.
    private static func fault(in context: ManagedObjectContext) throws -> String? {
        for entity in Music.model.entities {
            for object in try context.objects(entity.name) {
                for relationship in entity.relationships {
                    guard case .toOne = relationship.kind, let key = object[relationship.name].referenceKey else { continue }
                    let place = "\(entity.name) \(object.objectID.key).\(relationship.name)"
                    guard let other = object.relatedObject(relationship.name), !other.isDeleted else {
                        return "\(place) leads to nothing: \(key)"
                    }
                    guard let inverse = relationship.inverse else { continue }
                    let back = Music.model.entities[relationship.destination].relationships[inverse]
                    if case .toOne = back.kind, other.relatedObject(back.name) !== object {
                        return "\(place) is not at the other end"
                    }
                }
            }
        }
        let codes = try context.objects("Track").map { $0["isrc"] }.filter { !$0.isNull }
        return Set(codes).count == codes.count ? nil : "two tracks have the same isrc"
    }

    @Test func `S050, S052, S067, S108: random saves leave nothing wrong without those that cannot be written`() async throws {
        var leftOut = 0
        for round in 0..<Rounds.of(12, long: 2000) {
            let seed = Seed.value &+ UInt64(round)
            let steps = Step.sequence(80, seed: seed)
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "a store that refuses saves") { steps in
                var run = try Run()
                for step in steps {
                    if let fault = try await run.take(step) { return fault }
                }
                _ = try await run.take(Step(number: steps.count, context: 0, action: .flush, seed: 0))
                leftOut += run.leftOut
                let findings = try run.store.verify()
                return findings.isEmpty ? nil : "verify: \(findings)"
            }
            if let failure { return _ = Issue.record("\(failure)") }
        }
        #expect(leftOut > 0, "STRATA_SEED=\(Seed.value): no save was left out")
    }
}
