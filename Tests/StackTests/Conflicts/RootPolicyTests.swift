import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The stacks whose root belongs to the container: the main context's merge policy decides at the root's saves.
@Suite struct RootPolicyTests {
    enum Policy: String, CaseIterable {
        case storeTrump, objectTrump, overwrite, rollback, custom

        var mergePolicy: MergePolicy {
            switch self {
            case .storeTrump: .storeTrump
            case .objectTrump: .objectTrump
            case .overwrite: .overwrite
            case .rollback: .rollback
            case .custom:
                .custom { $0.reduce(into: [:]) { $0[$1.objectID] = .values(["title": "decided"]) } }
            }
        }

        /// The title and the plays after a conflict over the title.
        var result: [Value] {
            switch self {
            case .storeTrump: ["theirs", .int(5)]
            case .objectTrump: ["ours", .int(5)]
            case .overwrite: ["ours", .int(5)]
            case .rollback: ["theirs", .int(0)]
            case .custom: ["decided", .int(0)]
            }
        }
    }

    /// Saves a track, changes it in another root, and changes it in `change`.
    @MainActor private static func collide(
        _ container: PersistentContainer, _ change: (ObjectID) async throws -> Void
    ) async throws -> ObjectID {
        let main = container.mainContext
        let track = main.makeTrack("base")
        try await main.save(through: .store)
        let id = track.objectID
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await change(id)
        try await other.perform(andSave: .durable) { try $0.existingObject(with: id)["title"] = "theirs" }
        return id
    }

    private static func stored(_ container: PersistentContainer, _ id: ObjectID) async throws -> [Value] {
        try await container.coordinator.newBackgroundContext().perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
    }

    /// The root of `.masterMainWorker` does not merge other saves, so that each save here conflicts.
    @Test(arguments: StoreKind.allCases, Policy.allCases) @MainActor
    func `S102: a save of main that conflicts follows main's merge policy`(_ kind: StoreKind, _ policy: Policy) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.masterMainWorker)
        let main = container.mainContext
        let id = try await Self.collide(container) { id in
            let track = try main.existingObject(with: id)
            (track["title"], track["plays"]) = ("ours", .int(5))
        }
        let failure = try #require(await #expect(throws: SaveError.self) { try await main.save(through: .store) })
        #expect(failure.code == .conflicts)
        main.mergePolicy = policy.mergePolicy
        let preview = await main.previewSave()
        #expect(preview.failure == nil && preview.conflicts.map(\.objectID) == [id])
        try await main.save(through: .store)
        #expect(!main.hasChanges)
        #expect(try await Self.stored(container, id) == policy.result)
        let track = try main.existingObject(with: id)
        #expect([track["title"], track["plays"]] == policy.result, "S110: main shows the merged values")
        main.mergePolicy = .error
        let second = try await Self.collide(container) { try main.existingObject(with: $0)["title"] = "ours" }
        await #expect(throws: SaveError.self) { try await main.save(through: .store) }
        #expect(try await Self.stored(container, second)[0] == "theirs")
    }

    @Test(arguments: StoreKind.allCases, Policy.allCases) @MainActor
    func `S102: a save of a worker through to the store follows main's merge policy`(
        _ kind: StoreKind, _ policy: Policy
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.masterMainWorker)
        container.mainContext.mergePolicy = policy.mergePolicy
        var worker: BackgroundContext?
        let id = try await Self.collide(container) { id in
            let made = container.newBackgroundContext(name: "worker")
            worker = made
            try await made.perform { context in
                // Only the policy of the root decides.
                context.mergePolicy = .error
                let track = try context.existingObject(with: id)
                (track["title"], track["plays"]) = ("ours", .int(5))
            }
        }
        try await worker?.save(through: .store)
        #expect(try await Self.stored(container, id) == policy.result)
    }

    /// Catches: a root that stays in conflict with what main has merged, about changes that main has saved to it.
    @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid]) @MainActor
    func `S024, S064, S100: a refresh of main ends conflicts of changes that main has saved to its root`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        for failsFirst in [false, true] {
            let bed = try TestBed(kind)
            let container = try await bed.container(stack)
            let main = container.mainContext
            main.automaticallyMergesChanges = false
            let id = try await Self.collide(container) { id in
                try main.existingObject(with: id)["title"] = "ours"
                try await main.save()
            }
            if failsFirst {
                let failure = await #expect(throws: SaveError.self) { try await main.save(through: .store) }
                #expect(failure?.code == .conflicts)
            }
            main.refreshAllObjects()
            let title = try main.existingObject(with: id)["title"]
            #expect(title == "ours")
            try await main.save(through: .store)
            #expect(try await Self.stored(container, id)[0] == "ours")
        }
    }

    /// The root of `.hybrid` merges other saves when it learns of them, so that only some of these saves conflict.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S103: main of hybrid saves beside another root without an error`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.hybrid)
        let main = container.mainContext
        main.mergePolicy = .objectTrump
        let track = main.makeTrack("base")
        try await main.save(through: .store)
        let id = track.objectID
        let other = container.newBatchOperationContext(name: "other")
        await other.perform { $0.mergePolicy = .objectTrump }
        for round in 0..<Rounds.of(30, long: 3000) {
            track["title"] = .string("ours \(round)")
            async let theirs: Void = other.perform(andSave: .deferred) {
                try $0.existingObject(with: id)["plays"] = .int(Int64(round + 1))
            }
            try await main.save(through: .store, .deferred)
            try await theirs
        }
        let title = track["title"]
        #expect(try await Self.stored(container, id) == [title, .int(Int64(Rounds.of(30, long: 3000)))])
    }

    /// Catches: a root that dropped main's update of an object whose deletion both had merged, under every policy.
    @Test(arguments: Combination.all, PolicyKind.allCases) @MainActor
    func `S024, S106: main's update of an object whose deletion it has merged meets its merge policy`(
        _ combination: Combination, _ policy: PolicyKind
    ) async throws {
        for inTwoSteps in [false, true] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack)
            let main = container.mainContext
            let id = main.makeTrack("base", plays: 1).objectID
            try await main.save(through: .store)
            main.mergePolicy = policy.mergePolicy
            main.object(with: id)["title"] = "ours"
            try await container.newBatchOperationContext().perform(andSave: .durable) { context throws in
                context.delete(try context.existingObject(with: id))
            }
            main.refreshAllObjects()
            let titles = try main.trackTitles()
            #expect(titles == [] && main.hasChanges)
            let survives = policy == .objectTrump || policy == .overwrite
            if policy == .error {
                let error = await #expect(throws: SaveError.self) {
                    if inTwoSteps { try await main.save() }
                    try await main.save(through: .store)
                }
                guard case .conflicts(let conflicts)? = error else {
                    return _ = Issue.record("another error: \(String(describing: error))")
                }
                #expect(conflicts.map(\.objectID) == [id] && conflicts[0].isDeletedInStore)
                // The update can be dropped where it was made, and then nothing refuses other saves.
                #expect(main.hasChanges)
                try await Self.saveAfterRollback(container)
            } else {
                if inTwoSteps { try await main.save() }
                try await main.save(through: .store)
                let shown = try main.trackTitles()
                #expect(shown == (survives ? ["ours"] : []))
                #expect(!main.hasChanges)
            }
            let stored = try await container.newBatchOperationContext().perform { context throws in
                try context.objects("Track").map { [$0["title"], $0["plays"]] }
            }
            #expect(stored == (survives ? [["ours", .int(1)]] : []))
            #expect(try container.coordinator.store.verify().isEmpty)
        }
    }

    /// Rolls main back, and saves it and a worker.
    @MainActor private static func saveAfterRollback(_ container: PersistentContainer) async throws {
        container.mainContext.rollback()
        _ = container.mainContext.insert("Playlist")
        try await container.mainContext.save(through: .store)
        let worker = container.newBackgroundContext()
        await worker.perform { _ = $0.insert("Playlist") }
        try await worker.save(through: .store)
    }

    /// Catches: an update in main's root that fails every later save, because no program can drop it there.
    @Test(arguments: StoreKind.allCases, [ContextStack.masterMainWorker, .hybrid]) @MainActor
    func `S024, S048, S106: a rollback of main drops a refused update of a deleted object that main has saved to its root`(
        _ kind: StoreKind, _ stack: ContextStack
    ) async throws {
        for policy in [PolicyKind.error, .objectTrump] {
            let bed = try TestBed(kind)
            let container = try await bed.container(stack)
            let main = container.mainContext
            let id = main.makeTrack("base").objectID
            try await main.save(through: .store)
            main.mergePolicy = policy.mergePolicy
            main.object(with: id)["title"] = "ours"
            try await main.save()
            try await container.newBatchOperationContext().perform(andSave: .durable) { context throws in
                context.delete(try context.existingObject(with: id))
            }
            main.refreshAllObjects()
            let titles = try main.trackTitles()
            #expect(titles == [] && !main.hasChanges)
            if policy == .error {
                let error = await #expect(throws: SaveError.self) { try await main.save(through: .store) }
                #expect(error?.code == .conflicts)
            }
            try await Self.saveAfterRollback(container)
            let stored = try await container.newBatchOperationContext().perform { try $0.trackTitles() }
            // Another policy decides about the update, so that the rollback keeps it.
            #expect(stored == (policy == .error ? [] : ["ours"]))
            #expect(try container.coordinator.store.verify().isEmpty)
        }
    }
}
