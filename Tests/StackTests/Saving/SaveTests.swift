import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct SaveTests {
    @Test(arguments: Combination.all)
    func S060_noticesComeBeforeTheSaveReturns(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        await worker.perform { context in
            _ = context.addObserver { counter.note($0) }
            context.makeTrack("a")
        }
        try await worker.save(through: .store)
        #expect(counter.all.map(\.kind) == [.objectsDidChange, .willSave, .didSave])
    }

    @Test(arguments: Combination.all)
    func S062_aFailedSaveLeavesEverythingAsItWas(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            let track = context.makeTrack("a", plays: 1)
            track["isrc"] = .string("X")
            return track.objectID
        }
        try await worker.save(through: .store)
        let generation = try container.coordinator.snapshot().generation
        let twin = try await worker.perform { context in
            try context.existingObject(with: id)["plays"] = .int(2)
            let twin = context.makeTrack("twin")
            twin["isrc"] = .string("X")
            return twin.objectID
        }
        for _ in 0..<2 {
            await #expect(throws: SaveError.self, "S108: the value is taken") { try await worker.save(through: .store) }
            #expect(try container.coordinator.snapshot().generation == generation)
            try await worker.perform { context throws in
                #expect(context.insertedObjects.map(\.objectID) == [twin])
                #expect(context.updatedObjects.map(\.objectID) == [id])
                #expect(try context.existingObject(with: id).changedValues == ["plays": .int(2)])
            }
        }
        try await worker.perform { try $0.existingObject(with: twin)["isrc"] = .string("Y") }
        try await worker.save(through: .store)
        let reader = await container.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(2))
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "twin"])
    }

    @Test(arguments: Combination.all)
    func S063_savingNothingWritesNothingAndSaysNothing(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        _ = await worker.perform { $0.addObserver { counter.note($0) } }
        let generation = try container.coordinator.snapshot().generation
        try await worker.save()
        try await worker.save(through: .store)
        #expect(counter.all.isEmpty)
        #expect(try container.coordinator.snapshot().generation == generation)
    }

    @Test(arguments: Combination.parented)
    func S064_aSaveThroughToTheStoreIsOneStepOrNone(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let first = await container.newBackgroundContext()
        await first.perform { $0.makeTrack("a")["isrc"] = .string("X") }
        try await first.save(through: .store)
        let generation = try container.coordinator.snapshot().generation
        await MainActor.run { _ = container.mainContext.makeTrack("main's own") }
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.makeTrack("twin")["isrc"] = .string("X") }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        #expect(try container.coordinator.snapshot().generation == generation)
        try await MainActor.run { () throws in
            #expect(container.mainContext.insertedObjects.count == 1, "main still has its own change only")
            #expect(try container.mainContext.trackTitles() == ["a", "main's own"])
        }
        #expect(await worker.perform { $0.insertedObjects.count } == 1)
        try await worker.perform { try #require($0.insertedObjects.first)["isrc"] = .string("Y") }
        try await worker.save(through: .store)
        #expect(try container.coordinator.snapshot().generation == generation.next, "one step, main's change in it")
        await MainActor.run { #expect(!container.mainContext.hasChanges) }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.trackTitles() } == ["a", "main's own", "twin"])
    }

    @Test(arguments: Combination.all)
    func S066_deferredSavesAreVisibleAtOnceAndFlushed(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        for i in 0..<10 {
            await worker.perform { context in _ = context.makeTrack("t\(i)") }
            try await worker.save(through: .store, .deferred(within: .seconds(60)))
        }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.objects("Track").count } == 10, "S068: a new context needs no refresh")
        try await container.flush()
        let state = try container.coordinator.store.snapshot()
        #expect(try state.count(Music.query("Track")) == 10, "the store itself has them after a flush")
    }

    @Test(arguments: StoreKind.allCases)
    func S066_aDeferredSaveReachesTheStoreWithinItsBound(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in _ = context.makeTrack("t") }
        try await worker.save(.deferred(within: .milliseconds(50)))
        try await until("the save is written") {
            try container.coordinator.store.snapshot().count(Music.query("Track")) == 1
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S066_aDurableSaveTakesEarlierDeferredOnesWithIt(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in _ = context.makeTrack("deferred") }
        try await worker.save(.deferred(within: .seconds(60)))
        await worker.perform { context in _ = context.makeTrack("durable") }
        try await worker.save(.durable)
        #expect(try container.coordinator.store.snapshot().count(Music.query("Track")) == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func S062_changesMadeWhileASaveRunsBelongToTheNext(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("a", plays: 0).objectID }
        try await worker.save()
        for round in 1...50 {
            try await worker.perform { try $0.existingObject(with: id)["plays"] = .int(Int64(round)) }
            async let saving: Void = worker.save()
            try await worker.perform { try $0.existingObject(with: id)["title"] = .string("t\(round)") }
            try await saving
            #expect(try await worker.perform { try $0.existingObject(with: id)["title"] } == .string("t\(round)"))
            try await worker.save()
        }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(50))
        #expect(try await reader.perform { try $0.existingObject(with: id)["title"] } == .string("t50"))
    }

    @Test(arguments: Combination.parented)
    func S064_ofManySavesThroughOneParentOnlyTheWrongOneFails(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let first = await container.newBackgroundContext()
        await first.perform { $0.makeTrack("first")["isrc"] = .string("taken") }
        try await first.save(through: .store)
        let failed = await withTaskGroup(of: Int?.self) { group in
            for number in 0..<12 {
                let worker = await container.newBackgroundContext(name: "worker \(number)")
                group.addTask {
                    await worker.perform { $0.makeTrack("\(number)")["isrc"] = .string(number == 5 ? "taken" : "\(number)") }
                    do { try await worker.save(through: .store) } catch { return number }
                    return nil
                }
            }
            return await group.reduce(into: [Int]()) { if let number = $1 { $0.append(number) } }
        }
        #expect(failed == [5])
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.objects("Track").count } == 12)
        #expect(try await MainActor.run { try container.mainContext.objects("Track").count } == 12)
    }
}
