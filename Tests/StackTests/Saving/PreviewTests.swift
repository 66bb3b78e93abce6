import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Previews of saves, and custom merge policies for their conflicts.
@Suite struct PreviewTests {
    @Test(arguments: Combination.all)
    func S065_aPreviewSaysWhatASaveWouldWriteAndWritesNothing(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext(name: "worker")
        #expect(await worker.previewSave().changes.isEmpty, "nothing to save")
        let first = await worker.perform { $0.makeTrack("a", plays: 1).objectID }
        try await worker.save(through: .store)
        let token = container.coordinator.currentHistoryToken
        let second = try await worker.perform { context in
            try context.existingObject(with: first)["plays"] = .int(2)
            return context.makeTrack("b").objectID
        }
        // The preview includes the parents' unsaved changes.
        if Combination.parented.contains(where: { $0.description == combination.description }) {
            await MainActor.run { _ = container.mainContext.makeArtist("main's") }
        }
        let preview = await worker.previewSave()
        let store = container.coordinator.store.identity
        #expect(preview.failure == nil && preview.conflicts.isEmpty)
        #expect("\(preview)".contains("Track: inserted \(second.key), updated \(first.key)"), "S172: \(preview)")
        #expect(preview.changes.updatedIDs(in: store) == [first])
        #expect(preview.changes.insertedIDs(in: store).contains(second))
        #expect(preview.changes.generation == token.generation.next && preview.changes.metadata.contextName == "worker")
        #expect(container.coordinator.currentHistoryToken == token, "nothing is written")
        #expect(try await container.coordinator.history(.init(after: token)).isEmpty)
        #expect(await worker.perform { $0.hasChanges })
        // The save does what the preview has shown.
        try await worker.save(through: .store)
        var saved = try #require(try await container.coordinator.history(.init(after: token)).first).changeSet
        saved.metadata = preview.changes.metadata
        #expect(saved == preview.changes)
    }

    /// Catches: an insertion that is previewed without the deletion that follows it.
    @Test(arguments: StoreKind.allCases)
    func `S041, S065: a preview leaves out new objects that were deleted again`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let parent = await container.newBackgroundContext(name: "parent")
        let store = container.coordinator.store.identity
        // A child reads its parent's changes, which are then no longer changed in place.
        let (gone, child) = await parent.perform { context in
            let gone = context.makeTrack("gone")
            gone["isrc"] = "A"
            return (gone.objectID, context.newBackgroundChild(name: "child"))
        }
        await parent.perform { context in
            context.delete(context.object(with: gone))
            #expect(!context.hasChanges)
        }
        await child.perform { $0.makeTrack("new")["isrc"] = "A" }
        let preview = await child.previewSave()
        #expect(preview.failure == nil, "\(preview)")
        #expect(preview.changes.insertedIDs(in: store).count == 1 && !preview.changes.insertedIDs(in: store).contains(gone))
        let (own, grandchild) = await child.perform { context in
            let own = context.makeTrack("own")
            return (own.objectID, context.newBackgroundChild(name: "grandchild"))
        }
        await child.perform { $0.delete($0.object(with: own)) }
        #expect(!(await child.previewSave()).changes.insertedIDs(in: store).contains(own))
        try await child.save(through: .store)
        #expect(try await parent.perform { context throws in try context.trackTitles() } == ["new"])
        _ = grandchild
    }

    /// The conflicts that a preview of a child must find or not find, because the save does.
    enum Reason: CaseIterable { case merged, watched, refused }

    @MainActor @Test(arguments: [ContextStack.nested, .masterMainWorker], Reason.allCases)
    func `S065: a preview finds the conflicts of a child's save, and no others`(_ stack: ContextStack, _ reason: Reason)
        async throws
    {
        for kind in StoreKind.allCases {
            let bed = try TestBed(kind)
            let container = try await bed.container(stack)
            let main = container.mainContext
            let track = main.makeTrack("x", plays: 0)
            try await main.save(through: .store)
            main.automaticallyMergesChanges = false
            let context = reason == .merged ? main : main.newChild(name: "editing")
            let object = try context.existingObject(with: track.objectID)
            #expect(object["plays"] == .int(0))
            if reason == .watched { context.detectConflicts(for: object) }
            try await container.newBatchOperationContext().perform(andSave: .durable) { [id = track.objectID] context in
                try context.existingObject(with: id)["plays"] = .int(5)
            }
            if reason == .merged { context.refreshAllObjects() }
            if reason == .watched { context.makeTrack("y") } else { object["plays"] = .int(7) }
            let preview = await context.previewSave()
            #expect(preview.conflicts.map(\.objectID) == (reason == .merged ? [] : [track.objectID]), "\(kind)")
            if reason == .merged {
                try await context.save(through: .store)
            } else {
                await #expect(throws: SaveError.self, "\(kind)") { try await context.save(through: .store) }
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func S065_aPreviewNamesConflictsAndWhatWouldBeThrown(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { context in
            let track = context.makeTrack("base", plays: 1)
            track["isrc"] = .string("X")
            return track.objectID
        }
        try await ours.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { try $0.existingObject(with: id)["plays"] = .int(20) }
        try await other.save(.deferred)
        try await ours.perform { try $0.existingObject(with: id)["plays"] = .int(10) }
        let refused = await ours.previewSave()
        let plays = try #require(refused.conflicts.first?.properties.first { $0.name == "plays" })
        #expect(refused.conflicts.map(\.objectID) == [id] && refused.changes.isEmpty)
        #expect(plays.base == .int(1) && plays.ours == .int(10) && plays.theirs == .int(20))
        guard case .conflicts? = refused.failure as? SaveError else {
            Issue.record("not a conflict: \(String(describing: refused.failure))")
            return
        }
        await ours.perform { $0.mergePolicy = .objectTrump }
        let merged = await ours.previewSave()
        #expect(
            merged.failure == nil && merged.conflicts.map(\.objectID) == [id], "the policy settles it; it is told all the same")
        #expect(merged.changes.updatedIDs(in: container.coordinator.store.identity) == [id])
        await ours.perform { context in
            context.mergePolicy = .error
            context.rollback()
            context.refreshAllObjects()
            context.makeTrack("twin")["isrc"] = .string("X")
        }
        let twin = await ours.previewSave()
        guard case .uniqueConstraint? = twin.failure as? SaveError else {
            Issue.record("not a unique value: \(String(describing: twin.failure))")
            return
        }
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    /// Creates a track that `other` has changed or deleted, and that `ours` has changed too, with a custom policy.
    private func collision(
        _ container: PersistentContainer, deletedThere: Bool = false, deletedHere: Bool = false,
        _ policy: @escaping @Sendable ([MergeConflict]) throws -> [ObjectID: ConflictResolution]
    ) async throws -> (ours: BackgroundContext, id: ObjectID) {
        let (ours, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("base", plays: 1).objectID }
        try await ours.save()
        try await other.perform { context in
            context.refreshAllObjects()
            let track = try context.existingObject(with: id)
            if deletedThere {
                context.delete(track)
            } else {
                track["title"] = .string("theirs")
                track["plays"] = .int(20)
            }
        }
        try await other.save()
        try await ours.perform { context in
            let track = try context.existingObject(with: id)
            if deletedHere { context.delete(track) } else { track["plays"] = .int(10) }
            context.mergePolicy = .custom(policy)
        }
        return (ours, id)
    }

    /// Adds up the changes of both sides.
    @Sendable private static func summing(_ conflicts: [MergeConflict]) -> [ObjectID: ConflictResolution] {
        Dictionary(
            uniqueKeysWithValues: conflicts.map { conflict in
                guard let plays = conflict.properties.first(where: { $0.name == "plays" }),
                    case (.int(let base)?, .int(let ours)?, .int(let theirs)?) = (plays.base, plays.ours, plays.theirs)
                else { return (conflict.objectID, .storeTrump) }
                return (conflict.objectID, .values(["plays": .int(theirs + ours - base)]))
            })
    }

    @Test(arguments: StoreKind.allCases)
    func S109_aPolicyOfOnesOwnResolvesByBaseOursAndTheirs(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, id) = try await collision(container, Self.summing)
        try await ours.save()
        let values = try await ours.perform { context in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(values == [.string("theirs"), .int(29)], "S110: the context shows it")
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(29))
    }

    @Test(arguments: Combination.parented)
    func S109_thePolicyOfTheRootActsWhenAChildSavesThrough(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let root = container.coordinator.newBackgroundContext()
        let id = await root.perform { context in
            context.mergePolicy = .custom(Self.summing)
            return context.makeTrack("base", plays: 1).objectID
        }
        try await root.save()
        let child = await root.perform { $0.newBackgroundChild() }
        let other = container.coordinator.newBackgroundContext()
        try await other.perform { try $0.existingObject(with: id)["plays"] = .int(20) }
        try await child.perform { try $0.existingObject(with: id)["plays"] = .int(10) }
        try await other.save()
        try await child.save(through: .store)
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(29))
    }

    @Test(arguments: StoreKind.allCases)
    func S109_deletedObjectsComeBackOrStayAsThePolicySays(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (revived, first) = try await collision(container, deletedThere: true) { conflicts in
            #expect(!conflicts.contains { !$0.isDeletedInStore })
            return [conflicts[0].objectID: .values(["title": .string("back")])]
        }
        try await revived.save()
        let (kept, second) = try await collision(container, deletedHere: true) { conflicts in
            #expect(!conflicts.contains { !$0.isDeletedHere })
            return [conflicts[0].objectID: .values(["plays": .int(5)])]
        }
        try await kept.save()
        let reader = container.coordinator.newBackgroundContext()
        let values = try await reader.perform { context -> [Value?] in
            let (one, two) = (try context.existingObject(with: first), try context.existingObject(with: second))
            return [one["title"], one["plays"], two["title"], two["plays"]]
        }
        #expect(values == [.string("back"), .int(10), .string("theirs"), .int(5)])
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    @Test(arguments: StoreKind.allCases)
    func S109_whatThePolicyLeavesOutOrThrowsEndsTheSave(_ kind: StoreKind) async throws {
        struct Undecided: Error {}
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (silent, _) = try await collision(container) { _ in [:] }
        let error = try #require(await #expect(throws: SaveError.self) { try await silent.save() })
        guard case .conflicts(let conflicts) = error else {
            Issue.record("not a conflict: \(error)")
            return
        }
        #expect(conflicts.count == 1)
        let (thrower, id) = try await collision(container) { _ in throw Undecided() }
        await #expect(throws: Undecided.self) { try await thrower.save() }
        let (wrong, _) = try await collision(container) { [$0[0].objectID: .values(["plays": .string("many")])] }
        let refusal = await #expect(throws: StoreError.self) { try await wrong.save() }
        #expect(refusal?.message.contains("Track.plays") == true)
        for context in [silent, thrower, wrong] { #expect(await context.perform { $0.hasChanges }) }
        let reader = container.coordinator.newBackgroundContext()
        #expect(try await reader.perform { try $0.existingObject(with: id)["plays"] } == .int(20))
    }
}
