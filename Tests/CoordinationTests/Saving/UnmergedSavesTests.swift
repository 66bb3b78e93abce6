import Dispatch
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// An object that other saves changed below the unsaved changes of a context is in conflict with its next save, however the context came to
/// the newer state, unless it merged.
@Suite struct UnmergedSavesTests {
    /// Saves another change of a context, and increments the plays of a track in it while the save waits.
    private static func increment(_ id: ObjectID, duringSaveOf context: BackgroundContext, _ held: HeldSaves) async throws {
        held.block()
        let saving = Task { try await context.perform(andSave: .durable) { _ = $0.makeTrack("y") } }
        try await held.queued(1)
        try await context.perform { try $0.incrementPlays(of: id) }
        held.release()
        try await saving.value
    }

    private static func faulty() async throws -> (FaultyStore, PersistentContainer) {
        let store = FaultyStore(schema: Music.model.storeSchema)
        return (store, try await PersistentContainer(model: Music.model, store: StoreDescription(name: "faulty") { _ in store }))
    }

    // MARK: A child's save moves its parent

    @Test(arguments: [Durability.durable, .deferred(within: .seconds(600))])
    func `S100: a child's save does not hide from its root what another process has saved`(_ durability: Durability) async throws
    {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let id = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        // While the root rests, so that its first read acquires a later snapshot of the same saves.
        try store.updateElsewhere(id, entity: "Track", property: "plays", to: .int(1))
        try await root.perform { context in
            #expect(try context.existingObject(with: id)["plays"] == .int(1))
            try context.incrementPlays(of: id)
        }
        try store.updateElsewhere(id, entity: "Track", property: "plays", to: .int(2))
        let child = await root.newBackgroundChild(name: "child")
        await child.perform { _ = $0.makeTrack("y") }
        try await child.save()
        await #expect(throws: SaveError.self) { try await root.save(durability) }
    }

    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], [StoreKind.sqlite])
    func `S100: saves of another connection are conflicts below the root of main`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let other = await (try await bed.container(.siblings)).makeBackgroundContext()
        let mine = try await bed.container(stack)
        // Created before the next save, so that it acquires its snapshot later.
        _ = mine.mainContext
        let track = try await other.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        try mine.mainContext.incrementPlays(of: track)
        try await other.perform(andSave: .durable) { try $0.incrementPlays(of: track) }
        if stack == .nested {
            let worker = mine.newBackgroundContext(name: "worker")
            await worker.perform { _ = $0.makeTrack("y") }
            await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        }
        await #expect(throws: SaveError.self) { try await mine.mainContext.save(through: .store) }
        mine.mainContext.rollback()
        mine.mainContext.refreshAllObjects()
        try mine.mainContext.incrementPlays(of: track)
        try await mine.mainContext.save(through: .store)
        let plays = try await mine.newBatchOperationContext().perform { try $0.existingObject(with: track)["plays"] }
        #expect(plays == .int(2))
    }

    /// Catches: a snapshot after a flush counts as changed by others, because what the flush wrote is missing from the view before it.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], StoreKind.allCases)
    func `S068: a flush between a child's read and its save is no conflict`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(stack)
        let main = container.mainContext
        let (track, other) = (main.makeTrack("x").objectID, main.makeTrack("y").objectID)
        try await main.save(through: .store)
        try main.incrementPlays(of: track)
        try await main.save(through: .store, .deferred(within: .seconds(600)))
        let child = container.newBackgroundContext(name: "child")
        try await child.perform { context in
            #expect(try context.existingObject(with: other)["title"] == "y")
            try context.incrementPlays(of: track)
        }
        try await container.flush()
        main.refreshAllObjects()
        #expect(try main.existingObject(with: other)["title"] == "y")
        try await child.save(through: .store)
        #expect(try main.existingObject(with: track)["plays"] == .int(2))
    }

    /// Catches: the hidden root of main merges although main does not.
    @MainActor @Test(arguments: ContextStack.allCases, StoreKind.allCases)
    func `S100: a save that a main context without automatic merges has not read is a conflict`(
        _ stack: ContextStack, _ kind: StoreKind
    ) async throws {
        let held = try await HeldSaves(kind, stack)
        let main = held.container.mainContext
        main.automaticallyMergesChanges = false
        main.refreshAllObjects()
        #expect(try main.existingObject(with: held.track)["plays"] == .int(0))
        try await held.setPlays(1)
        try main.incrementPlays(of: held.track)
        await #expect(throws: SaveError.self) { try await main.save(through: .store) }
        main.rollback()
        main.refreshAllObjects()
        try main.incrementPlays(of: held.track)
        try await main.save(through: .store)
        main.automaticallyMergesChanges = true
        try await held.setPlays(5)
        let worker = held.container.newBackgroundContext(name: "worker")
        await worker.perform { _ = $0.makeTrack("y") }
        try await worker.save(through: .store)
        #expect(try main.existingObject(with: held.track)["plays"] == .int(5))
    }

    enum Between: CaseIterable { case save, refresh, automaticMerge, saveOfTheSame }

    /// Catches: the end of a parent's save hides from its root what others saved after a child had read it.
    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], Between.allCases)
    func `S100: a child that reads a state from before its parent's save is in conflict with what the parent has not merged`(
        _ stack: ContextStack, _ between: Between
    ) async throws {
        for kind in StoreKind.allCases {
            let held = try await HeldSaves(kind, stack)
            let main = held.container.mainContext
            let worker = held.container.newBackgroundContext(name: "worker")
            #expect(try await worker.perform { try $0.existingObject(with: held.track)["plays"] } == .int(0))
            switch between {
            case .save:
                try await held.setPlays(1)
                main.makeTrack("y")
            case .refresh:
                try await held.setPlays(1)
                main.refreshAllObjects()
                main.makeTrack("y")
            case .automaticMerge:
                main.automaticallyMergesChanges = true
                try await held.setPlays(1)
                main.makeTrack("y")
            case .saveOfTheSame: try main.incrementPlays(of: held.track)
            }
            try await main.save(through: .store)
            try await worker.perform { try $0.incrementPlays(of: held.track) }
            if between == .save {
                await #expect(throws: SaveError.self, "\(kind)") { try await worker.save(through: .store) }
                try await worker.save()
                await #expect(throws: SaveError.self, "\(kind)") { try await main.save(through: .store) }
                main.refreshAllObjects()
                try await main.save(through: .store)
            } else {
                try await worker.save(through: .store)
            }
        }
    }

    /// Catches: a child that continues from a snapshot which has one more save than its own, and edits over it.
    @Test func `S100: a save that another process makes just after a child's commit is a conflict`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        let child = await root.newBackgroundChild(name: "child")
        #expect(try await child.perform { try $0.existingObject(with: track)["plays"] } == .int(0))
        let (hasCommitted, mayPublish) = (Flag(), Flag())
        store.afterCommit {
            hasCommitted.set()
            _ = mayPublish.wait(atMost: .seconds(600))
        }
        await child.perform { _ = $0.makeTrack("y") }
        let saving = Task { try await child.save(through: .store) }
        try await until("the commit is in the file") { hasCommitted.wait(atMost: .zero) }
        try await child.perform { try $0.incrementPlays(of: track) }
        try store.updateElsewhere(track, entity: "Track", property: "plays", to: .int(5))
        mayPublish.set()
        try await saving.value
        store.afterCommit(nil)
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
    }

    /// Catches: an update of an object that only the snapshot after the save lacks, which the next save drops without an error.
    @Test(arguments: [PolicyKind.error, .overwrite])
    func `S100, S106: a deletion by another process just after a commit meets an update made meanwhile`(
        _ policy: PolicyKind
    ) async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let coordinator = try PersistentStoreCoordinator.music(store, SteppedClock())
        let root = coordinator.newBackgroundContext(name: "root")
        let track = try await root.perform(andSave: .durable) { $0.makeTrack("x").objectID }
        try await root.perform { context in
            context.mergePolicy = policy.mergePolicy
            let object = try context.existingObject(with: track)
            #expect(object["plays"] == .int(0))
            context.makeTrack("y")
        }
        let (hasCommitted, mayPublish) = (Flag(), Flag())
        store.afterCommit {
            hasCommitted.set()
            _ = mayPublish.wait(atMost: .seconds(600))
        }
        let saving = Task { try await root.save() }
        try await until("the commit is in the file") { hasCommitted.wait(atMost: .zero) }
        try await root.perform { try $0.incrementPlays(of: track) }
        try store.updateElsewhere(track, entity: "Track", property: "title", to: nil)
        mayPublish.set()
        try await saving.value
        store.afterCommit(nil)
        if policy == .error { await #expect(throws: SaveError.self) { try await root.save() } }
        if policy == .overwrite { try await root.save() }
        #expect(try await coordinator.titles() == (policy == .overwrite ? ["x", "y"] : ["y"]))
    }

    // MARK: The end of a save moves the context

    @Test(arguments: StoreKind.allCases)
    func `S100: an increment made during a save is a conflict with a save before it`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        #expect(try await a.perform { try $0.existingObject(with: track)["plays"] } == .int(0))
        try await held.setPlays(1)
        try await Self.increment(track, duringSaveOf: a, held)
        await #expect(throws: SaveError.self) { try await a.save() }
    }

    @Test(arguments: StoreKind.allCases)
    func `S100: changes made during a save are no conflict with the save itself`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        let b = await held.container.makeBackgroundContext(name: "b")
        try await a.perform { try $0.incrementPlays(of: track) }
        try await b.perform(andSave: .durable) { _ = $0.makeTrack("z") }
        held.block()
        let saving = Task { try await a.save() }
        try await held.queued(1)
        try await a.perform { try $0.incrementPlays(of: track) }
        held.release()
        try await saving.value
        try await a.save()
        let plays = try await held.container.makeBackgroundContext().perform { try $0.existingObject(with: track)["plays"] }
        #expect(plays == .int(2))
    }

    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], [StoreKind.lmdb, .sqlite])
    func `S100: main is edited while a save passes through it`(_ stack: ContextStack, _ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind, stack)
        let container = held.container
        let track = try container.mainContext.existingObject(with: held.track)
        #expect(track["plays"] == .int(0))
        let worker = container.newBackgroundContext(name: "worker")
        await worker.perform { _ = $0.makeTrack("y") }
        try await held.setPlays(1)
        held.block()
        let saving = Task { try await worker.save(through: .store) }
        try await held.queued(1)
        try container.mainContext.incrementPlays(of: held.track)
        #expect(track["plays"] == .int(1))
        held.release()
        try await saving.value
        await #expect(throws: SaveError.self) { try await container.mainContext.save(through: .store) }
    }

    @MainActor @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S100: main below a root is edited during its own save`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind, .masterMainWorker)
        let main = held.container.mainContext
        #expect(try main.existingObject(with: held.track)["plays"] == .int(0))
        try await held.setPlays(1)
        _ = main.makeTrack("y")
        held.block()
        let saving = Task { try await main.save(through: .store) }
        try await held.queued(1)
        try main.incrementPlays(of: held.track)
        held.release()
        try await saving.value
        await #expect(throws: SaveError.self) { try await main.save(through: .store) }
    }

    /// Adds what both sides added to the plays.
    private static let sum = MergePolicy.custom { conflicts in
        conflicts.reduce(into: [:]) { answers, conflict in
            guard let plays = conflict.properties.first(where: { $0.name == "plays" }), case .int(let base) = plays.base,
                case .int(let ours) = plays.ours, case .int(let theirs) = plays.theirs
            else { return }
            answers[conflict.objectID] = .values(["plays": .int(theirs + ours - base)])
        }
    }

    /// Catches: the conflict has the newer value as its base, so that our change looks like none.
    @Test(arguments: StoreKind.allCases)
    func `S109: the base of a conflict is the value over which a context made its change`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        await a.perform { context in
            context.automaticallyMergesChanges = false
            context.mergePolicy = Self.sum
        }
        #expect(try await a.perform { try $0.existingObject(with: track)["plays"] } == .int(0))
        let child = await a.newBackgroundChild(name: "child")
        #expect(try await child.perform { try $0.existingObject(with: track)["plays"] } == .int(0))
        try await held.setPlays(10)
        try await Self.increment(track, duringSaveOf: a, held)
        try await a.save()
        #expect(try await a.perform { try $0.existingObject(with: track)["plays"] } == .int(11))
        try await child.perform { try $0.incrementPlays(of: track) }
        // The child's value wins over the one that its parent has saved.
        try await child.save(through: .store)
        await a.perform { $0.refreshAllObjects() }
        try await child.refreshFromParent()
        try await held.setPlays(20)
        try await a.perform(andSave: .durable) { _ = $0.makeTrack("z") }
        let before = try await child.perform { context -> Int in
            try context.incrementPlays(of: track)
            guard case .int(let plays) = try context.existingObject(with: track)["plays"] else { return -1 }
            return Int(plays)
        }
        #expect(before > 0 && before < 20)
        try await child.save(through: .store)
        #expect(try await a.perform { try $0.existingObject(with: track)["plays"] } == .int(21))
    }

    // MARK: Merges

    /// The ways in which a program merges what its context shows already.
    enum Merge: CaseIterable { case refreshDuringTheNextSave, automaticMerges, mergeOfTheSave }

    @Test(arguments: StoreKind.allCases, Merge.allCases)
    func `S091: a save that a context has read during its own save is no conflict once it is merged`(
        _ kind: StoreKind, _ merge: Merge
    ) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        await a.perform { $0.automaticallyMergesChanges = false }
        #expect(try await a.perform { try $0.existingObject(with: track)["plays"] } == .int(0))
        let other = await held.container.makeBackgroundContext(name: "other")
        let saved = Mutex<ChangeSet?>(nil)
        await other.perform { context in
            _ = context.addObserver { notice in if notice.kind == .didSave { saved.withLock { $0 = notice.changes } } }
        }
        try await other.perform(andSave: .durable) { try $0.incrementPlays(of: track) }
        try await Self.increment(track, duringSaveOf: a, held)
        switch merge {
        case .refreshDuringTheNextSave:
            held.block()
            let next = Task { try await a.save() }
            try await held.queued(1)
            await a.perform { $0.refreshAllObjects() }
            held.release()
            await #expect(throws: SaveError.self) { try await next.value }
        case .automaticMerges: await a.perform { $0.automaticallyMergesChanges = true }
        case .mergeOfTheSave:
            let changes = try #require(saved.withLock { $0 })
            await a.perform { $0.mergeChanges(from: changes) }
        }
        try await a.save()
    }

    // MARK: Objects that are missing after a save

    enum Outcome: CaseIterable {
        case refused, writtenAgain, writtenAgainWhole, dropped

        var policy: MergePolicy {
            switch self {
            case .refused: .error
            case .writtenAgain: .objectTrump
            case .writtenAgainWhole: .overwrite
            case .dropped: .storeTrump
            }
        }
    }

    @Test(arguments: StoreKind.allCases, Outcome.allCases)
    func `S106: an object that a running save inserts is changed here, and deleted by the next save`(
        _ kind: StoreKind, _ outcome: Outcome
    ) async throws {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        held.block()
        let saving = Task {
            try await a.perform(andSave: .durable) { context in
                context.mergePolicy = outcome.policy
                return context.makeArtist("new").objectID
            }
        }
        try await held.queued(1)
        let deleting = Task { try await held.container.coordinator.batchDelete(EntityFetchRequest("Artist")) }
        try await held.queued(2)
        await a.perform { context in
            for object in context.registeredObjects { object["born"] = .int(1970) }
        }
        held.release()
        let id = try await saving.value
        _ = try await deleting.value
        if outcome == .refused {
            await #expect(throws: SaveError.self) { try await a.save() }
        } else {
            try await a.save()
        }
        let values = await held.container.makeBackgroundContext().perform { context in
            (try? context.existingObject(with: id)).map { [$0["name"], $0["born"]] }
        }
        let isWritten = outcome == .writtenAgain || outcome == .writtenAgainWhole
        #expect(values == (isWritten ? [.string("new"), .int(1970)] : nil))
        #expect(try isWritten || held.updates(of: id) == 0)
    }

    @Test(arguments: StoreKind.allCases, [MergePolicy.storeTrump, .rollback, .objectTrump, .overwrite])
    func `S108: an update of an insertion that the policy drops is dropped with it`(_ kind: StoreKind, _ policy: MergePolicy)
        async throws
    {
        let held = try await HeldSaves(kind)
        let a = await held.container.makeBackgroundContext(name: "a")
        held.block()
        let saving = Task {
            try await a.perform(andSave: .durable) { context in
                context.mergePolicy = policy
                let track = context.makeTrack("new")
                track["isrc"] = .string("A")  // the isrc of the saved track
                return track.objectID
            }
        }
        try await held.queued(1)
        await a.perform { context in for object in context.registeredObjects { object["title"] = .string("newer") } }
        held.release()
        let id = try await saving.value
        #expect(await !a.perform { $0.hasChanges })
        try await a.save()
        #expect(try held.updates(of: id) == 0)
    }

    // MARK: Checks that a save does not forget

    @Test(arguments: StoreKind.allCases)
    func `S100: an object that is watched during a save is checked by the next one`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        held.block()
        let saving = Task { try await a.perform(andSave: .durable) { _ = $0.makeTrack("y") } }
        try await held.queued(1)
        try await a.perform { context in
            context.detectConflicts(for: try context.existingObject(with: track))
            _ = context.makeTrack("z")
        }
        held.release()
        try await saving.value
        try await held.setPlays(1)
        await #expect(throws: SaveError.self) { try await a.save() }
    }

    @Test(arguments: StoreKind.allCases)
    func `S049: an object that was watched before a reset is no conflict afterwards`(_ kind: StoreKind) async throws {
        let held = try await HeldSaves(kind)
        let track = held.track
        let a = await held.container.makeBackgroundContext(name: "a")
        try await a.perform { context in
            context.automaticallyMergesChanges = false
            context.detectConflicts(for: try context.existingObject(with: track))
            context.reset()
            _ = context.makeTrack("y")
        }
        try await held.setPlays(1)
        try await a.save()
    }

    @Test(arguments: [7, nil] as [Int64?])
    func `S167: an unchanged object that is watched is checked after a suspension`(_ plays: Int64?) async throws {
        let (store, container) = try await Self.faulty()
        let context = container.coordinator.newBackgroundContext()
        let id = try await context.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        try await context.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track["plays"] == .int(0))
            context.detectConflicts(for: track)
            context.makeTrack("b")
        }
        try await container.suspend()
        try store.updateElsewhere(id, entity: "Track", property: "plays", to: plays.map(Value.int))
        await container.resume()
        await #expect(throws: SaveError.self) { try await context.save() }
        try await container.close()
    }

    enum Step: CaseIterable { case mergeOfAnOldSave, refreshInAChild, saveOfAChildDuringASave, rollbackDuringASave }

    @Test(arguments: Step.allCases) func `S167: a conflict after a suspension is not forgotten`(_ step: Step) async throws {
        let (store, container) = try await Self.faulty()
        let writer = container.coordinator.writer
        let root = container.coordinator.newBackgroundContext(name: "root")
        let old = Mutex<ChangeSet?>(nil)
        await root.perform { context in
            _ = context.addObserver { notice in if notice.kind == .didSave { old.withLock { $0 = notice.changes } } }
        }
        let id = try await root.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        let isInChild = step == .refreshInAChild || step == .saveOfAChildDuringASave
        let context = isInChild ? await root.newBackgroundChild(name: "child") : root
        try await context.perform { try $0.existingObject(with: id)["plays"] = .int(1) }
        try await container.suspend()
        try store.updateElsewhere(id, entity: "Track", property: "plays", to: .int(7))
        await container.resume()
        let gate = DispatchSemaphore(value: 0)
        func holdSave(of context: BackgroundContext) async throws -> Task<Void, any Error> {
            writer.queue.async { gate.wait() }
            let saving = Task { try await context.save() }
            try await until("the save waits") { writer.shared.withLock { $0.waiting.count } == 1 }
            return saving
        }
        switch step {
        case .mergeOfAnOldSave:
            let changes = try #require(old.withLock { $0 })
            await context.perform { $0.mergeChanges(from: changes) }
        case .refreshInAChild: await context.perform { $0.refreshAllObjects() }
        case .saveOfAChildDuringASave:
            await root.perform { _ = $0.makeTrack("b") }
            let saving = try await holdSave(of: root)
            try await context.save()
            gate.signal()
            try await saving.value
        case .rollbackDuringASave:
            let saving = try await holdSave(of: context)
            await context.perform { $0.rollback() }
            gate.signal()
            await #expect(throws: SaveError.self) { try await saving.value }
        }
        let saved = step == .saveOfAChildDuringASave ? root : context
        await #expect(throws: SaveError.self) { try await saved.save(through: .store) }
        try await container.close()
    }

    @Test func `S167: an object whose changes are dropped is in no conflict afterwards`() async throws {
        let (store, container) = try await Self.faulty()
        let root = container.coordinator.newBackgroundContext(name: "root")
        let id = try await root.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        let child = await root.newBackgroundChild(name: "child")
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(1) }
        try await container.suspend()
        try store.updateElsewhere(id, entity: "Track", property: "plays", to: .int(7))
        await container.resume()
        try await child.perform { context in
            let track = try context.existingObject(with: id)
            context.refresh(track, mergeChanges: false)
            #expect(track["plays"] == .int(7))
            track["plays"] = .int(8)
        }
        try await child.save(through: .store)
        try await container.close()
    }
}
