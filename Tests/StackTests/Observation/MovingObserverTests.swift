import Observation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Observers that save or move a context inside the notification of changes that the context is about to show.
@Suite @MainActor struct MovingObserverTests {
    private nonisolated static let rootMains = Combination.all.filter { $0.stack != .masterMainWorker && $0.stack != .hybrid }
    private nonisolated static let byTitle = EntityFetchRequest("Track", sortBy: [AttributeSort("title")])

    /// Runs `note` inside the first notification of what `read` reads. Returns a flag that is set then.
    private static func onChange(of read: () -> Void, _ note: @escaping @MainActor () throws -> Void) -> Flag {
        let notified = Flag()
        withObservationTracking {
            read()
        } onChange: {
            notified.set()
            MainActor.assumeIsolated {
                do { try note() } catch { Issue.record(error) }
            }
        }
        return notified
    }

    /// Saves tracks in the main context, and returns them.
    private static func makeTracks(_ titles: String..., in container: PersistentContainer) async throws -> [ManagedObject] {
        let tracks = titles.map { container.mainContext.makeTrack($0) }
        try await container.saveMain()
        return tracks
    }

    /// Lets another context rename a track and save it.
    private static func rename(_ track: ManagedObject, to title: String, in container: PersistentContainer) async throws {
        let id = track.objectID
        let other = container.coordinator.newBackgroundContext(name: "other")
        try await other.perform(andSave: .durable) { $0.object(with: id)["title"] = .string(title) }
    }

    /// Catches: a merge that moves the context back to the state before its observer's save.
    @Test(arguments: rootMains, [true, false])
    func `S031, S068, S142, S146: a context shows what an observer has saved while it merges`(
        _ combination: Combination, merges: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = merges
        let tracks = try await Self.makeTracks("b", "d", in: container)
        let results = try Results(Self.byTitle, context: main)
        tracks[1]["title"] = .string("a: own")
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) { try main.saveNow() }
        try await Self.rename(tracks[0], to: "c: other", in: container)
        main.refreshAllObjects()
        #expect(notified.wait(atMost: .zero))
        #expect(tracks.map(\.title) == ["c: other", "a: own"])
        #expect(!main.hasChanges && tracks[1].changedValues.isEmpty)
        let titles = try main.trackTitles()
        #expect(titles == ["a: own", "c: other"])
        #expect(results.map(\.title) == titles)
        // Differences of later changes begin with what the results show.
        tracks[0]["title"] = .string("0")
        main.processPendingChanges()
        #expect(results.map(\.title) == ["0", "a: own"])
        try await container.saveMain()
        #expect(try await container.read { try $0.trackTitles() } == ["0", "a: own"])
        try await container.close()
    }

    /// Catches: the end of a save that moves the context, or a child, back to the state before its observer has refreshed it.
    @Test(arguments: Combination.all)
    func `S068, S142, S146: a context that an observer refreshes while a save is shown stays at the newer state`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let (main, coordinator) = (container.mainContext, container.coordinator)
        main.automaticallyMergesChanges = false
        let tracks = try await Self.makeTracks("b", "d", "gone", in: container)
        let results = try Results(Self.byTitle, context: main)
        let child = main.newChild(name: "child")
        child.automaticallyMergesChanges = true
        let inherited = try Results(Self.byTitle, context: child)
        tracks[1]["title"] = .string("a: own")
        try await Self.rename(tracks[0], to: "c: other", in: container)
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) {
            _ = try coordinator.batchDeleteNow(EntityFetchRequest("Track", matching: .equal("title", "gone")))
            main.refreshAllObjects()
        }
        // The save moves main past the other one.
        try await container.saveMain()
        #expect(notified.wait(atMost: .zero))
        #expect(tracks[2].isDeleted && !main.hasChanges)
        let titles = try main.trackTitles()
        #expect(titles == ["a: own", "c: other"])
        #expect(results.map(\.title) == titles)
        try await until("the child has followed main") { inherited.map(\.title) == titles }
        #expect(try child.trackTitles() == titles)
        try await container.close()
    }

    /// Catches: a move to the parent's state from before the save that the child's observer has made meanwhile.
    @Test(arguments: Combination.all)
    func `S072, S074, S146: a child shows what an observer has saved to the parent while the child follows it`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let ids = try await Self.makeTracks("b", "d", in: container).map(\.objectID)
        let child = main.newChild(name: "child")
        child.automaticallyMergesChanges = true
        let results = try Results(Self.byTitle, context: child)
        let tracks = ids.map { child.object(with: $0) }
        tracks[1]["title"] = .string("a: own")
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) { try child.saveNow() }
        try await Self.rename(main.object(with: ids[0]), to: "c: other", in: container)
        main.refreshAllObjects()
        // The next use of the child moves it.
        child.processPendingChanges()
        #expect(notified.wait(atMost: .zero))
        #expect(tracks.map(\.title) == ["c: other", "a: own"])
        #expect(!child.hasChanges && main.hasChanges)
        #expect(results.map(\.title) == ["a: own", "c: other"])
        #expect(try main.trackTitles() == ["a: own", "c: other"])
        try await container.saveMain()
        child.processPendingChanges()
        #expect(results.map(\.title) == ["a: own", "c: other"])
        try await container.close()
    }

    /// Catches: a merge that leaves the snapshot which its observer has just chosen.
    @Test(arguments: StoreKind.allCases)
    func `S146, S150: a snapshot that an observer chooses while the context merges stays chosen`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let tracks = try await Self.makeTracks("b", in: container)
        let results = try Results(Self.byTitle, context: main)
        let kept = try container.coordinator.snapshot()
        try await Self.rename(tracks[0], to: "c: other", in: container)
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) { main.read(from: kept) }
        main.refreshAllObjects()
        #expect(notified.wait(atMost: .zero))
        #expect(tracks[0].title == "b" && results.map(\.title) == ["b"])
        #expect(main.snapshot.generation == kept.generation)
        main.refreshAllObjects()
        #expect(tracks[0].title == "c: other" && results.map(\.title) == ["c: other"])
        try await container.close()
    }

    /// Catches: a deletion that clears or deletes by references which an observer of the deletion has already replaced.
    @Test(arguments: Combination.all)
    func `S044, S045, S146: a deletion leaves the objects alone that its observers have moved to another object`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let (gone, other) = (main.insert("Artist"), main.insert("Artist"))
        let pupils = (0..<2).map { _ in main.insert("Artist") }
        let albums = (0..<2).map { _ in main.insert("Album") }
        for pupil in pupils { pupil.setRelatedObject("mentor", to: gone) }
        for album in albums { album.setRelatedObject("artist", to: gone) }
        try await container.saveMain()
        let isCleared = Self.onChange(of: { _ = pupils[0].relatedObject("mentor") }) {
            pupils[1].setRelatedObject("mentor", to: other)
        }
        // A cascade begins with the newest object.
        let isDeleted = Self.onChange(of: { _ = albums[1]["title"] }) { albums[0].setRelatedObject("artist", to: other) }
        main.delete(gone)
        #expect(isCleared.wait(atMost: .zero) && isDeleted.wait(atMost: .zero))
        #expect(pupils[0].relatedObject("mentor") == nil && pupils[1].relatedObject("mentor") === other)
        #expect(albums[1].isDeleted && !albums[0].isDeleted && albums[0].relatedObject("artist") === other)
        try await container.saveMain()
        #expect(try await container.read { try $0.count(EntityFetchRequest("Album")) } == 1)
        #expect(pupils[1].relatedObject("mentor") === other)
        try await container.close()
    }

    /// Catches: an undo that removes the group of an observer from the history and leaves the undone group there.
    @Test(arguments: rootMains, [true, false])
    func `S146, S162: a group that an observer of an undo makes or saves is undone after it`(
        _ combination: Combination, saves: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let tracks = try await Self.makeTracks("a", "b", in: container)
        let history = UndoHistory()
        main.undoHistory = history
        tracks[0]["title"] = "edited"
        main.processPendingChanges()
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) {
            tracks[1]["plays"] = 7
            if saves { try main.saveNow() } else { main.processPendingChanges() }
        }
        try history.undo()
        #expect(notified.wait(atMost: .zero))
        #expect(tracks[0].title == "a" && tracks[1]["plays"] == 7)
        try history.undo()
        #expect(tracks[0].title == "a" && tracks[1]["plays"] == 0 && !history.canUndo)
        for _ in 0..<2 { try history.redo() }
        #expect(tracks[0].title == "edited" && tracks[1]["plays"] == 7 && !history.canRedo)
        try await container.close()
    }

    /// Catches: a nested group that stays in its open group after the undo, because its observer's changes follow it there.
    @Test(arguments: StoreKind.allCases)
    func `S146, S162: a nested group is undone alone although an observer of its undo makes changes`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let tracks = try await Self.makeTracks("a", "b", in: container)
        let history = UndoHistory()
        main.undoHistory = history
        history.beginGroup("Outer")
        history.group("Title") { tracks[0]["title"] = "edited" }
        let notified = Self.onChange(of: { _ = tracks[0]["title"] }) {
            tracks[1]["plays"] = 7
            main.processPendingChanges()
        }
        try history.undoNestedGroup()
        #expect(notified.wait(atMost: .zero))
        history.endGroup()
        main.processPendingChanges()
        #expect(tracks[0].title == "a" && tracks[1]["plays"] == 7)
        // The outer group no longer has the title, so this change is no conflict.
        history.withoutRegistration { tracks[0]["title"] = "other" }
        try history.undo()
        #expect(tracks[0].title == "other" && tracks[1]["plays"] == 0)
        try await container.close()
    }
}
