import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ParentChildTests {
    @Test(arguments: Combination.parented)
    func S070_aChildsSaveGoesOneLevelUpAndLeavesTheStoreAlone(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let generation = try container.coordinator.snapshot().generation
        await worker.perform { context in _ = context.makeTrack("a") }
        try await worker.save()
        #expect(try container.coordinator.snapshot().generation == generation, "S076: no store I/O")
        try await MainActor.run { () throws in
            #expect(try container.mainContext.trackTitles() == ["a"])
            #expect(container.mainContext.hasChanges)
        }
        await worker.perform { context in _ = context.makeTrack("b") }
        try await container.saveMain()
        #expect(try container.coordinator.snapshot().generation == generation.next)
        try await MainActor.run { () throws in
            #expect(try container.mainContext.trackTitles() == ["a"], "a parent's save does not pull a child's changes")
        }
    }

    @Test(arguments: Combination.parented)
    func S071_aChildSeesItsParentAsOfItsCreation(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        await MainActor.run { _ = container.mainContext.makeTrack("before") }
        let child = await container.newBackgroundContext()
        await MainActor.run { () in
            let main = container.mainContext
            main.insertedObjects[0]["plays"] = .int(99)
            main.makeTrack("after")
        }
        try await child.perform { context throws in
            #expect(try context.trackTitles() == ["before"])
            #expect(try context.objects("Track")[0]["plays"] == .int(0))
        }
        try await container.saveMain()
        #expect(try await child.perform { try $0.trackTitles() } == ["before"], "not even a save of the parent moves it")
        let late = await container.newBackgroundContext()
        #expect(try await late.perform { try $0.trackTitles() } == ["after", "before"])
    }

    @Test(arguments: Combination.parented)
    func S071_aChildWorksWhileItsParentsExecutorIsBusy(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        await MainActor.run { _ = container.mainContext.makeTrack("a", plays: 7) }
        let child = await container.newBackgroundContext()
        let done = Flag()
        // Main spins until the child has answered. A child that needed its parent's executor would never answer.
        async let answer = child.perform { context in
            let plays = try context.objects("Track")[0]["plays"]
            done.set()
            return plays
        }
        let finished = await MainActor.run { done.wait(atMost: .seconds(300)) }
        #expect(finished)
        #expect(try await answer == .int(7))
    }

    @Test(arguments: Combination.parented)
    func S072_refreshFromParentMovesAChildAndKeepsItsOwnChanges(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let id = await MainActor.run { container.mainContext.makeTrack("a", plays: 1).objectID }
        let child = await container.newBackgroundContext()
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        await MainActor.run { () in
            container.mainContext.object(with: id)["title"] = .string("b")
            container.mainContext.makeTrack("new")
        }
        try await child.refreshFromParent()
        try await child.perform { context in
            let track = try context.existingObject(with: id)
            #expect(track["title"] == .string("b") && track["plays"] == .int(2))
            #expect(try context.trackTitles() == ["b", "new"])
            #expect(track.changedValues == ["plays": .int(2)])
        }
    }

    @Test(arguments: Combination.parented)
    func S072_aFollowingChildMovesAfterEachSaveOfItsParent(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let child = await container.newBackgroundContext()
        await child.perform { $0.automaticallyMergesChanges = true }
        // The child registers with its parent for changes. One more hop of main is after that.
        await MainActor.run { _ = container.mainContext.makeTrack("a") }
        await MainActor.run {}
        try await container.saveMain()
        try await until("the child follows") { try await child.perform { try $0.trackTitles() } == ["a"] }
    }

    @Test(arguments: Combination.parented)
    func S073_changesNeverFlowSidewaysBetweenSiblings(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (one, two) = (await container.newBackgroundContext(), await container.newBackgroundContext())
        await one.perform { context in _ = context.makeTrack("a") }
        try await one.save()
        #expect(try await two.perform { try $0.trackTitles() }.isEmpty)
        try await one.save(through: .store)
        #expect(try await two.perform { try $0.trackTitles() }.isEmpty)
    }

    @Test(arguments: Combination.parented)
    func S074_aPushKeepsTheKindOfEachChange(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let setUp = await container.newBackgroundContext()
        let (updated, deleted) = await setUp.perform { ($0.makeTrack("u").objectID, $0.makeTrack("d").objectID) }
        try await setUp.save(through: .store)
        let ownID = await MainActor.run { container.mainContext.makeTrack("main's").objectID }
        let child = await container.newBackgroundContext()
        let inserted = try await child.perform { context in
            try context.existingObject(with: updated)["plays"] = .int(5)
            context.delete(try context.existingObject(with: deleted))
            context.delete(try context.existingObject(with: ownID))
            return context.makeTrack("i").objectID
        }
        try await child.save()
        await MainActor.run {
            let main = container.mainContext
            #expect(main.insertedObjects.map(\.objectID) == [inserted])
            #expect(main.updatedObjects.map(\.objectID) == [updated])
            #expect(main.deletedObjects.map(\.objectID) == [deleted], "inserted above, deleted below: nothing")
        }
        try await container.saveMain()
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.trackTitles() } == ["i", "u"])
    }

    /// Catches: the removal of a pair that was never saved, which counts as a change of the object at its other end.
    @Test(arguments: Combination.all.filter { $0.stack != .split })
    func `S074, S063: an object that is inserted, related and deleted again leaves nothing`(_ combination: Combination)
        async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let parent = await container.newBackgroundContext()
        let track = await parent.perform { $0.makeTrack("t").objectID }
        try await parent.save(through: .store)
        let child = await parent.perform { $0.newBackgroundChild() }
        let list = try await child.perform { context throws in
            let list = context.insert("Playlist")
            list.add(try context.existingObject(with: track), to: "tracks")
            return list.objectID
        }
        try await child.save()
        try await child.perform { $0.delete(try $0.existingObject(with: list)) }
        try await child.save()
        try await parent.perform { context throws in
            #expect(!context.hasChanges && context.updatedObjects.isEmpty)
            #expect(try !context.existingObject(with: track).hasChanges)
        }
        let saves = try await container.coordinator.history().count
        try await parent.save(through: .store)
        #expect(try await container.coordinator.history().count == saves)
        try await container.close()
    }

    @Test(arguments: Combination.parented)
    func S075_aChildOverwritesOnlyWhatItChanged(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let setUp = await container.newBackgroundContext()
        let id = await setUp.perform { $0.makeTrack("a", plays: 1).objectID }
        try await setUp.save(through: .store)
        let child = await container.newBackgroundContext()
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(2) }
        let held = await MainActor.run { () -> Value in
            let track = container.mainContext.object(with: id)
            track["title"] = .string("main's")
            return track["title"]
        }
        #expect(held == .string("main's"))
        try await child.save()
        await MainActor.run {
            let track = container.mainContext.object(with: id)
            #expect(track["title"] == .string("main's") && track["plays"] == .int(2))
        }
        try await container.saveMain()
        let reader = container.coordinator.newBackgroundContext()
        let values = try await reader.perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(values == [.string("main's"), .int(2)])
    }

    @Test(arguments: StoreKind.allCases)
    func S077_contextsSavingIntoEachOthersExecutorsDoNotDeadlock(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.masterMainWorker)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                let worker = await container.newBackgroundContext(name: "worker \(number)")
                group.addTask {
                    for i in 0..<20 {
                        await worker.perform { context in _ = context.makeTrack("\(number)-\(i)") }
                        if i % 3 == 0 { try await worker.save(through: .store, .deferred) } else { try await worker.save() }
                    }
                }
            }
            group.addTask { try await Self.saveFromMain(container) }
            try await group.waitForAll()
        }
        try await container.saveMain()
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.objects("Track").count } == 8 * 20 + 20)
    }

    @MainActor private static func saveFromMain(_ container: PersistentContainer) async throws {
        for _ in 0..<20 {
            container.mainContext.makeTrack("main")
            try await container.saveMain(.deferred)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S078_aParentThatIsResetGivesTheChildAnError(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.nested)
        let child = await container.newBackgroundContext()
        await child.perform { context in _ = context.makeTrack("a") }
        await MainActor.run { container.mainContext.reset() }
        await #expect(throws: SaveError.self) { try await child.save() }
        #expect(await child.perform { $0.hasChanges }, "S062")
    }

    @Test(arguments: StoreKind.allCases)
    func S078_aParentThatIsGoneGivesTheChildAnError(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let child = await orphan(of: container)
        await child.perform { context in _ = context.makeTrack("a") }
        await #expect(throws: SaveError.self) { try await child.save() }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        #expect(await child.perform { $0.hasChanges })
    }

    /// Returns a child whose parent is released on return.
    private func orphan(of container: PersistentContainer) async -> BackgroundContext {
        let parent = container.coordinator.newBackgroundContext(name: "parent")
        return await parent.perform { $0.newBackgroundChild() }
    }

    @Test(arguments: StoreKind.allCases)
    func S079_aPushRefreshesOnlyWhatTheParentHasRegistered(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.nested)
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in (0..<1000).map { context.makeTrack("\($0)").objectID } }
        try await worker.save(through: .store)
        let shown = await MainActor.run { () -> Int in
            container.mainContext.retainsRegisteredObjects = true
            for id in ids.prefix(3) { _ = container.mainContext.object(with: id)["title"] }
            return container.mainContext.registeredObjects.count
        }
        #expect(shown == 3)
        let child = await container.newBackgroundContext()
        let counter = Counter()
        await MainActor.run { _ = container.mainContext.addObserver { counter.note($0) } }
        try await child.perform { context in
            for id in ids { try context.existingObject(with: id)["plays"] = .int(1) }
        }
        try await child.save()
        await MainActor.run {
            #expect(container.mainContext.registeredObjects.count == 3, "no instance is made for what nobody shows")
            #expect(container.mainContext.object(with: ids[1])["plays"] == .int(1))
        }
        #expect(counter.all.last?.refreshed.count == 3)
    }

    @Test(arguments: Combination.parented)
    func S074_manyPushesFoldedOnTheWayAddUp(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let shared = await MainActor.run { container.mainContext.makeTrack("shared", plays: 0).objectID }
        for round in 1...60 {
            let child = await container.newBackgroundContext()
            try await child.perform { context in
                try context.existingObject(with: shared)["plays"] = .int(Int64(round))
                for i in 0..<4 { context.makeTrack("\(round)-\(i)", plays: round) }
                for track in try context.objects("Track") where track["plays"] == .int(Int64(round - 7)) { context.delete(track) }
            }
            try await child.save()
            if round % 9 == 0 {
                await MainActor.run { container.mainContext.object(with: shared)["title"] = .string("main \(round)") }
            }
        }
        // In rounds 1 to 53, the four tracks were deleted seven rounds later.
        let expected = 7 * 4 + 1
        try await MainActor.run { () throws in
            let main = container.mainContext
            #expect(try main.objects("Track").count == expected)
            #expect(main.object(with: shared)["plays"] == .int(60) && main.object(with: shared)["title"] == .string("main 54"))
            #expect(main.insertedObjects.count == expected && main.deletedObjects.isEmpty)
        }
        try await container.saveMain()
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.objects("Track").count } == expected)
        #expect(try await reader.perform { try $0.existingObject(with: shared)["title"] } == .string("main 54"))
    }

    /// Catches: a refresh that takes the parent's state before the parent has merged a save that it has been told of.
    @Test(arguments: StoreKind.allCases)
    @MainActor func `S068: a refreshed child shows every save that was awaited`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        main.automaticallyMergesChanges = true
        let child = main.newChild(name: "sheet")
        #expect(try main.trackTitles() == [] && child.trackTitles() == [])
        let worker = container.newBatchOperationContext()
        // Only saves that come quickly are merged together, which is later.
        for number in 1...30 {
            try await worker.perform(andSave: .deferred) { _ = $0.makeTrack("\(number)") }
            try await child.refreshFromParent()
            #expect(try child.trackTitles().count == number)
        }
        try await container.close()
    }
}
