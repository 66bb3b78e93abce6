import Dispatch
import Foundation
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// Suspensions that fail, and work that a suspension interrupts (S167).
@Suite struct SuspensionFailureTests {
    /// Keeps a context, which its executor alone uses.
    private final class Kept: @unchecked Sendable {
        private let context: ManagedObjectContext

        init(_ context: ManagedObjectContext) { self.context = context }
    }

    /// Catches: a check of the snapshot budget that opens a suspended file, which nothing closes again.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: a check of the snapshot budget leaves a suspended store closed`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.coordinator.newBackgroundContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        try await container.suspend()
        container.coordinator.snapshotBudget = SnapshotBudget(maximumAge: .zero)
        let budget = container.coordinator.writer.snapshotRegistry.budget
        try await until("the budget is checked") { !budget.withLock { $0.isResting } }
        await withCheckedContinuation { checked in budget.queue.async { checked.resume() } }
        #if os(Linux)
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
            }
            #expect(!open.contains(bed.file.path))
        #endif
        await container.resume()
        #expect(try await container.coordinator.titles() == ["a"])
        try await container.close()
    }

    /// Catches: a container that keeps later saves waiting after a suspension that failed.
    @Test func `S167: if a deferred save cannot be written, the container is not suspended and keeps the save`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let context = container.coordinator.newBackgroundContext()
        await context.perform { _ = $0.makeTrack("a") }
        try await context.save(.deferred(within: .seconds(600)))
        let diskFull = StoreError(.full, "the disk is full. Make room")
        store.fail { call, _ in call == .commit ? diskFull : nil }
        await #expect(throws: diskFull) { try await container.suspend() }
        #expect(!container.coordinator.writer.suspension.isClosed)
        store.fail(nil)
        await context.perform { _ = $0.makeTrack("b") }
        try await context.save()
        try await container.suspend()
        #expect(container.coordinator.writer.suspension.isClosed)
        await container.resume()
        #expect(try await container.coordinator.titles().sorted() == ["a", "b"])
        try await container.close()
    }

    /// Catches: a child that keeps the old snapshot of its parent, because it was made after the suspension had listed the contexts.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S167: a child that is made while the contexts are being suspended releases its snapshot too`(
        _ kind: StoreKind, _ isInBackground: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let coordinator = container.coordinator
        let other = coordinator.newBackgroundContext()
        let parent = coordinator.newBackgroundContext()
        let id = await parent.perform { $0.makeTrack("a", plays: 1).objectID }
        try await parent.save()
        // The suspension has listed the contexts when it suspends one of them.
        let (isListed, isMaking) = (Flag(), Flag())
        let children = Mutex<[any Sendable]>([])
        let making = Task {
            try await parent.perform { context throws in
                isMaking.set()
                #expect(isListed.wait(atMost: .seconds(300)))
                #expect(try context.existingObject(with: id)["plays"] == .int(1))
                if isInBackground {
                    let child = context.newBackgroundChild()
                    children.withLock { $0 = [child] }
                } else {
                    let child = context.newChild()
                    #expect(try child.existingObject(with: id)["plays"] == .int(1))
                    children.withLock { $0 = [Kept(child)] }
                }
            }
        }
        try await until("the parent is in use") { isMaking.wait(atMost: .zero) }
        let suspension = Task { try await container.suspend() }
        while !isListed.wait(atMost: .zero) {
            other.enqueue { if $0.phase.suspended != nil { isListed.set() } }
            await Task.yield()
        }
        try await making.value
        try await suspension.value
        await container.resume()
        #expect(try await parent.perform { try $0.existingObject(with: id)["plays"] } == .int(1))
        await parent.perform { _ in children.withLock { $0 = [] } }
        try await container.close()
    }

    /// Catches: a merge that waits for the end of its frame and then opens the file for the main context, although the store is suspended.
    @Test func `S167: a merge that is due while the store is suspended reads nothing`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let clock = SteppedClock()
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let shown = coordinator.newBackgroundContext()
        await shown.perform { context in
            context.automaticallyMergesChanges = true
            context.place.readsNextState.store(true, ordering: .relaxed)
        }
        let worker = coordinator.newBackgroundContext()
        for title in ["a", "b", "c"] {
            await worker.perform { _ = $0.makeTrack(title) }
            try await worker.save()
            // The merge that the save has sent runs first, so that the next save sends another one.
            await shown.perform { _ in }
        }
        #expect(clock.waitingCount > 0)
        await coordinator.writer.suspension.close()
        try await coordinator.writer.suspendReads(within: .seconds(60))
        let count = store.count(.snapshot)
        clock.advance(by: .milliseconds(9))
        #expect(store.count(.snapshot) == count)
        withExtendedLifetime(shown) {}
        await coordinator.writer.resume()
        #expect(try await coordinator.titles().sorted() == ["a", "b", "c"])
    }

    /// Catches: work that goes on during the suspension, and so opens the file again, or that never goes on afterwards.
    @Test func `S167: work that opening has left for later waits while the container is suspended`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let clock = SteppedClock()
        let steps = Atomic(0)
        let mayEnd = Flag()
        store.migrate {
            steps.add(1, ordering: .relaxed)
            return mayEnd.wait(atMost: .zero) ? nil : MigrationProgress(activity: "work of the test", completed: 0, total: 1)
        }
        // The container shares the writer of this coordinator, and so its clock.
        let coordinator = try PersistentStoreCoordinator.music(store, clock)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let writer = coordinator.writer
        // The first step has run before this, and the next one waits for the clock.
        try await writer.onDisk { _ in }
        try await container.suspend()
        #expect(steps.load(ordering: .relaxed) == 1)
        clock.advance(by: StoreWriter.migrationPause)
        let isWaiting = writer.migration.withLock { $0.isSuspended }
        #expect(isWaiting)
        let waiting = Task { try await container.coordinator.finishMigration() }
        try await until("its end is awaited") { writer.migration.withLock { $0.waiting.count == 1 } }
        // A step that wrongly does not wait would be on the disk queue already, and so run before this.
        try await writer.onDisk { _ in }
        #expect(steps.load(ordering: .relaxed) == 1)
        mayEnd.set()
        await container.resume()
        try await waiting.value
        #expect(steps.load(ordering: .relaxed) == 2)
        try await container.close()
    }

    // MARK: Saves that a suspension overtakes

    /// A writer with one saved track, and a gate in front of the next save.
    private struct Overtaken {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let clock = SteppedClock()
        let coordinator: PersistentStoreCoordinator
        let context: BackgroundContext
        let track: ObjectID

        init() async throws {
            coordinator = try PersistentStoreCoordinator.music(store, clock)
            context = coordinator.newBackgroundContext()
            track = try await context.perform(andSave: .durable) { $0.makeTrack("a").objectID }
        }

        var writer: StoreWriter { coordinator.writer }

        /// Whether no other process can commit before saves of this one.
        var holdsBack: Bool { store.heldClaims == 1 }

        /// Saves the plays of the track as another process does.
        func saveElsewhere(plays: Int64) throws {
            let entity = try #require(Music.model.entity(named: "Track"))
            let layer = Layer(schema: Music.model.storeSchema)
            let row = Row.make(kind: .update, layer: layer.id, columnCount: entity.columns.count)
            row[Music.column("Track", "plays")] = .int(plays)
            layer.put(row, entity: entity.number, key: track.key)
            try store.saveElsewhere(layer)
        }

        func storedPlays() throws -> Value? {
            try store.snapshot().value(track.entity, key: track.key, column: Music.column("Track", "plays"))
        }
    }

    /// Catches: a save that is accepted after the suspension has written the others. The claim is released below it, and it overwrites what
    /// another process saves during the suspension.
    @Test func `S167: a synchronous save that a suspension overtakes throws, and is a conflict afterwards`() async throws {
        let overtaken = try await Overtaken()
        let (writer, id) = (overtaken.writer, overtaken.track)
        let isClosed = Flag()
        let code = try await overtaken.context.perform { context -> StoreError.Code? in
            let token = context.observe { notice in
                guard notice.kind == .willSave else { return }
                Task.detached {
                    await writer.suspension.close()
                    try await writer.finishSaves()
                    isClosed.set()
                }
                #expect(isClosed.wait(atMost: .seconds(600)))
            }
            defer { token.cancel() }
            try context.existingObject(with: id)["plays"] = .int(1)
            do { try context.saveNow(.deferred(within: .seconds(600))) } catch { return (error as? StoreError)?.code }
            return nil
        }
        #expect(code == .suspended)
        try await writer.suspendReads(within: .seconds(60))
        #expect(writer.state.pendingSaves == 0 && !overtaken.holdsBack)
        try overtaken.saveElsewhere(plays: 7)
        await writer.resume()
        await #expect(throws: SaveError.self) { try await overtaken.context.save() }
        try await overtaken.coordinator.flush()
        #expect(try overtaken.storedPlays() == .int(7))
    }

    /// Catches: a batch that is accepted after the suspension has written the saves.
    @Test func `S167: a suspension waits for a synchronous batch that has begun, and writes it`() async throws {
        let overtaken = try await Overtaken()
        let (writer, coordinator) = (overtaken.writer, overtaken.coordinator)
        let (hasBegun, mayEnd) = (Flag(), Flag())
        overtaken.store.fail { call, _ in
            if call == .isReadOnly, !hasBegun.wait(atMost: .zero) {
                hasBegun.set()
                #expect(mayEnd.wait(atMost: .seconds(600)))
            }
            return nil
        }
        async let batch = DispatchQueue.blocking {
            var options = BatchOptions()
            options.durability = .deferred(within: .seconds(600))
            return try coordinator.batchDeleteNow(EntityFetchRequest("Track"), options: options)
        }
        try await until("the batch has begun") { hasBegun.wait(atMost: .zero) }
        let suspending = Task {
            await writer.suspension.close()
            try await writer.finishSaves()
            try await writer.suspendReads(within: .seconds(60))
        }
        try await until("saves wait") { writer.suspension.isClosed }
        #expect(!writer.suspension.isSuspended)
        mayEnd.set()
        _ = try await batch
        try await suspending.value
        #expect(writer.state.pendingSaves == 0 && !overtaken.holdsBack)
        #expect(try overtaken.store.snapshot().count(Music.query("Track")) == 0)
        await writer.resume()
    }

    /// Catches: a suspension that goes on after the container was resumed, and releases the claim below saves that have passed since.
    @Test func `S167: resuming a container that is being suspended takes effect after the suspension`() async throws {
        let overtaken = try await Overtaken()
        let store = overtaken.store
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let writer = overtaken.writer
        let (hasBegun, mayEnd) = (Flag(), Flag())
        async let overtakenSave: StoreError.Code? = DispatchQueue.blocking {
            let context = container.makeConfinedContext()
            let token = context.observe { notice in
                guard notice.kind == .willSave else { return }
                hasBegun.set()
                #expect(mayEnd.wait(atMost: .seconds(600)))
            }
            defer { token.cancel() }
            context.makeTrack("confined")
            do { try context.saveNow(.deferred(within: .seconds(600))) } catch { return (error as? StoreError)?.code }
            return nil
        }
        try await until("a save runs") { hasBegun.wait(atMost: .zero) }
        let suspending = Task { try await container.suspend(within: .seconds(600)) }
        try await until("saves wait") { writer.suspension.isClosed }
        let other = container.newBatchOperationContext()
        let saving = Task { try await other.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack("b") } }
        let resuming = Task { await container.resume() }
        try await until("the save and the resumption wait, or the container is resumed") {
            (writer.suspension.waitingCount == 1 && writer.suspension.isTurnWanted) || !writer.suspension.isClosed
        }
        #expect(writer.suspension.isClosed)
        mayEnd.set()
        #expect(try await overtakenSave == .suspended)
        try await suspending.value
        await resuming.value
        try await saving.value
        #expect(!writer.suspension.isClosed && writer.state.pendingSaves == 1 && overtaken.holdsBack)
        #expect(await overtaken.context.perform { $0.phase.suspended == nil })
        try await container.close()
    }

    /// Catches: a save that throws `.closed` although the container stays open.
    @Test func `S167: a save that waits for a suspension goes on waiting if the container cannot be closed`() async throws {
        let store = FaultyStore(schema: Music.model.storeSchema)
        let container = try await PersistentContainer(
            model: Music.model, store: StoreDescription(name: "faulty") { _ in store })
        let context = container.coordinator.newBackgroundContext()
        try await context.perform(andSave: .deferred(within: .seconds(600))) { _ = $0.makeTrack("a") }
        let writer = container.coordinator.writer
        // A running save delays the suspension, which has written nothing yet.
        #expect(writer.suspension.enterIfOpen())
        let suspending = Task { try await container.suspend() }
        try await until("saves wait") { writer.suspension.isClosed }
        let saving = Task { try await context.perform(andSave: .durable) { _ = $0.makeTrack("b") } }
        try await until("the save waits") { writer.suspension.waitingCount == 1 }
        let diskFull = StoreError(.full, "the disk is full. Make room")
        store.fail { call, _ in call == .commit ? diskFull : nil }
        await #expect(throws: diskFull) { try await container.close() }
        #expect(writer.suspension.waitingCount == 1)
        store.fail(nil)
        writer.suspension.leave()
        try await suspending.value
        await container.resume()
        try await saving.value
        #expect(try await container.coordinator.titles() == ["a", "b"])
        try await container.close()
    }

    /// Catches: a parent that has released its snapshot, and takes the one of its child for the rest of the suspension.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S167: a child's save that began before the suspension does not open the file again`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("a") }
        let parent = container.coordinator.newBackgroundContext()
        let child = await parent.perform { $0.newBackgroundChild() }
        let (begun, mayEnd) = (Flag(), Flag())
        let token = try await child.perform { context throws in
            let titles = try context.trackTitles()
            #expect(titles == ["a"])
            context.makeTrack("b")
            return context.observe { notice in
                guard notice.kind == .willSave else { return }
                begun.set()
                _ = mayEnd.wait(atMost: .seconds(600))
            }
        }
        async let saving: Void = child.save()
        try await until("the save has begun") { begun.wait(atMost: .zero) }
        async let suspending: Void = container.suspend()
        try await until("the parent is suspended") { await parent.perform { $0.phase.isSuspended } }
        mayEnd.set()
        try await saving
        try await suspending
        await container.resume()
        #expect(try await parent.perform { try $0.trackTitles().sorted() } == ["a", "b"])
        await child.perform { _ in token.cancel() }
        try await container.close()
    }
}
