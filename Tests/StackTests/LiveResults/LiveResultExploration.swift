import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport

/// Random edits, saves, moves and batches in seven contexts of a container, each with live results or other watches, which are compared
/// with fetches after every step.
struct LiveResultExploration: Sendable {
    private let bed: TestBed
    private let container: PersistentContainer
    private let contexts: [WatchedContext]
    private let log = StepLog()

    /// Returns the first difference, and the steps that led there; nil if there is none.
    ///
    /// - Parameters:
    ///   - steps: The seed of each step.
    ///   - kind: The watches of each context.
    ///   - count: The number of steps that are taken at the same time.
    static func run(
        _ steps: [UInt64], _ combination: Combination, seed: UInt64, watching kind: WatchKind = .results, atOnce count: Int = 1
    ) async throws -> String? {
        let run = try await LiveResultExploration(combination, seed: seed, kind)
        var difference: String?
        do {
            for start in stride(from: 0, to: steps.count, by: count) where difference == nil {
                let group = steps[start..<min(steps.count, start + count)]
                difference = try await run.take(group)
                var random = SeededGenerator(seed: group[start])
                if difference == nil { difference = try await run.difference(&random) }
            }
        } catch {
            difference = "an error that no step expects: \(error)"
        }
        for context in run.contexts {
            try await context.perform { [watches = context.watches] _ in watches.forEach { $0.stop() } }
        }
        try await run.container.close()
        return difference.map { "\($0)\n" + run.log.lines.map { "      \($0)" }.joined(separator: "\n") }
    }

    private init(_ combination: Combination, seed: UInt64, _ kind: WatchKind) async throws {
        var random = SeededGenerator(seed: seed)
        bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Gallery.model)
        self.container = container
        let first = await container.newBackgroundContext(name: "first")
        let child = await first.newBackgroundChild(name: "child")
        let ofMain = await MainActor.run { container.mainContext.newBackgroundChild(name: "child of main") }
        let all: [(name: String, context: BackgroundContext?, isChild: Bool)] = [
            ("main", nil, combination.stack == .masterMainWorker || combination.stack == .hybrid), ("first", first, false),
            ("batches", container.newBatchOperationContext(name: "batches"), false),
            ("second", await container.newBackgroundContext(name: "second"), false), ("child", child, true),
            ("grandchild", await child.newBackgroundChild(name: "grandchild"), true), ("child of main", ofMain, true),
        ]
        contexts = all.map { name, context, isChild in
            WatchedContext(name, context, in: container, isChild: isChild, watches: kind.make(&random))
        }
        for (number, context) in contexts.enumerated() {
            let policies: [MergePolicy] = [.error, .objectTrump, .storeTrump, .overwrite, .rollback]
            let policy = policies[random.below(policies.count)]
            let (merges, hasUndo, retains) = (number == 0 || random.chance(50), random.chance(60), random.chance(30))
            try await context.perform { [watches = context.watches] managed in
                managed.mergePolicy = policy
                if number > 0 { managed.automaticallyMergesChanges = merges }
                if hasUndo { managed.undoHistory = UndoHistory() }
                managed.retainsRegisteredObjects = retains
                for watch in watches { try watch.start(in: managed) }
            }
        }
    }

    /// Returns the first watch that differs from a fetch, in words.
    private func difference(_ random: inout SeededGenerator) async throws -> String? {
        for context in contexts {
            if random.chance(30) { await context.untilIdle() }
            if let difference = try await context.difference() { return "in \(context.name): \(difference)" }
        }
        return nil
    }

    /// Takes steps at the same time. Returns a difference that was found during one of them.
    private func take(_ steps: ArraySlice<UInt64>) async throws -> String? {
        let isAlone = steps.count == 1
        return try await withThrowingTaskGroup(of: String?.self) { group in
            for step in steps {
                group.addTask {
                    var random = SeededGenerator(seed: step)
                    return try await take(&random, isAlone: isAlone)
                }
            }
            return try await group.reduce(nil) { $0 ?? $1 }
        }
    }

    private func take(_ random: inout SeededGenerator, isAlone: Bool) async throws -> String? {
        let context = contexts[random.below(contexts.count)]
        switch random.below(26) {
        case 0..<11: try await edit(context, &random)
        case 11..<15: try await save(context, &random)
        case 15:
            log.append("\(context.name): rollback")
            try await context.perform { $0.rollback() }
        case 16, 17: try await undo(context, &random)
        case 18, 19: try await refresh(context, &random)
        case 20: try await refreshObject(of: context, &random)
        case 21 where random.chance(25):
            log.append("\(context.name): reset")
            try await context.perform { $0.reset() }
        case 21:
            log.append("flush")
            try await container.flush()
        case 22: try await runBatch(&random)
        case 23 where isAlone: return try await suspend(context, &random)
        case 24: try await moveByBudget(context)
        default:
            log.append("\(context.name): watches begin anew")
            try await context.perform { [watches = context.watches] managed in
                for watch in watches { try watch.restart(in: managed) }
            }
        }
        return nil
    }
}

// MARK: - Steps

extension LiveResultExploration {
    private func edit(_ context: WatchedContext, _ random: inout SeededGenerator) async throws {
        let seed = random.next()
        log.append("\(context.name): \(try await context.perform { try GalleryEdit.run(in: $0, seed: seed) })")
    }

    private func save(_ context: WatchedContext, _ random: inout SeededGenerator) async throws {
        let durability: Durability = random.chance(50) ? .durable : .deferred(within: .seconds(100))
        let through = random.chance(40)
        log.append("\(context.name): save \(durability)\(through ? " through" : "")")
        do {
            try await context.save(durability, through: through)
        } catch is SaveError {
            log.append("\(context.name): the save failed")
            guard random.chance(60) else { return }
            log.append("\(context.name): rollback, refresh")
            try await context.perform { managed in
                managed.rollback()
                managed.refreshAllObjects()
            }
            if context.isChild { try? await context.refreshFromParent() }
        }
    }

    private func undo(_ context: WatchedContext, _ random: inout SeededGenerator) async throws {
        let isRedo = random.chance(35)
        log.append("\(context.name): \(isRedo ? "redo" : "undo")")
        do {
            try await context.perform { managed in
                guard let history = managed.undoHistory else { return }
                if isRedo, history.canRedo { _ = try history.redo(onConflict: .skip) }
                if !isRedo, history.canUndo { _ = try history.undo(onConflict: .force) }
            }
        } catch is UndoError {
            log.append("\(context.name): the undo failed")
        }
    }

    private func refresh(_ context: WatchedContext, _ random: inout SeededGenerator) async throws {
        if context.isChild, random.chance(70) {
            log.append("\(context.name): refresh from the parent")
            try await context.refreshFromParent()
        } else {
            log.append("\(context.name): refresh")
            try await context.perform { $0.refreshAllObjects() }
        }
    }

    private func refreshObject(of context: WatchedContext, _ random: inout SeededGenerator) async throws {
        let entity = ["Track", "Album", "Artist", "Playlist"][random.below(4)]
        let (number, keeps) = (random.below(1000), random.chance(30))
        let key = try await context.perform { managed -> ObjectKey? in
            let all = try managed.fetch(EntityFetchRequest(entity))
            guard !all.isEmpty else { return nil }
            managed.refresh(all[number % all.count], mergeChanges: keeps)
            return all[number % all.count].objectID.key
        }
        log.append("\(context.name): refresh of \(entity) \(key.map { "\($0)" } ?? "none")\(keeps ? " that keeps changes" : "")")
    }

    private func runBatch(_ random: inout SeededGenerator) async throws {
        let (old, new) = (Int64(random.below(8)), Int64(random.below(8)))
        if random.chance(70) {
            log.append("batch: plays \(old) become \(new)")
            let request = EntityFetchRequest("Track", matching: .equal("plays", .int(old)))
            try await container.coordinator.batchUpdate(request, set: ["plays": .int(new)])
        } else {
            log.append("batch: delete the tracks without album with \(old) plays")
            let request = EntityFetchRequest("Track", matching: .all([.equal("plays", .int(old)), .isNil("album")]))
            try await container.coordinator.batchDelete(request)
        }
    }

    private func suspend(_ context: WatchedContext, _ random: inout SeededGenerator) async throws -> String? {
        log.append("suspend")
        try await container.suspend()
        if random.chance(50) { try await edit(context, &random) }
        let difference = random.chance(50) ? try await difference(&random) : nil
        await container.resume()
        log.append("resume")
        return difference.map { "while the store is suspended, \($0)" }
    }

    private func moveByBudget(_ context: WatchedContext) async throws {
        log.append("budget")
        let coordinator = container.coordinator
        coordinator.snapshotBudget = SnapshotBudget(maximumAge: .milliseconds(1), responses: .advanceCleanContexts)
        try await coordinator.refresh()
        try await context.perform { _ in }
        coordinator.snapshotBudget = SnapshotBudget()
    }
}

/// The steps so far, in words. Several steps may write at the same time.
private final class StepLog: Sendable {
    private let text = Mutex<[String]>([])

    var lines: [String] { text.withLock { $0 } }

    func append(_ line: String) { text.withLock { $0.append(line) } }
}
