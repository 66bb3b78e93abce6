import Foundation
import ObjectGraph
import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct SavingNowTests {
    private struct Refused: Error {}

    @Test(arguments: Combination.all)
    func `what the main context saves synchronously is seen by every read that begins afterwards`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let isRoot = await MainActor.run { container.mainContext.persistentStoreCoordinator != nil }
        let notices = Counter()
        let error = await MainActor.run {
            let context = container.mainContext
            _ = context.addObserver { notices.note($0) }
            context.makeTrack("main")
            do {
                try context.saveNow()
                return nil as StoreError?
            } catch { return error as? StoreError }
        }
        guard isRoot else {
            #expect(error?.code == .unsupported)
            #expect(await MainActor.run { container.mainContext.hasChanges })
            return
        }
        #expect(error == nil)
        #expect(notices.count(.willSave) == 1)
        #expect(notices.count(.didSave) == 1)
        #expect(await MainActor.run { !container.mainContext.hasChanges })
        let batch = container.newBatchOperationContext()
        #expect(try await batch.perform { try $0.trackTitles() } == ["main"])
        try container.flushNow()
        #expect(try container.coordinator.historyNow().count == 1)
    }

    @Test(arguments: Combination.rooted)
    func `a background context saves synchronously inside perform, and main merges it`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.makeBackgroundContext()
        try await worker.perform { context in
            context.makeTrack("a")
            try context.saveNow(.durable)
            context.makeTrack("b")
            try context.saveNow()
            #expect(!context.hasChanges)
        }
        #expect(try await MainActor.run { try container.mainContext.trackTitles() } == ["a", "b"])
    }

    @Test(arguments: Combination.parented)
    func `a child saves synchronously to a parent with the same executor, and to no other`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        try await MainActor.run {
            let sheet = container.mainContext.newChild()
            sheet.makeTrack("sheet")
            try sheet.saveNow()
            #expect(!sheet.hasChanges)
            #expect(try container.mainContext.trackTitles() == ["sheet"])
            #expect(container.mainContext.hasChanges)
        }
        let worker = await container.makeBackgroundContext()
        await worker.perform { context in
            context.makeTrack("worker")
            #expect(throws: StoreError.self) { try context.saveNow() }
            #expect(context.hasChanges)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `a synchronous save that is refused leaves context and store as they were`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        try await confined.onThread { context in
            context.makeTrack("first")["isrc"] = "1"
            try context.saveNow()
            context.makeTrack("second")["isrc"] = "1"
            #expect(throws: SaveError.self) { try context.saveNow() }
            #expect(context.insertedObjects.count == 1)
            context.insertedObjects.first.map { $0["isrc"] = "2" }
            try context.saveNow()
            #expect(try context.trackTitles() == ["first", "second"])
            // With nothing to save, nothing is written.
            try context.saveNow()
        }
        try container.flushNow()
        #expect(try container.coordinator.historyNow().count == 2)
    }

    #if DEBUG
        /// Catches: a save of the main thread that waits for the disk of an importer's save.
        @Test func `S066: on SQLite, a synchronous save does not wait for the sync of a durable save`() async throws {
            let bed = try TestBed(.sqlite)
            let container = try await bed.container()
            let importer = await container.makeBackgroundContext()
            let confined = Carrier(container)
            let folder = bed.folder.lastPathComponent
            let durable = try await confined.onThread { context in
                context.makeTrack("first")
                // The bound is long, so that no flush makes a sync first.
                try context.saveNow(.deferred(within: .seconds(600)))
                let (isHeld, mayEnd, ended) = (Flag(), Flag(), Flag())
                defer { mayEnd.set() }
                return try SystemFaults.withInjector({ call, path in
                    guard call == .sync, path.hasSuffix("-wal"), path.contains(folder) else { return nil }
                    isHeld.set()
                    _ = mayEnd.wait(atMost: .seconds(600))
                    return nil
                }) {
                    let durable = Task {
                        defer { ended.set() }
                        try await importer.perform(andSave: .durable) { _ = $0.makeTrack("durable") }
                    }
                    #expect(isHeld.wait(atMost: .seconds(600)))
                    context.makeTrack("second")
                    try context.saveNow()
                    #expect(try context.trackTitles().sorted() == ["durable", "first", "second"])
                    #expect(!ended.wait(atMost: .zero), "the durable save waits for the disk")
                    return durable
                }
            }
            try await durable.value
            let reader = await container.makeBackgroundContext()
            #expect(try await reader.perform { try $0.trackTitles().sorted() } == ["durable", "first", "second"])
        }
    #endif

    @Test(arguments: StoreKind.allCases)
    func `conflicts of synchronous saves follow the merge policy`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (one, two) = (Carrier(container, "one"), Carrier(container, "two"))
        let id = try await one.onThread { context in
            let track = context.makeTrack("base")
            try context.saveNow()
            return track.objectID
        }
        try await two.onThread { try $0.existingObject(with: id)["title"] = "two" }
        try await one.onThread { context in
            try context.existingObject(with: id)["title"] = "one"
            try context.saveNow()
        }
        try await two.onThread { context in
            #expect(throws: SaveError.self) { try context.saveNow() }
            context.mergePolicy = .objectTrump
            try context.saveNow()
        }
        #expect(try await one.onThread { try $0.trackTitles() } == ["two"])
    }

    @Test(arguments: StoreKind.allCases)
    func `a synchronous save from inside a save of the same context throws`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let confined = Carrier(try await bed.container())
        try await confined.onThread { context in
            let errors = Counter()
            unowned let context = context
            _ = context.addObserver { notice in
                guard notice.kind == .willSave else { return }
                #expect(throws: StoreError.self) { try context.saveNow() }
                errors.note(notice)
            }
            context.makeTrack("a")
            try context.saveNow()
            #expect(errors.count(.willSave) == 1)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `the hook of unsaved changes is called once per stretch of changes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.nested)
        try await Self.countStretches(in: container)
    }

    @MainActor private static func countStretches(in container: PersistentContainer) async throws {
        let context = container.mainContext
        let count = Atomic(0)
        context.onFirstUnsavedChange = { count.add(1, ordering: .relaxed) }
        context.makeTrack("a")
        context.makeTrack("b")
        #expect(count.load(ordering: .relaxed) == 1)
        try context.saveNow()
        #expect(count.load(ordering: .relaxed) == 1)
        let track = try #require(try context.objects("Track").first)
        track["title"] = "c"
        track["plays"] = 3
        #expect(count.load(ordering: .relaxed) == 2)
        context.rollback()
        let playlist = context.insert("Playlist")
        #expect(count.load(ordering: .relaxed) == 3)
        try await context.save()
        playlist.setRelatedObjects("tracks", to: [track])
        #expect(count.load(ordering: .relaxed) == 4)
        context.delete(track)
        context.reset()
        // The save of a child brings unsaved changes.
        let worker = container.newBackgroundContext()
        try await worker.perform(andSave: .deferred) { _ = $0.makeTrack("child") }
        #expect(count.load(ordering: .relaxed) == 5)
        context.onFirstUnsavedChange = nil
        try context.saveNow()
        context.makeTrack("d")
        #expect(count.load(ordering: .relaxed) == 5)
    }

    @Test(arguments: StoreKind.allCases)
    func `a batch deletion and a deletion of history run synchronously`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let confined = Carrier(container)
        try await confined.onThread { context in
            for number in 0..<10 { context.makeTrack("\(number)") }
            try context.saveNow()
        }
        let result = try container.coordinator.batchDeleteNow(EntityFetchRequest("Track"))
        #expect(result.changes.isEmpty == false)
        #expect(try await confined.onThread { try $0.trackTitles() } == [])
        try container.flushNow()
        let all = try container.coordinator.historyNow()
        #expect(all.count == 2)
        #expect(try await container.coordinator.history().map(\.id) == all.map(\.id))
        #expect(try container.coordinator.deleteHistoryNow(before: try #require(all.first).token) == 1)
        #expect(try container.coordinator.deleteHistoryNow(before: .distantFuture) == 1)
    }
}
