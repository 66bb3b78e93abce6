import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Undo of what others have changed since, and undo of one author's saves (S162).
@Suite struct UndoConflictTests {
    private static func kinds(_ error: (any Error)?) -> [UndoConflict.Kind] {
        if case UndoError.conflicts(let conflicts)? = error { conflicts.map(\.kind) } else { [] }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: a property that another context changed is a conflict, which is skipped or forced`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        for policy in [UndoPolicy.skip, .force] {
            let id = await worker.perform { context in
                context.undoHistory = nil
                return context.makeTrack("first", plays: 1).objectID
            }
            await worker.perform { $0.undoHistory = UndoHistory() }
            try await worker.perform { context throws in
                let track = try context.existingObject(with: id)
                track["title"] = "second"
                track["plays"] = 2
            }
            try await worker.save()
            await other.perform { $0.refreshAllObjects() }
            try await other.perform { try $0.existingObject(with: id)["plays"] = 7 }
            try await other.save()
            try await worker.perform { context throws in
                context.refreshAllObjects()
                let (track, history) = (try context.existingObject(with: id), try #require(context.undoHistory))
                let error = #expect(throws: UndoError.self) { try history.undo() }
                #expect(!context.hasChanges && history.canUndo)
                guard case .conflicts(let conflicts)? = error else { return }
                #expect(conflicts.map(\.objectID) == [id] && conflicts.map(\.property) == ["plays"])
                #expect(conflicts[0].expected == 2 && conflicts[0].present == 7 && conflicts[0].wanted == 1)
                #expect(
                    conflicts[0].description
                        == "Track(id: \(id.key)).plays was changed since: it is 7 instead of 2, and would become 1")
                #expect(try history.undo(onConflict: policy) == conflicts)
                #expect(track["title"] == "first" && track["plays"] == (policy == .skip ? 7 : 1))
                try history.redo()
                #expect(track["title"] == "second" && track["plays"] == 7)
            }
            try await worker.save()
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: objects that others deleted or related since are conflicts`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let track = await worker.perform { $0.makeTrack("t").objectID }
        try await worker.save()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { try $0.existingObject(with: track)["plays"] = 1 }
        let artist = await worker.perform { $0.makeArtist("artist").objectID }
        try await worker.save()
        let album = try await other.perform { context throws in
            context.refreshAllObjects()
            context.delete(try context.existingObject(with: track))
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: try context.existingObject(with: artist))
            return album.objectID
        }
        try await other.save()
        try await worker.perform { context throws in
            context.refreshAllObjects()
            let history = try #require(context.undoHistory)
            let related = #expect(throws: UndoError.self) { try history.undo() }
            #expect(Self.kinds(related) == [.referenced])
            #expect(try history.undo(onConflict: .skip).count == 1)
            #expect(try context.existingObject(with: album).relatedObject("artist") != nil && !context.hasChanges)
            let deleted = #expect(throws: UndoError.self) { try history.undo() }
            #expect(Self.kinds(deleted) == [.deleted])
            try history.undo(onConflict: .force)
            #expect(!context.hasChanges && !history.canUndo)
        }
        // A forced undo applies the delete rules, here a cascade.
        try await worker.perform { context throws in
            let second = context.makeArtist("second")
            context.processPendingChanges()
            context.undoHistory?.withoutRegistration {
                context.insert("Album").setRelatedObject("artist", to: second)
            }
            try context.undoHistory?.undo(onConflict: .force)
            #expect(try context.objects("Artist").count == 1 && context.objects("Album").count == 1)
            #expect(!context.hasChanges)
        }
    }

    @Test(arguments: Combination.parented)
    func `S162: a child's save is one group of its parent, also if it is saved through`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        await MainActor.run { container.mainContext.undoHistory = UndoHistory() }
        let child = await container.newBackgroundContext()
        for isThrough in [false, true] {
            await child.perform { _ = $0.makeTrack("a") }
            await child.perform { _ = $0.makeTrack("b") }
            if isThrough { try await child.save(through: .store) } else { try await child.save() }
            try await MainActor.run { () throws in
                let context = container.mainContext
                let history = try #require(context.undoHistory)
                #expect(try context.trackTitles() == ["a", "b"])
                try history.undo()
                #expect(try context.trackTitles() == [] && context.hasChanges == isThrough)
                try history.redo()
                #expect(try context.trackTitles() == ["a", "b"] && context.hasChanges == !isThrough)
                try history.undo()
                #expect(!history.canUndo)
            }
            try await container.saveMain()
            #expect(try await container.read { try $0.trackTitles() } == [])
        }
    }

    @Test(arguments: Combination.parented)
    func `S162, S062: a child's save that the store refuses is no group of the parent`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, routing: .ancestors)
        await MainActor.run { container.mainContext.undoHistory = UndoHistory() }
        let child = await container.newBackgroundContext()
        await child.perform { context in
            context.makeTrack("a")["isrc"] = "same"
            context.makeTrack("b")["isrc"] = "same"
        }
        await #expect(throws: SaveError.self) { try await child.save(through: .store) }
        try await MainActor.run { () throws in
            #expect(container.mainContext.undoHistory?.canUndo == false)
            #expect(try container.mainContext.trackTitles() == [] && !container.mainContext.hasChanges)
        }
        try await child.perform { try $0.objects("Track").first?["isrc"] = "other" }
        try await child.save(through: .store)
        try await MainActor.run { () throws in
            #expect(try container.mainContext.trackTitles() == ["a", "b"])
            try container.mainContext.undoHistory?.undo()
            #expect(try container.mainContext.trackTitles() == [])
        }
    }

    /// Catches: "would refer to the object with the key 3".
    @Test(arguments: StoreKind.allCases)
    func `S162, S172: a conflict of an undo names the member that others have deleted`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let ids = await ours.perform { context in
            let (playlist, track) = (context.insert("Playlist"), context.makeTrack("t"))
            playlist.add(track, to: "tracks")
            return [playlist, track].map(\.objectID)
        }
        try await ours.save()
        await ours.perform { $0.undoHistory = UndoHistory() }
        try await ours.perform { context throws in
            let (playlist, track) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            playlist.remove(track, from: "tracks")
        }
        try await ours.save()
        try await theirs.perform { context throws in
            context.refreshAllObjects()
            context.delete(try context.existingObject(with: ids[1]))
        }
        try await theirs.save()
        let conflicts = try await container.conflicts(undoing: ours, since: nil)
        let text = "Playlist(id: \(ids[0].key)) would refer to Track(id: \(ids[1].key)), which was deleted since"
        #expect(conflicts.map(\.description) == [text])
        try await container.close()
    }

    /// Calls `body` with a container in which "importer" has changed, inserted and deleted objects after the snapshot.
    private static func afterImport(
        _ kind: StoreKind,
        _ body: (PersistentContainer, _ ids: [ObjectID], _ editor: BackgroundContext, Snapshot) async throws -> Void
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (editor, importer) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        var ids = await editor.perform { context in
            context.transactionAuthor = "editor"
            let (album, playlist) = (context.insert("Album"), context.insert("Playlist"))
            let tracks = ["a", "b", "c"].map { context.makeTrack($0) }
            tracks[1].setRelatedObject("album", to: album)
            playlist.add(tracks[1], to: "tracks")
            return (tracks + [album, playlist]).map(\.objectID)
        }
        try await editor.save(.deferred)
        let before = try container.coordinator.snapshot(owner: "before the import")
        ids += try await importer.perform { [ids] context throws in
            context.transactionAuthor = "importer"
            context.refreshAllObjects()
            try context.existingObject(with: ids[0])["plays"] = 10
            context.delete(try context.existingObject(with: ids[1]))
            let track = context.makeTrack("imported")
            track.setRelatedObject("album", to: try context.existingObject(with: ids[3]))
            try context.existingObject(with: ids[4]).add(track, to: "tracks")
            try context.existingObject(with: ids[4]).add(try context.existingObject(with: ids[2]), to: "tracks")
            return [track.objectID]
        }
        try await importer.save(.deferred)
        await editor.perform { $0.refreshAllObjects() }
        try await editor.perform { [ids] in try $0.existingObject(with: ids[0])["title"] = "edited" }
        try await editor.save()
        try await body(container, ids, editor, before)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: the changes of one author are undone by one save, and those of others stay`(_ kind: StoreKind) async throws {
        try await Self.afterImport(kind) { container, ids, _, before in
            let saves = try await container.coordinator.history().count
            #expect(try await container.undoChanges(by: "importer", since: before) == [])
            #expect(try await container.coordinator.history().count == saves + 1)
            try await container.read { context throws in
                #expect(try context.trackTitles() == ["b", "c", "edited"])
                #expect(try context.existingObject(with: ids[0])["plays"] == 0)
                #expect(try context.existingObject(with: ids[1]).relatedObject("album")?.objectID == ids[3])
                #expect(try context.existingObject(with: ids[4]).relatedObjects("tracks").map(\.objectID) == [ids[1]])
                try IntegrityExplorer.check(context, "after undo")
            }
            #expect(try await container.undoChanges(by: "nobody", since: before) == [])
            #expect(try await container.coordinator.history().count == saves + 1)
        }
    }

    /// Catches: an insertion that its parent makes an update, without a look at what others have saved of the restored object.
    @Test(arguments: StoreKind.allCases)
    func `S100, S162: an object that a child restores conflicts with what others have saved of it since`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (parent, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await parent.perform { $0.makeTrack("t", plays: 1).objectID }
        try await parent.save()
        let before = try container.coordinator.snapshot(owner: "before the deletion")
        let child = await parent.newBackgroundChild()
        await child.perform { context in
            context.transactionAuthor = "child"
            context.undoHistory = UndoHistory()
        }
        try await child.perform { try $0.delete($0.existingObject(with: id)) }
        try await child.save(through: .store)
        try await child.perform { context throws in #expect(try context.undoHistory?.undo() == []) }
        // Others restore the object too, and change it. The parent passes these saves without a merge.
        try await container.undoChanges(by: "child", since: before)
        await other.perform { $0.refreshAllObjects() }
        try await other.perform(andSave: .durable) { try $0.existingObject(with: id)["plays"] = .int(7) }
        try await parent.perform(andSave: .durable) { _ = $0.makeTrack("unrelated") }
        await #expect(throws: SaveError.self) {
            try await child.save()
            try await parent.save()
        }
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == .int(7))
        try await container.close()
    }

    /// Catches: an undo that begins its history at the suspension, and says that there is nothing to undo.
    @Test(arguments: StoreKind.allCases)
    func `S162, S167: the undo of an author since a snapshot that a suspension has ended throws`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let importer = container.coordinator.newBackgroundContext()
        let before = try container.coordinator.snapshot(owner: "before the import")
        await importer.perform { context in
            context.transactionAuthor = "importer"
            _ = context.makeTrack("imported")
        }
        try await importer.save()
        try await container.suspend()
        await container.resume()
        let error = await #expect(throws: StoreError.self) {
            try await container.undoChanges(by: "importer", since: before)
        }
        #expect(error?.code == .suspended)
        #expect(try await container.read { try $0.trackTitles() } == ["imported"])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: what others changed after or before an author is a conflict`(_ kind: StoreKind) async throws {
        try await Self.afterImport(kind) { container, ids, editor, before in
            try await editor.perform { context throws in
                try context.existingObject(with: ids[0])["plays"] = 20
                try context.existingObject(with: ids[5])["rating"] = 5.0
            }
            try await editor.save()
            let error = await #expect(throws: UndoError.self) { try await container.undoChanges(by: "importer", since: before) }
            #expect(Self.kinds(error) == [.changed, .changed])
            let conflicts = try await container.undoChanges(by: "importer", since: before, onConflict: .skip)
            #expect(conflicts.map(\.property) == ["plays", "rating"])
            #expect(try await container.read { try $0.trackTitles() } == ["b", "c", "edited", "imported"])
            await #expect(throws: UndoError.self, "the importer has changed plays in between") {
                try await container.undoChanges(by: "editor", since: before)
            }
            try await container.undoChanges(by: "importer", since: before, onConflict: .force)
            #expect(try await container.read { try $0.trackTitles() } == ["b", "c", "edited"])
        }
    }

    /// Catches: a value of others between two values of the author that is lost without a conflict.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162: what others changed between two changes of an author is a conflict`(_ kind: StoreKind, _ isDeleted: Bool)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (author, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await other.perform { $0.makeTrack("t", plays: 1).objectID }
        try await other.save()
        let before = try container.coordinator.snapshot(owner: "before the changes")
        await author.perform { $0.transactionAuthor = "author" }
        for (context, plays) in [(author, 2), (other, 3), (author, 4)] {
            try await context.perform { context throws in
                context.refreshAllObjects()
                try context.existingObject(with: id)["plays"] = .int(Int64(plays))
            }
            try await context.save()
        }
        if isDeleted { try await author.perform(andSave: .durable) { try $0.delete($0.existingObject(with: id)) } }
        await #expect(throws: UndoError.self) { try await container.undoChanges(by: "author", since: before) }
        let conflicts = try await container.undoChanges(by: "author", since: before, onConflict: .force)
        let expected: UndoConflict.Kind = isDeleted ? .unknownValue : .changed
        #expect(conflicts.map(\.kind) == [expected] && conflicts.map(\.property) == ["plays"])
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == 1)
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    // MARK: Groups that span saves

    /// Changes a track in a group that stays open: the title from "A" to "B", and the plays from 1 to 2. Then another context gives it a
    /// title, and the group goes on with `last`. Calls `body` after the end of the group.
    private static func afterGroup(
        _ kind: StoreKind, theirs title: String, last: @escaping @Sendable (ManagedObjectContext, ManagedObject) -> Void,
        _ body: (_ ours: BackgroundContext, _ id: ObjectID, PersistentContainer) async throws -> Void
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("A", plays: 1).objectID }
        try await ours.save()
        try await ours.perform { context throws in
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup()
            let track = try context.existingObject(with: id)
            track["title"] = "B"
            track["plays"] = 2
        }
        try await ours.save()
        try await theirs.perform { context throws in
            context.refreshAllObjects()
            try context.existingObject(with: id)["title"] = .string(title)
        }
        try await theirs.save()
        try await ours.perform { context throws in
            context.refreshAllObjects()
            last(context, try context.existingObject(with: id))
            context.undoHistory?.endGroup()
        }
        try await body(ours, id, container)
        try await ours.save()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    /// Catches: a value of others between two changes of a group that is lost without a conflict.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162: what others changed between two changes of a group is a conflict`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        for policy in [UndoPolicy.skip, .force] {
            let last: @Sendable (ManagedObjectContext, ManagedObject) -> Void = { _, track in
                track["title"] = "D"
                track["plays"] = 3
            }
            try await Self.afterGroup(kind, theirs: "C", last: last) { ours, id, _ in
                if isSaved { try await ours.save() }
                try await ours.perform { context throws in
                    let (track, history) = (try context.existingObject(with: id), try #require(context.undoHistory))
                    let error = #expect(throws: UndoError.self) { try history.undo() }
                    #expect(Self.kinds(error) == [.changed] && track["title"] == "D" && track["plays"] == 3)
                    let conflicts = try history.undo(onConflict: policy)
                    #expect(conflicts.map(\.property) == ["title"] && conflicts.map(\.expected) == ["C"])
                    #expect(conflicts.map(\.present) == ["D"] && conflicts.map(\.wanted) == ["A"])
                    #expect(track["title"] == (policy == .skip ? "D" : "A") && track["plays"] == 1)
                    let redone = try history.redo()
                    #expect(redone == [] && track["title"] == "D" && track["plays"] == 3)
                    let undone = try history.undo()
                    #expect(undone == [] && track["title"] == (policy == .skip ? "D" : "A") && track["plays"] == 1)
                }
            }
        }
    }

    /// Catches: a conflict about a value that the undo restores anyway.
    @Test(arguments: StoreKind.allCases)
    func `S162: a value that others restored between two changes of a group is no conflict`(_ kind: StoreKind) async throws {
        try await Self.afterGroup(kind, theirs: "A", last: { _, track in track["title"] = "D" }) { ours, id, _ in
            try await ours.perform { context throws in
                let conflicts = try context.undoHistory?.undo()
                let track = try context.existingObject(with: id)
                #expect(conflicts == [] && track["title"] == "A" && track["plays"] == 1)
            }
        }
    }

    /// Catches: a deletion that hides what others saved before it, and one that keeps what the group itself saved before it.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162: what others changed before a group deleted the object is a conflict`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        for policy in [UndoPolicy.skip, .force] {
            try await Self.afterGroup(kind, theirs: "C", last: { $0.delete($1) }) { ours, id, _ in
                if isSaved { try await ours.save() }
                try await ours.perform { context throws in
                    let history = try #require(context.undoHistory)
                    let error = #expect(throws: UndoError.self) { try history.undo() }
                    #expect(Self.kinds(error) == [.changed])
                    let conflicts = try history.undo(onConflict: policy)
                    #expect(conflicts.map(\.property) == ["title"] && conflicts.map(\.wanted) == ["A"])
                    let track = try context.existingObject(with: id)
                    #expect(track["title"] == (policy == .skip ? "C" : "A") && track["plays"] == 1)
                }
            }
        }
    }

    /// Catches: an undo that keeps what the group itself has saved, or that replaces what others have saved after the deletion was made.
    @Test(arguments: StoreKind.allCases, ["B", "C"])
    func `S162: an undone group restores what it has saved before it deleted the object`(
        _ kind: StoreKind, _ title: String
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("A").objectID }
        try await ours.save()
        try await ours.perform { context throws in
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup()
            try context.existingObject(with: id)["title"] = "B"
        }
        try await ours.save()
        try await ours.perform { context throws in
            context.delete(try context.existingObject(with: id))
            context.undoHistory?.endGroup()
        }
        try await theirs.perform { context throws in
            context.refreshAllObjects()
            let track = try context.existingObject(with: id)
            track["title"] = .string(title)
            track["plays"] = 7
        }
        try await theirs.save()
        try await ours.perform { context throws in
            context.refreshAllObjects()
            let conflicts = try context.undoHistory?.undo(onConflict: .skip)
            let expected: [String?] = title == "B" ? [] : ["title"]
            #expect(conflicts?.map(\.property) == expected)
            let track = try context.existingObject(with: id)
            #expect(track["title"] == (title == "B" ? "A" : "C") && track["plays"] == 7)
        }
        try await ours.save()
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases, [true, false])
    func `S162: in a group, a dropped change counts as one of others, and an unsaved value that stays in a merge as own`(
        _ kind: StoreKind, _ isDropped: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await ours.perform { $0.makeTrack("A").objectID }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        await ours.perform { context in
            context.undoHistory = UndoHistory()
            context.undoHistory?.beginGroup()
            context.object(with: id)["title"] = "B"
        }
        if isDropped { try await ours.save() }
        await (isDropped ? ours : theirs).perform { $0.object(with: id)["title"] = "C" }
        if !isDropped { try await theirs.save() }
        try await ours.perform { context throws in
            let track = context.object(with: id)
            if isDropped { context.refresh(track, mergeChanges: false) } else { context.refreshAllObjects() }
            #expect(track["title"] == "B")
            track["title"] = "D"
            context.undoHistory?.endGroup()
            let conflicts = try context.undoHistory?.undo(onConflict: .skip)
            #expect(conflicts?.map(\.property) == (isDropped ? ["title"] : []))
            #expect(track["title"] == (isDropped ? "D" : "A"))
        }
    }

    /// Catches: the same for an object and a keyed value that the group has inserted, which an undo removes.
    @Test(arguments: StoreKind.allCases)
    func `S162: what others changed in an object that a group inserted and changed again is a conflict`(
        _ kind: StoreKind
    ) async throws {
        for policy in [UndoPolicy.skip, .force] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
            let id = try await ours.perform { context throws in
                context.undoHistory = UndoHistory()
                context.undoHistory?.beginGroup()
                try context.collection("scores", of: Int.self).setValue(1, forKey: "key")
                return context.makeTrack("t", plays: 1).objectID
            }
            try await ours.save()
            for (context, number) in [(theirs, 2), (ours, 3)] {
                try await context.perform { context throws in
                    context.refreshAllObjects()
                    try context.existingObject(with: id)["plays"] = .int(Int64(number))
                    try context.collection("scores", of: Int.self).setValue(number, forKey: "key")
                }
                try await context.save()
            }
            try await ours.perform { context throws in
                let history = try #require(context.undoHistory)
                history.endGroup()
                let error = #expect(throws: UndoError.self) { try history.undo() }
                #expect(Self.kinds(error) == [.changed, .changed])
                let conflicts = try history.undo(onConflict: policy)
                #expect(conflicts.count == 2)
                let score = try context.collection("scores", of: Int.self).value(forKey: "key")
                let (expected, titles): (Int?, [String]) = policy == .skip ? (3, ["t"]) : (nil, [])
                let shown = try context.trackTitles()
                #expect(score == expected && shown == titles)
            }
            try await ours.save()
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }

    /// Catches: an undo that takes an object away from the one that has got it since, and changes only one of the two ends.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S162, S052: a pair that another context has made since is skipped at both ends`(
        _ kind: StoreKind, _ isByAuthor: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let ids = await worker.perform { context in
            let (a, b, profile) = (context.makeArtist("a"), context.makeArtist("b"), context.insert("Profile"))
            a.setRelatedObject("profile", to: profile)
            return [a, b, profile].map(\.objectID)
        }
        try await worker.save()
        let before = try container.coordinator.snapshot(owner: "before the change")
        try await worker.perform { context throws in
            context.transactionAuthor = "worker"
            context.undoHistory = UndoHistory()
            try context.existingObject(with: ids[0]).setRelatedObject("profile", to: nil)
        }
        try await worker.save()
        try await other.perform { context throws in
            context.refreshAllObjects()
            let profile = try context.existingObject(with: ids[2])
            try context.existingObject(with: ids[1]).setRelatedObject("profile", to: profile)
        }
        try await other.save()
        let conflicts: [UndoConflict]
        if isByAuthor {
            conflicts = try await container.undoChanges(by: "worker", since: before, onConflict: .skip)
        } else {
            conflicts = try await worker.perform { context throws in
                context.refreshAllObjects()
                let history = try #require(context.undoHistory)
                return try history.undo(onConflict: .skip)
            }
        }
        #expect(conflicts.map(\.objectID) == [ids[2]] && conflicts.map(\.property) == ["artist"])
        #expect(await worker.perform { !$0.hasChanges })
        try await worker.perform { context throws in
            context.refreshAllObjects()
            let objects = try ids.map { try context.existingObject(with: $0) }
            #expect(objects[0].relatedObject("profile") == nil && objects[1].relatedObject("profile") === objects[2])
            #expect(objects[2].relatedObject("artist") === objects[1])
        }
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    // MARK: Two contexts that restore one object

    /// Found by the exploration: SQLite refused the save, because the object was inserted a second time.
    @Test(arguments: StoreKind.allCases)
    func `S162, S074: an object that a child and its parent restore is one object`(_ kind: StoreKind) async throws {
        for through in [false, true] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let root = container.coordinator.newBackgroundContext()
            let id = await root.perform { $0.makeTrack("first").objectID }
            try await root.save()
            await root.perform { $0.undoHistory = UndoHistory() }
            let child = await root.perform { $0.newBackgroundChild() }
            try await child.perform { context throws in
                context.undoHistory = UndoHistory()
                context.delete(try context.existingObject(with: id))
            }
            try await child.save()
            try await root.perform { _ = try $0.undoHistory?.undo() }
            try await child.perform { _ = try $0.undoHistory?.undo() }
            try await child.perform { try $0.existingObject(with: id)["title"] = "second" }
            if through {
                try await child.save(through: .store)
            } else {
                try await child.save()
                await root.perform { context in
                    #expect(context.insertedObjects.isEmpty && context.updatedObjects.map(\.objectID) == [id])
                }
                try await root.save()
            }
            #expect(try await container.read { try $0.trackTitles() } == ["second"])
            #expect(try await container.coordinator.history().last?.changes.map(\.kind) == [.update])
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
            withExtendedLifetime(bed) {}
        }
    }

    /// Catches: an insertion that becomes an update of every property, and so takes back what the parent has changed.
    @Test(arguments: StoreKind.allCases)
    func `S162, S075: an object that a child restores keeps what its parent has changed meanwhile`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let parent = container.coordinator.newBackgroundContext()
        let id = await parent.perform { $0.makeTrack("t", plays: 1).objectID }
        try await parent.save()
        let child = await parent.newBackgroundChild()
        try await child.perform { context throws in
            context.automaticallyMergesChanges = false
            context.undoHistory = UndoHistory()
            context.delete(try context.existingObject(with: id))
        }
        try await child.save()
        try await parent.perform { context throws in
            context.rollback()
            try context.existingObject(with: id)["plays"] = 7
        }
        try await child.perform { context throws in
            let conflicts = try context.undoHistory?.undo()
            #expect(conflicts == [])
            try context.existingObject(with: id)["title"] = "restored"
        }
        try await child.save()
        try await parent.save()
        let shown = try await container.read { context throws in
            let track = try context.existingObject(with: id)
            return [track["title"], track["plays"]]
        }
        #expect(shown == ["restored", 7])
        #expect(try container.coordinator.store.verify() == [])
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S162, S100: two roots that restore one object are in conflict about it`(_ kind: StoreKind) async throws {
        let policies: [(MergePolicy, String?)] = [
            (.error, nil), (.storeTrump, "first"), (.rollback, "first"), (.objectTrump, "second"), (.overwrite, "second"),
        ]
        for (policy, expected) in policies {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let root = container.coordinator.newBackgroundContext()
            let id = await root.perform { $0.makeTrack("first").objectID }
            try await root.save()
            let before = try container.coordinator.snapshot()
            try await root.perform { context throws in
                context.mergePolicy = policy
                context.transactionAuthor = "deleter"
                context.undoHistory = UndoHistory()
                context.delete(try context.existingObject(with: id))
            }
            try await root.save()
            try await container.undoChanges(by: "deleter", since: before)
            try await root.perform { context throws in
                _ = try context.undoHistory?.undo()
                try context.existingObject(with: id)["title"] = "second"
            }
            if let expected {
                try await root.save()
                #expect(try await container.read { try $0.trackTitles() } == [expected], "\(policy)")
            } else {
                let error = await #expect(throws: SaveError.self) { try await root.save() }
                guard case .conflicts(let conflicts) = error else { return _ = Issue.record("\(error as Any)") }
                #expect(conflicts.map(\.objectID) == [id])
                await root.perform { $0.refreshAllObjects() }
                try await root.save()
                #expect(try await container.read { try $0.trackTitles() } == ["second"], "after a merge, ours counts")
            }
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
            withExtendedLifetime(bed) {}
        }
    }

    /// Catches: a deletion that only takes the own restoration back, so that no save deletes what others have saved again.
    @Test(arguments: StoreKind.allCases)
    func `S162, S007: an object that two roots have restored is an object that exists, also for a deletion`(_ kind: StoreKind)
        async throws
    {
        for deletesBefore in [false, true] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let root = container.coordinator.newBackgroundContext()
            let id = await root.perform { $0.makeTrack("first").objectID }
            try await root.save()
            let before = try container.coordinator.snapshot()
            try await root.perform { context throws in
                context.transactionAuthor = "deleter"
                context.undoHistory = UndoHistory()
                context.delete(try context.existingObject(with: id))
            }
            try await root.save()
            try await container.undoChanges(by: "deleter", since: before)
            try await root.perform { context throws in
                _ = try context.undoHistory?.undo()
                if deletesBefore { context.delete(try context.existingObject(with: id)) }
            }
            try await root.perform { context throws in
                context.refreshAllObjects()
                // The restoration and its deletion have cancelled each other.
                let titles = try context.trackTitles()
                #expect(titles == ["first"] && !context.hasChanges, "deleted before the merge: \(deletesBefore)")
                context.delete(try context.existingObject(with: id))
            }
            try await root.save()
            #expect(try await container.read { try $0.trackTitles() } == [], "deleted before the merge: \(deletesBefore)")
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
            withExtendedLifetime(bed) {}
        }
    }

    /// Catches: an undone deletion that takes back what another context has saved, without a conflict.
    @Test(arguments: StoreKind.allCases)
    func `S162: an undone deletion keeps what another context has saved meanwhile`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (worker, other) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let id = await worker.perform { $0.makeTrack("t", plays: 1).objectID }
        try await worker.save()
        await worker.perform { $0.undoHistory = UndoHistory() }
        try await worker.perform { context throws in
            let track = try context.existingObject(with: id)
            track["title"] = "own"
            context.delete(track)
        }
        await other.perform { $0.refreshAllObjects() }
        try await other.perform { try $0.existingObject(with: id)["plays"] = 7 }
        try await other.save()
        try await worker.perform { context throws in
            context.refreshAllObjects()
            try context.undoHistory?.undo()
            let track = try context.existingObject(with: id)
            #expect(track["plays"] == 7 && ["t", "own"].contains(track["title"]))
        }
        try await worker.save()
        #expect(try await container.read { try $0.existingObject(with: id)["plays"] } == 7)
    }
}

extension PersistentContainer {
    /// Returns the conflicts of an undo of the newest group of a context or, with a snapshot, of the saves of the author "ours" since it.
    func conflicts(undoing worker: BackgroundContext, since before: Snapshot?) async throws -> [UndoConflict] {
        do {
            if let before {
                try await undoChanges(by: "ours", since: before)
            } else {
                try await worker.perform { context throws in
                    context.refreshAllObjects()
                    _ = try context.undoHistory?.undo()
                }
            }
        } catch UndoError.conflicts(let conflicts) {
            return conflicts
        }
        return []
    }
}
