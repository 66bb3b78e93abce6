import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Random increments of one counter by a child that lives long, and by a root beside its parent. The parent also saves, so
/// that it is ahead of its child. Saves are under `.error`, and the model is a sum (S067, S075, S100).
@Suite struct ChildIncrementExplorerTests {
    @MainActor private struct Run {
        private let bed: TestBed
        let container: PersistentContainer
        let main: ManagedObjectContext
        let child: BackgroundContext
        /// A child of the child, for saves through three levels.
        let grandchild: BackgroundContext
        let other: BackgroundContext
        let id: ObjectID
        var random: SeededGenerator
        var steps: [String] = []
        /// The increments in the file, and those that the child has not saved.
        var stored = 0
        var unsaved = 0
        /// The increments of the child that main has not saved.
        var pushed = 0
        /// Whether the other root has saved the counter since the child read it.
        var isBehind = false
        var saves = 0
        var conflicts = 0

        init(_ bed: TestBed, _ stack: ContextStack, seed: UInt64) async throws {
            random = SeededGenerator(seed: seed)
            self.bed = bed
            container = try await bed.container(stack)
            main = container.mainContext
            main.automaticallyMergesChanges = false
            id = main.makeTrack("counter").objectID
            try await main.save(through: .store)
            child = main.newBackgroundChild(name: "child")
            grandchild = await child.newBackgroundChild(name: "grandchild")
            other = container.coordinator.newBackgroundContext(name: "other")
        }

        private nonisolated static func increment(_ id: ObjectID, _ context: ManagedObjectContext) throws {
            let object = try context.existingObject(with: id)
            guard case .int(let plays) = object["plays"] else { return }
            object["plays"] = .int(plays + 1)
        }

        private var durability: Durability {
            mutating get {
                random.chance(50) ? .durable : .deferred(within: random.chance(50) ? .milliseconds(5) : .seconds(600))
            }
        }

        mutating func step() async throws {
            let id = id
            switch random.below(14) {
            case 0...1:
                steps.append("child increments")
                try await child.perform { try Self.increment(id, $0) }
                unsaved += 1
            case 2...3:
                steps.append("other increments")
                try await other.perform(andSave: durability) { context in
                    context.refreshAllObjects()
                    try Self.increment(id, context)
                }
                stored += 1
                isBehind = true
            case 4:
                steps.append("main saves")
                main.makeTrack("of main")
                try await save { [main] in try await main.save(through: .store, $0) }
            case 5:
                steps.append("flush")
                try await container.flush()
            case 6:
                steps.append("grandchild saves")
                await grandchild.perform { _ = $0.makeTrack("of a grandchild") }
                try await save { [grandchild] in try await grandchild.save(through: .store, $0) }
            case 7:
                steps.append("main refreshes")
                // A child's changes win over what its parent has merged, so the child follows.
                try await recover()
            case 8: try await move()
            case 9:
                steps.append("child saves to main")
                try await child.save()
                pushed += unsaved
                unsaved = 0
            default:
                steps.append("child saves")
                try await save { [child] in try await child.save(through: .store, $0) }
            }
        }

        /// Moves main or the writer in a way that is no merge.
        private mutating func move() async throws {
            switch random.below(3) {
            case 0:
                steps.append("a budget moves main")
                main.advanceIfClean()
            case 1:
                steps.append("the writer forgets its steps")
                let coordinator = container.coordinator
                coordinator.writer.shared.withLock { $0.recent.forgetSteps() }
            default:
                steps.append("a read of main")
                _ = try main.trackTitles()
            }
        }

        /// Saves, with the child's increments if the save goes through the child.
        private mutating func save(_ body: (Durability) async throws -> Void) async throws {
            let takes = steps.last != "main saves"
            do {
                try await body(durability)
                saves += 1
                stored += pushed + (takes ? unsaved : 0)
                pushed = 0
                if takes { unsaved = 0 }
            } catch let error as SaveError {
                conflicts += 1
                #expect(
                    isBehind && pushed + (takes ? unsaved : 0) > 0,
                    "a conflict without a reason: \(error)\n\(steps.joined(separator: "\n"))")
                try await recover()
            }
        }

        private mutating func recover() async throws {
            for context in [grandchild, child] { await context.perform { $0.rollback() } }
            main.rollback()
            main.refreshAllObjects()
            for context in [child, grandchild] { try await context.refreshFromParent() }
            (unsaved, pushed, isBehind) = (0, 0, false)
        }

        func difference() async throws -> String? {
            let shown = try await container.newBatchOperationContext().perform { [id] context -> Int in
                guard case .int(let plays) = try context.existingObject(with: id)["plays"] else { return -1 }
                return Int(plays)
            }
            return shown == stored ? nil : "the counter is \(shown), expected \(stored)"
        }
    }

    @MainActor @Test(arguments: StoreKind.allCases, [ContextStack.nested, .masterMainWorker, .hybrid])
    func `S100: no increment is lost between a child and a root beside its parent`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        var seeds = SeededGenerator()
        var (saves, conflicts) = (0, 0)
        for round in 0..<300 {
            // Some seeds have no conflict.
            if round >= Rounds.of(3, long: 300), conflicts > 0 { break }
            let seed = seeds.next()
            var run = try await Run(TestBed(kind), stack, seed: seed)
            for _ in 0..<40 {
                try await run.step()
                if let difference = try await run.difference() {
                    Issue.record("seed \(seed): \(difference)\n\(run.steps.joined(separator: "\n"))")
                    return
                }
            }
            saves += run.saves
            conflicts += run.conflicts
        }
        #expect(saves > 0 && conflicts > 0)
    }
}
