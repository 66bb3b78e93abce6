import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Random changes, saves and settings of main and two children, in two containers: in one, saves of children may pass main; in the other,
/// main forwards each. Every step must have the same results in both. A failure prints the shortest failing sequence that was found, and
/// its seed.
@Suite struct DirectSaveExplorerTests {
    struct Step: Sendable, CustomStringConvertible {
        enum Action: Sendable {
            case edit, save(isDeferred: Bool, isThrough: Bool), saveWhileMain, set, refresh, rollback, reset, batch
        }

        /// 0: main. 1, 2: its children.
        var context: Int
        var action: Action
        var seed: UInt64

        var description: String { "context \(context), \(action), seed \(seed)" }

        static func sequence(_ count: Int, seed: UInt64) -> [Step] {
            var random = SeededGenerator(seed: seed)
            return (0..<count).map { _ in
                let action: Action =
                    switch random.below(24) {
                    case 0..<7: .edit
                    case 7..<13: .save(isDeferred: random.chance(40), isThrough: random.chance(80))
                    case 13..<18: .saveWhileMain
                    case 18, 19: .set
                    case 20: .refresh
                    case 21: .rollback
                    case 22 where random.chance(30): .reset
                    case 22: .refresh
                    default: .batch
                    }
                return Step(context: random.chance(20) ? 0 : 1 + random.below(2), action: action, seed: random.next())
            }
        }
    }

    @Test(arguments: Combination.parented)
    func `S064: saves that pass main have the results of saves that main forwards`(_ combination: Combination) async throws {
        for run in 0..<UInt64(Rounds.of(1, long: 200)) {
            let seed = Seed.value &+ run
            let failure = await Shrinking.failure(of: Step.sequence(60, seed: seed), seed: seed, on: "\(combination)") { steps in
                try await Self.difference(steps, combination)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }

    private static func difference(_ steps: [Step], _ combination: Combination) async throws -> String? {
        let passing = try await Run(combination, passes: true)
        let forwarding = try await Run(combination, passes: false)
        var difference: String?
        for step in steps where difference == nil {
            let results = (try await passing.take(step), try await forwarding.take(step))
            if results.0 != results.1 { difference = "\(step):\n  passing main: \(results.0)\n  forwarded: \(results.1)" }
        }
        try await passing.container.close()
        try await forwarding.container.close()
        return difference
    }

    private final class Run: Sendable {
        let container: PersistentContainer
        private let bed: TestBed
        private let children: [BackgroundContext]
        private let gate = DispatchSemaphore(value: 0)

        init(_ combination: Combination, passes: Bool) async throws {
            bed = try TestBed(combination.store)
            container = try await bed.container(combination.stack)
            if !passes { await MainActor.run { [container] in container.mainContext.phase.saveGate.direct = nil } }
            let first = await container.makeBackgroundContext(name: "first")
            children = [first, await container.makeBackgroundContext(name: "second")]
            for context in children { await context.perform { $0.automaticallyMergesChanges = context === first } }
            await MainActor.run { [container] in container.mainContext.retainsRegisteredObjects = true }
        }

        private func perform<R: Sendable>(_ context: Int, _ body: @Sendable (ManagedObjectContext) throws -> R) async throws -> R
        {
            if context > 0 { return try await children[context - 1].perform { try body($0) } }
            return try await MainActor.run { try body(container.mainContext) }
        }

        /// Takes a step. Returns its result, and what all contexts and the store show then.
        func take(_ step: Step) async throws -> String {
            var result = ""
            switch step.action {
            case .edit: result = try await perform(step.context) { try DirectSaveExplorerTests.edit($0, step.seed) }
            case .save(let isDeferred, let isThrough):
                result = await save(step.context, isDeferred ? .deferred(within: .seconds(600)) : .durable, through: isThrough)
            case .saveWhileMain: result = try await saveWhileMainActs(max(1, step.context), step.seed)
            case .set: try await perform(0) { DirectSaveExplorerTests.set($0, step.seed) }
            case .refresh:
                if step.context > 0 {
                    try await children[step.context - 1].refreshFromParent()
                } else {
                    try await perform(0) { $0.refreshAllObjects() }
                }
            case .rollback: try await perform(step.context) { $0.rollback() }
            case .reset: try await perform(step.context) { $0.reset() }
            case .batch:
                let request = EntityFetchRequest("Track", matching: .equal("plays", .int(Int64(step.seed % 4))))
                try await container.coordinator.batchUpdate(request, set: ["plays": .int(Int64(step.seed >> 8) % 4)])
                // Main merges it by itself soon. Both must have merged before the next step.
                try await perform(0) { $0.refreshAllObjects() }
            }
            var lines = [result]
            for context in 0..<3 { lines.append(try await perform(context) { try DirectSaveExplorerTests.contents(of: $0) }) }
            let history = try container.coordinator.store.history(after: 0, limit: 1000) ?? []
            lines.append(history.map { "\($0.metadata.author)/\($0.metadata.contextName)" }.joined(separator: " "))
            return lines.joined(separator: "\n    ")
        }

        private func save(_ context: Int, _ durability: Durability, through: Bool) async -> String {
            do {
                if context == 0 {
                    try await Self.saveMain(of: container, durability, through: through)
                } else if through {
                    try await children[context - 1].save(through: .store, durability)
                } else {
                    try await children[context - 1].save(durability)
                }
                return "saved"
            } catch {
                return error is SaveError ? "\(error)".replacing(/[0-9a-fA-F-]{36}/, with: "store") : "failed"
            }
        }

        @MainActor private static func saveMain(
            of container: PersistentContainer, _ durability: Durability, through: Bool
        ) async throws {
            if through {
                try await container.mainContext.save(through: .store, durability)
            } else {
                try await container.mainContext.save(durability)
            }
        }

        /// Holds a child's save at the writer. Meanwhile main is edited, set, rolled back, refreshed or saved.
        private func saveWhileMainActs(_ context: Int, _ seed: UInt64) async throws -> String {
            var random = SeededGenerator(seed: seed)
            let writer = container.coordinator.writer
            let isBlocked = Flag()
            writer.queue.async { [gate] in
                isBlocked.set()
                gate.wait()
            }
            _ = isBlocked.wait(atMost: .seconds(600))
            let saving = Task { await save(context, .durable, through: true) }
            // A save that has nothing to write, or that fails before, never reaches the writer.
            let ended = Flag()
            let waiting = Task {
                _ = await saving.value
                ended.set()
            }
            try await until("the save waits or has ended") {
                ended.wait(atMost: .zero) || writer.shared.withLock { $0.waiting.count == 1 }
            }
            let (action, editSeed) = (random.below(6), random.next())
            var second: Task<String, Never>?
            var acted = ""
            switch action {
            case 0: acted = try await perform(0) { try DirectSaveExplorerTests.edit($0, editSeed) }
            case 1: try await perform(0) { DirectSaveExplorerTests.set($0, editSeed) }
            case 2:
                acted = try await perform(0) { try DirectSaveExplorerTests.edit($0, editSeed) }
                second = Task { await save(0, .durable, through: true) }
            case 3: try await perform(0) { $0.rollback() }
            case 4: try await perform(0) { $0.refreshAllObjects() }
            default: acted = try await perform(context) { try DirectSaveExplorerTests.edit($0, editSeed) }
            }
            gate.signal()
            let first = await saving.value
            await waiting.value
            let last = await second?.value ?? ""
            return "\(action) \(acted): \(first) \(last)"
        }
    }

    // MARK: Steps

    private static func edit(_ context: ManagedObjectContext, _ seed: UInt64) throws -> String {
        var random = SeededGenerator(seed: seed)
        let tracks = try sorted(context)
        if tracks.count < 3 || random.chance(30) {
            context.makeTrack("t\(seed % 1000)")["isrc"] = random.chance(30) ? .string("code \(random.below(3))") : .null
            return "insert"
        }
        let track = tracks[random.below(tracks.count)]
        switch random.below(10) {
        case 0, 1:
            context.delete(track)
            return "delete"
        case 2, 3:
            track["album"] = .reference(context.insert("Album").objectID.key)
            return "relate"
        default:
            track["plays"] = .int(Int64(random.below(4)))
            return "update"
        }
    }

    private static func set(_ context: ManagedObjectContext, _ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        switch random.below(5) {
        case 0: context.transactionAuthor = "author \(random.below(3))"
        case 1, 2: context.mergePolicy = [.error, .objectTrump, .storeTrump, .overwrite, .rollback][random.below(5)]
        case 3: context.undoHistory = random.chance(50) ? nil : UndoHistory()
        default: if let track = try? sorted(context).first { context.detectConflicts(for: track) }
        }
    }

    private static func sorted(_ context: ManagedObjectContext) throws -> [ManagedObject] {
        try context.fetch(EntityFetchRequest("Track")).sorted {
            "\($0["title"]) \($0.objectID.key)" < "\($1["title"]) \($1.objectID.key)"
        }
    }

    private static func contents(of context: ManagedObjectContext) throws -> String {
        let tracks = try sorted(context).map { track in
            "\(track["title"]) \(track["plays"]) \(track["isrc"]) \(track.relatedObject("album") == nil ? "" : "in an album")"
        }
        return "\(context.name): \(context.hasChanges ? "changed" : "saved"), \(tracks.joined(separator: "; "))"
    }
}
