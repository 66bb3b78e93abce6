import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Random changes of a main context, or of a child on the main actor that follows it: by itself, by other contexts and by its children. A
/// plain model says which properties differ after each step. Their observers must have been notified once, and no others.
@Suite @MainActor struct RandomObservationTests {
    @Test(arguments: Combination.all, [false, true])
    func `S081, S146: each step notifies once of each property that differs, and of no other`(
        _ combination: Combination, _ isInChild: Bool
    ) async throws {
        var random = SeededGenerator()
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let run = try await Run(container, isInChild: isInChild)
        for step in 0..<Rounds.of(50, long: 600) {
            let before = run.library.shown
            let action = try await run.step(&random)
            run.merge()
            let problems = run.differences(from: before)
            try #require(problems.isEmpty, "step \(step), \(action): \(problems), STRATA_SEED=\(random.seed)")
        }
    }
}

/// The expected content of a context: saved values, and unsaved values over them.
private struct Library {
    struct Pair: Hashable {
        var playlist: ObjectID
        var track: ObjectID
    }

    struct Content {
        var titles: [ObjectID: String] = [:]
        var albums: [ObjectID: ObjectID] = [:]
        var pairs: Set<Pair> = []
    }

    var saved = Content()
    var titles: [ObjectID: String] = [:]
    var albums: [ObjectID: ObjectID?] = [:]
    var pairs: [Pair: Bool] = [:]
    var inserted: Set<ObjectID> = []
    var deleted: Set<ObjectID> = []

    var shown: Content {
        var content = saved
        content.titles.merge(titles) { $1 }
        for (track, album) in albums { content.albums[track] = album }
        for (pair, isLinked) in pairs { if isLinked { content.pairs.insert(pair) } else { content.pairs.remove(pair) } }
        for track in deleted {
            content.titles[track] = nil
            content.albums[track] = nil
            content.pairs = content.pairs.filter { $0.track != track }
        }
        return content
    }

    /// The tracks without unsaved changes.
    var clean: [ObjectID] {
        saved.titles.keys.filter { track in
            titles[track] == nil && albums[track] == nil && !deleted.contains(track) && !pairs.keys.contains { $0.track == track }
        }.sorted()
    }

    mutating func dropUnsaved() {
        self = Library(saved: saved)
    }

    mutating func didSave() {
        self = Library(saved: shown)
    }
}

extension ObjectID {
    fileprivate static func < (a: ObjectID, b: ObjectID) -> Bool { (a.entity, a.key) < (b.entity, b.key) }
}

extension Sequence<ObjectID> {
    fileprivate func sorted() -> [ObjectID] { sorted(by: <) }
}

@MainActor
private final class Run {
    enum Property: Hashable, CaseIterable { case title, album, playlists, albumTracks, playlistTracks }

    struct Key: Hashable {
        var id: ObjectID
        var property: Property
    }

    private let container: PersistentContainer
    /// The context that is observed.
    private let context: ManagedObjectContext
    private let worker: BackgroundContext
    var library = Library()
    private var watches: [Key: Watch] = [:]
    private let albums: [ManagedObject]
    private let playlists: [ManagedObject]
    private var tracks: [ObjectID: ManagedObject] = [:]
    private var number = 0
    /// The tracks whose insertion the step rolled back.
    private var forgotten: Set<ObjectID> = []

    init(_ container: PersistentContainer, isInChild: Bool) async throws {
        self.container = container
        container.mainContext.mergePolicy = .objectTrump
        context = isInChild ? container.mainContext.newChild(name: "child") : container.mainContext
        if isInChild { context.automaticallyMergesChanges = true }
        worker = container.newBatchOperationContext()
        await worker.perform { $0.automaticallyMergesChanges = true }
        albums = (0..<3).map { [context] _ in context.insert("Album") }
        playlists = (0..<3).map { [context] _ in context.insert("Playlist") }
        for _ in 0..<8 { insert() }
        try await context.save(through: .store)
        library.didSave()
        for album in albums { watch(album, .albumTracks) { _ = album.relatedObjects("tracks") } }
        for playlist in playlists { watch(playlist, .playlistTracks) { _ = playlist.relatedObjects("tracks") } }
    }

    private func watch(_ object: ManagedObject, _ property: Property, _ read: @escaping @MainActor () -> Void) {
        watches[Key(id: object.objectID, property: property)] = Watch(read)
    }

    private func insert() {
        let track = context.makeTrack("new")
        tracks[track.objectID] = track
        library.titles[track.objectID] = "new"
        library.inserted.insert(track.objectID)
        watch(track, .title) { _ = track["title"] }
        watch(track, .album) { _ = track.relatedObject("album") }
        watch(track, .playlists) { _ = track.relatedObjects("playlists") }
    }

    // MARK: Steps

    /// Shows the saves of other contexts. In some stacks, main does not merge them by itself.
    func merge() {
        container.mainContext.refreshAllObjects()
        context.processPendingChanges()
    }

    func step(_ random: inout SeededGenerator) async throws -> String {
        number += 1
        forgotten = []
        let shown = library.shown
        let known = shown.titles.keys.sorted()
        guard let id = known.randomElement(using: &random), let track = tracks[id] else {
            insert()
            return "insert"
        }
        switch random.below(12) {
        case 0:
            insert()
            return "insert"
        case 1:
            let title = random.chance(20) ? shown.titles[id] ?? "" : "title \(number)"
            track["title"] = .string(title)
            if title != shown.titles[id] { library.titles[id] = title }
            return "set title"
        case 2: return setAlbum(track, random.chance(25) ? nil : albums[random.below(3)])
        case 3: return setTracks(of: albums[random.below(3)], known.filter { _ in random.chance(30) })
        case 4: return setPlaylist(playlists[random.below(3)], known.filter { _ in random.chance(30) })
        case 5:
            context.delete(track)
            delete(id)
            return "delete"
        case 6:
            forgotten = library.inserted
            library.dropUnsaved()
            context.rollback()
            return "rollback"
        case 7: return refresh(track)
        case 8, 9: return try await changeElsewhere(&random)
        case 10: return try await changeInChild(known.filter { _ in random.chance(40) }, random.below(3))
        default:
            try await context.save(through: .store)
            library.didSave()
            return "save"
        }
    }

    private func delete(_ id: ObjectID) {
        if library.inserted.contains(id) {
            library.titles[id] = nil
            library.albums[id] = nil
            library.pairs = library.pairs.filter { $0.key.track != id }
        } else {
            library.deleted.insert(id)
        }
    }

    private func setAlbum(_ track: ManagedObject, _ album: ManagedObject?) -> String {
        track.setRelatedObject("album", to: album)
        if library.shown.albums[track.objectID] != album?.objectID { library.albums[track.objectID] = .some(album?.objectID) }
        return "set album"
    }

    private func setTracks(of album: ManagedObject, _ ids: [ObjectID]) -> String {
        let shown = library.shown
        album.setRelatedObjects("tracks", to: ids.compactMap { tracks[$0] })
        for (track, owner) in shown.albums where owner == album.objectID && !ids.contains(track) {
            library.albums[track] = .some(nil)
        }
        for track in ids where shown.albums[track] != album.objectID { library.albums[track] = album.objectID }
        return "set tracks of an album"
    }

    private func setPlaylist(_ playlist: ManagedObject, _ ids: [ObjectID]) -> String {
        playlist.setRelatedObjects("tracks", to: ids.compactMap { tracks[$0] })
        for track in library.shown.titles.keys {
            setPair(.init(playlist: playlist.objectID, track: track), ids.contains(track))
        }
        return "set tracks of a playlist"
    }

    private func setPair(_ pair: Library.Pair, _ isLinked: Bool) {
        library.pairs[pair] = library.saved.pairs.contains(pair) == isLinked ? nil : isLinked
    }

    private func refresh(_ track: ManagedObject) -> String {
        context.refresh(track, mergeChanges: false)
        let id = track.objectID
        guard !library.inserted.contains(id) else { return "refresh of a new object" }
        library.titles[id] = nil
        library.albums[id] = nil
        library.pairs = library.pairs.filter { $0.key.track != id }
        return "refresh"
    }

    /// Changes saved tracks in a root context. Tracks with unsaved changes are not deleted, because the next save would write them again.
    private func changeElsewhere(_ random: inout SeededGenerator) async throws -> String {
        let title = "elsewhere \(number)"
        let titled = library.saved.titles.keys.sorted().filter { _ in random.chance(30) }
        let moved = library.clean.filter { _ in random.chance(30) }
        let album = random.chance(30) ? nil : albums[random.below(3)].objectID
        let deleted = library.clean.filter { _ in random.chance(10) }
        try await worker.perform(andSave: .durable) { context in
            context.mergePolicy = .objectTrump
            context.refreshAllObjects()
            for id in titled { context.object(with: id)["title"] = .string(title) }
            for id in moved { context.object(with: id).setRelatedObject("album", to: album.map { context.object(with: $0) }) }
            for id in deleted { context.delete(context.object(with: id)) }
        }
        for id in titled { library.saved.titles[id] = title }
        for id in moved { library.saved.albums[id] = album }
        for id in deleted {
            library.saved.titles[id] = nil
            library.saved.albums[id] = nil
            library.saved.pairs = library.saved.pairs.filter { $0.track != id }
        }
        return "save of another context"
    }

    private func changeInChild(_ ids: [ObjectID], _ playlist: Int) async throws -> String {
        let title = "child \(number)"
        let target = playlists[playlist].objectID
        let child = context.newBackgroundChild()
        try await child.perform(andSave: .durable) { context in
            for id in ids {
                let track = context.object(with: id)
                track["title"] = .string(title)
                context.object(with: target).add(track, to: "tracks")
            }
        }
        for id in ids {
            library.titles[id] = title
            setPair(.init(playlist: target, track: id), true)
        }
        return "save of a child"
    }

    // MARK: Comparing

    /// Returns the properties whose number of notifications is wrong, or whose value is not the expected one.
    func differences(from before: Library.Content) -> [String] {
        let after = library.shown
        var problems: [String] = []
        for (key, watch) in watches {
            let (old, new) = (value(key, before), value(key, after))
            let isNotified = old != new && !(forgotten.contains(key.id) && new == nil)
            let count = watch.take()
            // A track that did not exist before the step was observed in the midst of it.
            guard old != nil || count > 1 else { continue }
            if count != (isNotified ? 1 : 0) { problems.append("\(key): \(count) notifications, \(old ?? "-") → \(new ?? "-")") }
        }
        for (id, title) in after.titles where tracks[id]?["title"] != .string(title) { problems.append("title of \(id)") }
        for id in tracks.keys where forgotten.contains(id) || before.titles[id] == nil && after.titles[id] == nil {
            forget(id, unlessIn: library.deleted)
        }
        return problems
    }

    /// Ends the observation of a track that will not come back.
    private func forget(_ id: ObjectID, unlessIn deleted: Set<ObjectID>) {
        guard !deleted.contains(id) else { return }
        tracks[id] = nil
        for property in Property.allCases { watches[Key(id: id, property: property)] = nil }
    }

    /// Returns a property's value as text; nil if the object does not exist.
    private func value(_ key: Key, _ content: Library.Content) -> String? {
        switch key.property {
        case .albumTracks: return names(content.albums.filter { $0.value == key.id }.keys)
        case .playlistTracks: return names(content.pairs.filter { $0.playlist == key.id }.map(\.track))
        case .title: return content.titles[key.id]
        case .album: return content.titles[key.id].map { _ in names(content.albums[key.id].map { [$0] } ?? []) }
        case .playlists:
            return content.titles[key.id].map { _ in names(content.pairs.filter { $0.track == key.id }.map(\.playlist)) }
        }
    }

    private func names(_ ids: some Sequence<ObjectID>) -> String { ids.sorted().map { "\($0.key)" }.joined(separator: " ") }
}
