import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Undo and redo in one context (S162).
@Suite struct UndoTests {
    /// Runs `body` in a background context with a history: a root or a child, by the stack.
    static func withHistory(
        _ combination: Combination, _ body: @Sendable (BackgroundContext) async throws -> Void
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await body(worker)
        try await worker.save(through: .store)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: undo is off by default, and a history begins with nothing to undo`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in
            #expect(context.undoHistory == nil)
            context.makeTrack("before")
            let history = UndoHistory()
            context.undoHistory = history
            #expect(!history.canUndo && !history.canRedo)
        }
        try await worker.perform { context throws in
            #expect(try context.undoHistory?.undo() == [])
            #expect(try context.trackTitles() == ["before"])
        }
    }

    @Test(arguments: Combination.all)
    func `S162: one perform block is one group, and undo and redo restore its values`(_ combination: Combination) async throws {
        try await Self.withHistory(combination) { worker in
            let id = await worker.perform { $0.makeTrack("first", plays: 1).objectID }
            try await worker.save(through: .store)
            try await worker.perform { context throws in
                let track = try context.existingObject(with: id)
                track["title"] = "second"
                track["plays"] = 2
                track["title"] = "third"
            }
            try await worker.perform { try $0.existingObject(with: id)["plays"] = 3 }
            try await worker.perform { context throws in
                let track = try context.existingObject(with: id)
                let history = try #require(context.undoHistory)
                try history.undo()
                #expect(track["plays"] == 2 && track["title"] == "third")
                try history.undo()
                #expect(track["plays"] == 1 && track["title"] == "first")
                #expect(!context.hasChanges && context.updatedObjects.isEmpty, "S007: nothing is left to save")
                #expect(history.canUndo, "the insertion")
                try history.redo()
                #expect(track["plays"] == 2 && track["title"] == "third")
                #expect(context.updatedObjects.map(\.objectID) == [id])
                try history.redo()
                #expect(track["plays"] == 3)
                #expect(!history.canRedo)
                #expect(try history.redo() == [])
            }
        }
    }

    @Test(arguments: Combination.all)
    func `S162: an undone insertion is deleted, and a redo brings the same instance back`(_ combination: Combination) async throws
    {
        try await Self.withHistory(combination) { worker in
            try await worker.perform { context throws in
                let history = try #require(context.undoHistory)
                let (artist, album) = (context.makeArtist("artist"), context.insert("Album"))
                album.setRelatedObject("artist", to: artist)
                context.processPendingChanges()
                try history.undo()
                #expect(album.isDeleted && artist.isDeleted)
                #expect(!context.hasChanges && context.insertedObjects.isEmpty && context.deletedObjects.isEmpty)
                #expect(try context.objects("Album").isEmpty)
                #expect(artist["name"] == "artist", "the last value can be read")
                try history.redo()
                #expect(try context.objects("Album") == [album])
                #expect(album.relatedObject("artist") === artist && !album.isDeleted)
                #expect(artist.relatedObjects("albums") == [album])
                #expect(Set(context.insertedObjects.map(\.objectID)) == [artist.objectID, album.objectID])
            }
        }
    }

    @Test(arguments: Combination.all)
    func `S162: an undone deletion restores id, values and relationships of every kind`(_ combination: Combination) async throws {
        try await Self.withHistory(combination) { worker in
            let ids = await worker.perform { context in
                let (artist, profile, pupil) = (
                    context.makeArtist("artist"), context.insert("Profile"), context.makeArtist("pupil")
                )
                let (album, track, playlist) = (
                    context.insert("Album"), context.makeTrack("t", plays: 4), context.insert("Playlist")
                )
                artist.setRelatedObject("profile", to: profile)
                pupil.setRelatedObject("mentor", to: artist)
                album.setRelatedObject("artist", to: artist)
                playlist.add(track, to: "tracks")
                return [artist, profile, pupil, album, track, playlist].map(\.objectID)
            }
            try await worker.save(through: .store)
            for isSaved in [false, true] {
                try await worker.perform { context throws in
                    context.delete(try context.existingObject(with: ids[0]))
                    context.delete(try context.existingObject(with: ids[4]))
                }
                // A saved deletion is undone too, by an insertion under the old id.
                if isSaved { try await worker.save(through: .store) }
                try await worker.perform { context throws in
                    #expect(try context.objects("Profile").isEmpty && context.objects("Album").isEmpty, "cascades")
                    try context.undoHistory?.undo()
                    let objects = try ids.map { try context.existingObject(with: $0) }
                    #expect(objects[0]["name"] == "artist" && objects[4]["plays"] == 4)
                    #expect(
                        objects[0].relatedObject("profile") === objects[1] && objects[1].relatedObject("artist") === objects[0])
                    #expect(objects[0].relatedObjects("pupils") == [objects[2]])
                    #expect(objects[0].relatedObjects("albums") == [objects[3]])
                    #expect(objects[5].relatedObjects("tracks") == [objects[4]])
                    #expect(context.hasChanges == isSaved)
                }
                try await worker.save(through: .store)
            }
            try await worker.perform { context throws in
                try IntegrityExplorer.check(context, "after undo")
                #expect(try context.trackTitles() == ["t"])
            }
        }
    }

    @Test(arguments: Combination.all)
    func `S162: undo after a save makes unsaved changes, which the next save stores`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { $0.undoHistory = UndoHistory() }
        let id = await worker.perform { $0.makeTrack("first").objectID }
        try await worker.save(through: .store)
        try await worker.perform { try $0.existingObject(with: id)["title"] = "second" }
        try await worker.save(through: .store)
        try await worker.perform { _ = try $0.undoHistory?.undo() }
        try await worker.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == ["first"])
        try await worker.perform { _ = try $0.undoHistory?.undo() }
        try await worker.save(through: .store)
        #expect(try await container.read { try $0.trackTitles() } == [])
        try await worker.perform {
            try $0.undoHistory?.redo()
            try $0.undoHistory?.redo()
        }
        try await worker.save(through: .store)
        #expect(try await container.read { try $0.existingObject(with: id)["title"] } == "second")
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Found by random sequences: the delete rule followed the reference that the store still had.
    @Test(arguments: Combination.all)
    func `S162: undoing a saved insertion keeps what the inserted object took from another`(
        _ combination: Combination
    ) async throws {
        try await Self.withHistory(combination) { worker in
            let (artist, profile) = await worker.perform { context in
                let (artist, profile) = (context.makeArtist("first"), context.insert("Profile"))
                artist.setRelatedObject("profile", to: profile)
                return (artist.objectID, profile.objectID)
            }
            try await worker.save(through: .store)
            try await worker.perform { context throws in
                context.makeArtist("second").setRelatedObject("profile", to: try context.existingObject(with: profile))
            }
            try await worker.save(through: .store)
            for isRedo in [false, true, false] {
                try await worker.perform { _ = try isRedo ? $0.undoHistory?.redo() : $0.undoHistory?.undo() }
                try await worker.save(through: .store)
                try await worker.perform { context throws in
                    let owner = try context.existingObject(with: profile).relatedObject("artist")
                    #expect(owner?["name"] == (isRedo ? "second" : "first"))
                    #expect((try context.existingObject(with: artist).relatedObject("profile") == nil) == isRedo)
                    try IntegrityExplorer.check(context, "after the save")
                }
            }
        }
    }

    /// Found by random sequences: the object came back as a changed one, which no state below had, and no save accepted it.
    @Test(arguments: StoreKind.allCases)
    func `S162, S056: undoing a deletion inserts the object if another context has deleted it too`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let id = await worker.perform { $0.makeTrack("first").objectID }
        try await worker.save()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { $0.delete(try $0.existingObject(with: id)) }
        try await container.coordinator.batchDelete(EntityFetchRequest("Track"))
        try await worker.perform { context throws in
            context.refreshAllObjects()
            try context.undoHistory?.undo()
            #expect(context.insertedObjects.map(\.objectID) == [id] && context.updatedObjects.isEmpty)
        }
        try await worker.save()
        #expect(try await container.read { try $0.trackTitles() } == ["first"])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162, S062: a failed save leaves the groups as they were`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        await worker.perform { $0.undoHistory = UndoHistory() }
        let id = await worker.perform { $0.makeTrack("first").objectID }
        try await worker.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { try $0.existingObject(with: id)["title"] = "of another" }
        try await other.save()
        try await worker.perform { try $0.existingObject(with: id)["title"] = "second" }
        await #expect(throws: SaveError.self) { try await worker.save() }
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            try history.undo()
            #expect(try context.trackTitles() == ["first"] && !context.hasChanges)
            try history.redo()
            #expect(try context.trackTitles() == ["second"])
            try history.undo()
            try history.undo()
            #expect(try context.trackTitles() == [])
        }
    }

    /// Catches: two changes of a pair that cancel each other in the group, although a refresh has taken the first one back.
    @Test(arguments: Combination.all)
    func `S162: a pair that is linked again after a refresh in one group is undone and redone`(
        _ combination: Combination
    ) async throws {
        try await Self.withHistory(combination) { worker in
            let ids = await worker.perform { [$0.insert("Playlist").objectID, $0.makeTrack("t").objectID] }
            try await worker.save(through: .store)
            try await worker.perform { context throws in
                let list = try context.existingObject(with: ids[0])
                let track = try context.existingObject(with: ids[1])
                let history = try #require(context.undoHistory)
                list.add(track, to: "tracks")
                context.refresh(list, mergeChanges: false)
                #expect(list.relatedObjects("tracks").isEmpty)
                list.add(track, to: "tracks")
                try history.undo()
                #expect(list.relatedObjects("tracks").isEmpty && track.relatedObjects("playlists").isEmpty && !context.hasChanges)
                try history.redo()
                #expect(list.relatedObjects("tracks") == [track] && track.relatedObjects("playlists") == [list])
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: rollback and reset forget all groups, a save does not`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        for isReset in [false, true] {
            await worker.perform { context in
                context.undoHistory = UndoHistory()
                context.makeTrack("saved")
            }
            try await worker.save()
            try await worker.perform { context throws in
                let history = try #require(context.undoHistory)
                #expect(history.canUndo)
                context.makeTrack("dropped")
                if isReset { context.reset() } else { context.rollback() }
                #expect(!history.canUndo && !history.canRedo && history.byteCount == 0)
                context.makeTrack("next")
                context.processPendingChanges()
                try history.undo()
                #expect(!context.hasChanges && !history.canUndo)
            }
        }
    }

    /// Catches: an undo that changes the object with the same id in another store.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S162: a history forgets its groups if a context of another store takes it`(_ kind: StoreKind) async throws {
        let beds = (try TestBed(kind), try TestBed(kind))
        let (first, second) = (try await beds.0.container(), try await beds.1.container())
        let (track, other) = (first.mainContext.makeTrack("a"), second.mainContext.makeTrack("b"))
        try await first.saveMain()
        try await second.saveMain()
        #expect(track.objectID.key == other.objectID.key)
        let history = UndoHistory()
        var removals = 0
        history.register(
            with: UndoRegistrar(
                registerAction: { _, _ in }, setActionName: { _ in }, removeActions: { removals += 1 }),
            onFailure: { Issue.record($0) })
        first.mainContext.undoHistory = history
        track["title"] = "b"
        first.mainContext.processPendingChanges()
        first.mainContext.undoHistory = nil
        let child = first.mainContext.newChild()
        child.undoHistory = history
        #expect(history.canUndo && removals == 0, "a context of the same store")
        child.undoHistory = nil
        second.mainContext.undoHistory = history
        #expect(!history.canUndo && history.byteCount == 0 && removals == 1)
        #expect(try history.undo() == [] && other["title"] == "b" && !second.mainContext.hasChanges)
        other["title"] = "c"
        try history.undo()
        #expect(other["title"] == "b")
        try await first.close()
        try await second.close()
    }

    /// Catches: changes of a hook that are a group of their own, and end redo, because the hook has processed them.
    @Test(arguments: Combination.all, [false, true])
    func `S162: an observer of willSave that processes its changes completes the group of the save`(
        _ combination: Combination, _ isUndone: Bool
    ) async throws {
        try await Self.withHistory(combination) { worker in
            let id = await worker.perform { $0.makeTrack("first").objectID }
            try await worker.save(through: .store)
            await worker.perform { context in
                unowned let context = context
                _ = context.addObserver { notice in
                    guard notice.kind == .willSave else { return }
                    context.object(with: id)["rating"] = 4.5
                    context.processPendingChanges()
                }
            }
            try await worker.perform { context throws in
                let track = try context.existingObject(with: id)
                context.undoHistory?.group("Title") { track["title"] = "second" }
            }
            if isUndone {
                try await worker.perform { try $0.existingObject(with: id)["plays"] = 5 }
                try await worker.perform { _ = try $0.undoHistory?.undo() }
            }
            try await worker.save(through: .store)
            try await worker.perform { context throws in
                let track = try context.existingObject(with: id)
                let history = try #require(context.undoHistory)
                #expect(track["rating"] == 4.5 && history.canRedo == isUndone && history.undoActionName == "Title")
                try history.undo()
                #expect(track["title"] == "first")
                // With groups to redo, the save does not add properties to a group. It only updates those that the group has.
                if !isUndone { #expect(track["rating"] == 2.5) }
                try history.redo()
                #expect(track["title"] == "second" && track["rating"] == 4.5)
            }
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: keyed values are undone with objects`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            context.undoHistory = UndoHistory()
            let scores = try context.collection("scores", of: Int.self)
            scores["a"] = 1
            context.makeTrack("t")
        }
        try await worker.perform { context throws in
            let scores = try context.collection("scores", of: Int.self)
            scores["a"] = 2
            scores["b"] = 3
        }
        try await worker.save()
        try await worker.perform { context throws in
            let scores = try context.collection("scores", of: Int.self)
            scores["a"] = nil
            context.processPendingChanges()
            scores["a"] = 9
            context.processPendingChanges()
            let history = try #require(context.undoHistory)
            try history.undo()
            #expect(scores["a"] == nil)
            try history.undo()
            #expect(scores["a"] == 2 && !context.hasChanges)
            try history.undo()
            #expect(scores["a"] == 1 && scores["b"] == nil)
            try history.undo()
            #expect(try scores.all.count == 0 && context.trackTitles() == [])
            // The record of the collection's types was undone too, so it is written again.
            scores["c"] = 5
        }
        try await worker.save()
        if kind == .memory { return }
        try await container.close()
        let again = try await bed.container()
        await #expect(throws: CollectionError.self) {
            try await MainActor.run { _ = try again.collection("scores", of: String.self) }
        }
        try await MainActor.run { () throws in #expect(try again.collection("scores", of: Int.self)["c"] == 5) }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162, S035: observers learn of an undo as of any change`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let counter = Counter()
        let id = await worker.perform { $0.makeTrack("t").objectID }
        try await worker.save()
        try await worker.perform { context throws in
            context.undoHistory = UndoHistory()
            _ = context.addObserver { counter.note($0) }
            try context.existingObject(with: id)["plays"] = 1
            context.makeTrack("new")
        }
        try await worker.perform { _ = try $0.undoHistory?.undo() }
        let notices = counter.all
        #expect(notices.count == 2)
        let store = container.coordinator.store.identity
        #expect(notices.last?.kind == .objectsDidChange)
        #expect(notices.last?.changes.updatedIDs(in: store).contains(id) == true)
    }

    @Test(arguments: Combination.all)
    func `S162: undoing a deletion restores the object to relationships without an inverse`(
        _ combination: Combination
    ) async throws {
        for (isSavedBefore, isSavedAfter) in [(false, false), (true, false), (true, true)] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack, model: Shelf.model)
            let worker = await container.newBackgroundContext()
            await worker.perform { $0.undoHistory = UndoHistory() }
            let (list, track) = await worker.perform { context in
                let (list, track) = (context.insert("Playlist"), context.insert("Track"))
                list.setRelatedObjects("items", to: [context.insert("Track"), track])
                return (list.objectID, track.objectID)
            }
            if isSavedBefore { try await worker.save(through: .store) }
            await worker.perform { $0.delete($0.object(with: track)) }
            if isSavedAfter { try await worker.save(through: .store) }
            let restored = try await worker.perform { context in
                try context.undoHistory?.undo()
                return context.object(with: list).relatedObjects("items").map(\.objectID)
            }
            #expect(restored.contains(track) && restored.count == 2, "saved: \(isSavedBefore), \(isSavedAfter)")
            try await worker.save(through: .store)
            let saved = await container.newBackgroundContext().perform { $0.object(with: list).relatedObjects("items").count }
            #expect(saved == 2, "saved: \(isSavedBefore), \(isSavedAfter)")
            try await container.close()
        }
    }

    /// Returns a model of tracks with tags, in which a rule decides about the tags of a deleted track.
    private static func tagged(_ rule: DeleteRule) throws -> Model {
        try Model([
            EntityDescription(
                name: "Track",
                properties: [
                    .attribute(.init(name: "title", type: .string)),
                    .relationship(
                        .init(name: "tags", destination: "Tag", inverse: "tracks", cardinality: .toMany, deleteRule: rule)),
                ]),
            EntityDescription(
                name: "Tag",
                properties: [
                    .attribute(.init(name: "name", type: .string)),
                    .relationship(
                        .init(name: "tracks", destination: "Track", inverse: "tags", cardinality: .toMany, deleteRule: .nullify)),
                ]),
        ])
    }

    /// Catches: a deletion whose pairs are not recorded, because their rule leaves them to the save, so that no undo restores them.
    @Test(arguments: Combination.all, [DeleteRule.noAction, .deny])
    func `S162: undoing a saved deletion restores the pairs that only the save has removed`(
        _ combination: Combination, _ rule: DeleteRule
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(rule))
        let worker = await container.newBackgroundContext()
        let (track, tag) = await worker.perform { context in
            let (track, tag) = (context.insert("Track"), context.insert("Tag"))
            track.add(tag, to: "tags")
            return (track.objectID, tag.objectID)
        }
        try await worker.save(through: .store)
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { context throws in
            context.delete(try context.existingObject(with: track))
            // As long as the tag exists, the rule denies the deletion.
            if rule == .deny { context.delete(try context.existingObject(with: tag)) }
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            #expect(try context.fetch(EntityFetchRequest("Track")).isEmpty)
            let history = try #require(context.undoHistory)
            for isAfterRedo in [false, true] {
                if isAfterRedo { try history.redo() }
                #expect(try history.undo() == [])
                let (first, second) = (try context.existingObject(with: track), try context.existingObject(with: tag))
                #expect(first.relatedObjects("tags") == [second], "after a redo: \(isAfterRedo)")
                #expect(second.relatedObjects("tracks") == [first], "after a redo: \(isAfterRedo)")
            }
        }
        try await worker.save(through: .store)
        let tags = try await container.read { try $0.existingObject(with: track).relatedObjects("tags").map(\.objectID) }
        #expect(tags == [tag])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a forced undo that removes the pairs about which a delete rule decides, so that the rule finds nothing.
    @Test(arguments: Combination.all, [DeleteRule.deny, .cascade])
    func `S162, S043: a forced undo applies the delete rules of many-to-many relationships`(
        _ combination: Combination, _ rule: DeleteRule
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(rule))
        let worker = await container.newBackgroundContext()
        let tag = await worker.perform { $0.insert("Tag").objectID }
        try await worker.save(through: .store)
        await worker.perform { $0.undoHistory = UndoHistory() }
        let track = await worker.perform { $0.insert("Track").objectID }
        try await worker.perform { context throws in
            try context.undoHistory?.withoutRegistration {
                try context.existingObject(with: track).add(try context.existingObject(with: tag), to: "tags")
            }
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            let error = #expect(throws: UndoError.self) { try context.undoHistory?.undo() }
            guard case .conflicts(let conflicts)? = error else { return }
            #expect(conflicts.map(\.kind) == [.referenced])
            try context.undoHistory?.undo(onConflict: .force)
            #expect(try context.fetch(EntityFetchRequest("Track")).count == (rule == .deny ? 1 : 0))
            #expect(try context.fetch(EntityFetchRequest("Tag")).count == (rule == .deny ? 1 : 0))
        }
        try await worker.save(through: .store)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a pair that is not recorded, because its two ends were deleted in two parts of one group.
    @Test(arguments: Combination.all)
    func `S162: a group that deletes both ends of a denied pair in two parts restores the pair`(
        _ combination: Combination
    ) async throws {
        for isTrackFirst in [true, false] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack, model: try Self.tagged(.deny))
            let worker = await container.newBackgroundContext()
            let (track, tag) = await worker.perform { context in
                let (track, tag) = (context.insert("Track"), context.insert("Tag"))
                track.add(tag, to: "tags")
                return (track.objectID, tag.objectID)
            }
            try await worker.save(through: .store)
            await worker.perform { $0.undoHistory = UndoHistory() }
            try await worker.perform { context throws in
                let history = try #require(context.undoHistory)
                let order = isTrackFirst ? [track, tag] : [tag, track]
                try history.group { context.delete(try context.existingObject(with: order[0])) }
                context.delete(try context.existingObject(with: order[1]))
            }
            try await worker.save(through: .store)
            try await worker.perform { context throws in
                #expect(try context.undoHistory?.undo() == [])
                let tags = try context.existingObject(with: track).relatedObjects("tags").map(\.objectID)
                #expect(tags == [tag], "the track first: \(isTrackFirst)")
            }
            try await worker.save(through: .store)
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }

    /// Catches: a pair that stays in the group although the group has deleted its object, so that a redo misses the object.
    @Test(arguments: Combination.all, [false, true])
    func `S162: a group that adds a denied pair to an object and deletes the object can be redone`(
        _ combination: Combination, _ isTrackSaved: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(.deny))
        let worker = await container.newBackgroundContext()
        let (tag, saved) = await worker.perform { ($0.insert("Tag").objectID, $0.insert("Track").objectID) }
        try await worker.save(through: .store)
        for isLinkedLater in [false, true] {
            try await worker.perform { context throws in
                let history = UndoHistory()
                context.undoHistory = history
                let tag = try context.existingObject(with: tag)
                tag["name"] = "b"
                let track = isTrackSaved ? try context.existingObject(with: saved) : context.insert("Track")
                if !isLinkedLater { track.add(tag, to: "tags") }
                history.group {
                    if isLinkedLater { track.add(tag, to: "tags") }
                    context.delete(track)
                }
                context.processPendingChanges()
                for _ in 0..<2 {
                    let undone = try history.undo()
                    #expect(undone == [] && tag["name"] == "")
                    #expect(tag.relatedObjects("tracks") == [] && track.isDeleted != isTrackSaved)
                    let redone = try history.redo()
                    #expect(redone == [] && tag["name"] == "b" && track.isDeleted)
                }
                context.rollback()
                context.undoHistory = nil
            }
        }
        try await container.close()
    }

    /// Catches: a redo that is refused as a conflict, although no other context has changed anything. The save refuses the deletion.
    @Test(arguments: Combination.all)
    func `S162, S043: redoing a deletion that a rule denies leaves the decision to the save`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(.deny))
        let worker = await container.newBackgroundContext()
        let (track, tag) = await worker.perform { context in
            let (track, tag) = (context.insert("Track"), context.insert("Tag"))
            track.add(tag, to: "tags")
            return (track.objectID, tag.objectID)
        }
        try await worker.save(through: .store)
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { try $0.delete($0.existingObject(with: track)) }
        try await worker.perform { context throws in
            let history = try #require(context.undoHistory)
            #expect(try history.undo() == [])
            #expect(try history.redo() == [])
        }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        try await worker.perform { context throws in
            #expect(try context.undoHistory?.undo() == [])
            #expect(try context.existingObject(with: track).relatedObjects("tags").map(\.objectID) == [tag])
        }
        try await container.close()
    }

    /// Catches: an unsaved object that shows empty values after the cascade of a forced undo.
    @Test(arguments: Combination.all)
    func `S162, S054: an unsaved object that a forced undo deletes by a rule shows its last values`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(.cascade))
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            let history = UndoHistory()
            context.undoHistory = history
            let track = context.insert("Track")
            context.processPendingChanges()
            let tag = history.withoutRegistration {
                let tag = context.insert("Tag")
                tag["name"] = "last"
                track.add(tag, to: "tags")
                return tag
            }
            try history.undo(onConflict: .force)
            #expect(tag.isDeleted && tag["name"] == "last")
        }
        try await container.close()
    }

    /// Catches: the pair of two deleted objects that stays an unsaved change, and fails every later save.
    @Test(arguments: Combination.all, [false, true])
    func `S162, S050: a forced undo that deletes both ends of an unsaved pair can be saved`(
        _ combination: Combination, _ isTrackSaved: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: try Self.tagged(.cascade))
        let worker = await container.newBackgroundContext()
        let tag = await worker.perform { $0.insert("Tag").objectID }
        try await worker.save(through: .store)
        await worker.perform { $0.undoHistory = UndoHistory() }
        let track = await worker.perform { $0.insert("Track").objectID }
        if isTrackSaved { try await worker.save(through: .store) }
        try await worker.perform { context throws in
            try context.undoHistory?.withoutRegistration {
                try context.existingObject(with: track).add(try context.existingObject(with: tag), to: "tags")
            }
            try context.undoHistory?.undo(onConflict: .force)
        }
        try await worker.save(through: .store)
        #expect(try await container.read { try $0.fetch(EntityFetchRequest("Tag")).count } == 0)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a redo that leaves to the save what others have made impossible since the undo.
    @Test(arguments: StoreKind.allCases)
    func `S162: redoing a deletion that others have made impossible is a conflict`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.tagged(.deny))
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let (track, tag) = await worker.perform { ($0.insert("Track").objectID, $0.insert("Tag").objectID) }
        try await worker.save()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { try $0.delete($0.existingObject(with: track)) }
        try await worker.save()
        try await worker.perform { _ = try $0.undoHistory?.undo() }
        try await worker.save()
        try await other.perform { context throws in
            context.refreshAllObjects()
            try context.existingObject(with: track).add(try context.existingObject(with: tag), to: "tags")
        }
        try await other.save()
        try await worker.perform { context throws in
            context.refreshAllObjects()
            let history = try #require(context.undoHistory)
            #expect(throws: UndoError.self) { try history.redo() }
            #expect(try history.redo(onConflict: .skip).map(\.kind) == [.referenced])
            #expect(try context.fetch(EntityFetchRequest("Track")).count == 1)
        }
        try await worker.save()
        try await container.close()
    }

    /// Catches: a redo that removes a denied pair whose other end stays, because others have changed it.
    @Test(arguments: StoreKind.allCases)
    func `S162, S043: a redo that skips one end of a denied pair keeps the other end`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.tagged(.deny))
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let (track, tag) = await worker.perform { context in
            let (track, tag) = (context.insert("Track"), context.insert("Tag"))
            track.add(tag, to: "tags")
            return (track.objectID, tag.objectID)
        }
        try await worker.save()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { context throws in
            context.delete(try context.existingObject(with: track))
            context.delete(try context.existingObject(with: tag))
        }
        try await worker.save()
        try await worker.perform { _ = try $0.undoHistory?.undo() }
        try await worker.save()
        await other.perform { $0.refreshAllObjects() }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: tag)["name"] = .string("changed") }
        try await worker.perform { context throws in
            context.refreshAllObjects()
            let conflicts = try context.undoHistory?.redo(onConflict: .skip) ?? []
            #expect(Set(conflicts.map(\.objectID)) == [track, tag])
            #expect(try context.existingObject(with: track).relatedObjects("tags").map(\.objectID) == [tag])
        }
        try await worker.save()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }
}
