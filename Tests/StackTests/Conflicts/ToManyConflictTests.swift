import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct ToManyConflictTests {
    private static func setTracks(_ titles: [String], _ name: String, of playlist: ObjectID, in context: BackgroundContext)
        async throws
    {
        try await context.perform { context throws in
            let playlist = try context.existingObject(with: playlist)
            playlist["name"] = .string(name)
            playlist.setRelatedObjects(
                "tracks", to: try context.objects("Track").filter { titles.map { .string($0) }.contains($0["title"]) })
        }
    }

    private static func state(_ playlist: ObjectID, in context: BackgroundContext) async throws -> (name: Value, tracks: [Value])
    {
        try await context.perform { context throws in
            let playlist = try context.existingObject(with: playlist)
            let titles = playlist.relatedObjects("tracks").map { $0["title"] }
            return (playlist["name"], titles.sorted { $0.order($1) < 0 })
        }
    }

    /// One context replaces b by c, and the other adds d. Both rename the playlist.
    @Test(arguments: StoreKind.allCases, [MergePolicy.storeTrump, .objectTrump])
    func `S107: conflicting changes of a to-many relationship merge as differences of sets`(
        _ kind: StoreKind, _ policy: MergePolicy
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let ours = container.coordinator.newBackgroundContext()
        let theirs = container.coordinator.newBackgroundContext()
        let id = await ours.perform { context in
            context.mergePolicy = policy
            let tracks = ["a", "b", "c", "d"].map { context.makeTrack($0) }
            let playlist = context.insert("Playlist")
            playlist["name"] = .string("base")
            playlist.setRelatedObjects("tracks", to: Array(tracks[..<2]))
            return playlist.objectID
        }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        try await Self.setTracks(["a", "c"], "ours", of: id, in: ours)
        try await Self.setTracks(["a", "b", "d"], "theirs", of: id, in: theirs)
        try await theirs.save()
        try await ours.save()
        let reader = container.coordinator.newBackgroundContext()
        for context in [ours, reader] {
            let state = try await Self.state(id, in: context)
            #expect(state.tracks == ["a", "c", "d"].map { .string($0) })
            if case .objectTrump = policy {
                #expect(state.name == .string("ours"))
            } else {
                #expect(state.name == .string("theirs"))
            }
        }
    }

    /// A step after which a context's changes so far are immutable.
    enum Seal: CaseIterable, Sendable {
        case child, undo, preview

        func apply(to context: BackgroundContext) async {
            switch self {
            case .child: _ = await context.newBackgroundChild()
            // The end of the block has ended an undo group.
            case .undo: break
            case .preview: _ = await context.previewSave()
            }
        }
    }

    /// Returns two roots that know a playlist and a track.
    private static func related(
        _ container: PersistentContainer, _ linked: Bool
    ) async throws -> (ours: BackgroundContext, theirs: BackgroundContext, ids: [ObjectID]) {
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let ids = await ours.perform { context in
            let (track, playlist) = (context.makeTrack("t"), context.insert("Playlist"))
            playlist["name"] = "base"
            if linked { playlist.add(track, to: "tracks") }
            return [playlist.objectID, track.objectID]
        }
        try await ours.save()
        await theirs.perform { $0.refreshAllObjects() }
        return (ours, theirs, ids)
    }

    private static func set(_ linked: Bool, _ ids: [ObjectID], in context: BackgroundContext) async throws {
        try await context.perform { context throws in
            let (playlist, track) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            if linked { playlist.add(track, to: "tracks") } else { playlist.remove(track, from: "tracks") }
        }
    }

    private static func isLinked(_ ids: [ObjectID], in context: BackgroundContext) async throws -> Bool {
        try await context.perform { try !$0.existingObject(with: ids[0]).relatedObjects("tracks").isEmpty }
    }

    /// Catches: a removal that was left of a pair that was added and removed again, and that removed the pair of another context.
    @Test(arguments: StoreKind.allCases, Seal.allCases)
    func `S032, S107: a pair that is changed and changed back stays as others save it`(_ kind: StoreKind, _ seal: Seal)
        async throws
    {
        for (linked, merges) in [(false, false), (false, true), (true, false), (true, true)] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, theirs, ids) = try await Self.related(container, linked)
            if seal == .undo { await ours.perform { $0.undoHistory = UndoHistory() } }
            try await Self.set(!linked, ids, in: ours)
            await seal.apply(to: ours)
            try await Self.set(linked, ids, in: ours)
            #expect(await ours.perform { !$0.hasChanges }, "nothing is left of it")
            try await Self.set(!linked, ids, in: theirs)
            try await theirs.save()
            if merges {
                await ours.perform { $0.refreshAllObjects() }
                #expect(try await Self.isLinked(ids, in: ours) == !linked)
            }
            try await ours.perform { try $0.existingObject(with: ids[0])["name"] = "ours" }
            try await ours.save()
            for context in [ours, container.coordinator.newBackgroundContext()] {
                #expect(try await Self.isLinked(ids, in: context) == !linked)
            }
            #expect(try container.coordinator.store.verify().isEmpty)
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S162: changing a pair and changing it back are two steps of undo`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, _, ids) = try await Self.related(container, false)
        await ours.perform { $0.undoHistory = UndoHistory() }
        for linked in [true, false] { try await Self.set(linked, ids, in: ours) }
        for (isRedo, linked) in [(false, true), (false, false), (true, true), (true, false)] {
            try await ours.perform { context throws in
                let history = try #require(context.undoHistory)
                if isRedo { try history.redo() } else { try history.undo() }
            }
            #expect(try await Self.isLinked(ids, in: ours) == linked)
            #expect(await ours.perform { $0.hasChanges } == linked)
        }
    }

    /// Catches: a child's removal of a pair that only the child has added, which removed the parent's own pair.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S075, S107: a child that adds and removes a pair leaves its parent's pair alone`(
        _ kind: StoreKind, _ savesThrough: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (parent, theirs, ids) = try await Self.related(container, false)
        let child = await parent.newBackgroundChild()
        try await Self.set(true, ids, in: child)
        _ = await child.newBackgroundChild()
        try await Self.set(false, ids, in: child)
        try await Self.set(true, ids, in: parent)
        if savesThrough { try await child.save(through: .store) } else { try await child.save() }
        #expect(try await Self.isLinked(ids, in: parent))
        try await parent.save()
        await theirs.perform { $0.refreshAllObjects() }
        #expect(try await Self.isLinked(ids, in: theirs))
    }

    /// Catches: a removal by a child of a pair that its parent has added unsaved, which removed the pair of another context.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S107: a pair that a parent adds and its child removes stays as others save it`(
        _ kind: StoreKind, _ isInParent: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (parent, theirs, ids) = try await Self.related(container, false)
        if isInParent { try await Self.set(true, ids, in: parent) }
        try await parent.perform { try $0.existingObject(with: ids[0])["name"] = "parent" }
        let child = await parent.newBackgroundChild()
        if !isInParent { try await Self.set(true, ids, in: child) }
        let grandchild = await child.newBackgroundChild()
        try await Self.set(false, ids, in: grandchild)
        try await grandchild.save()
        try await Self.set(true, ids, in: theirs)
        try await theirs.save()
        try await child.save(through: .store)
        await theirs.perform { $0.refreshAllObjects() }
        #expect(try await Self.isLinked(ids, in: theirs))
    }
}
