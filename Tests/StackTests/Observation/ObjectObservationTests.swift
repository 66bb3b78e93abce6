import Observation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

@Suite @MainActor struct ObjectObservationTests {
    private static func text(_ value: Value) -> String { if case .string(let text) = value { text } else { "" } }

    @Test(arguments: StoreKind.allCases)
    func `S146: observers of a property are notified before it is set, and not of an equal value`(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let track = container.mainContext.makeTrack("a")
        var seen: [Value] = []
        let title = Watch({ _ = track["title"] }, note: { seen.append(track["title"]) })
        let plays = Watch { _ = track["plays"] }
        track["title"] = .string("a")
        #expect(title.count == 0)
        track["title"] = .string("b")
        #expect(title.count == 1 && plays.count == 0)
        #expect(seen == [.string("a")])
        track["plays"] = .int(1)
        #expect(title.count == 1 && plays.count == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: setting one end of a relationship notifies the observers of every end once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (old, new) = (main.insert("Album"), main.insert("Album"))
        let tracks = (0..<3).map { main.makeTrack("\($0)") }
        old.setRelatedObjects("tracks", to: tracks)
        let watches = [old, new].map { album in Watch { _ = album.relatedObjects("tracks") } }
        let ends = tracks.map { track in Watch { _ = track.relatedObject("album") } }
        new.setRelatedObjects("tracks", to: tracks)
        #expect(watches.map(\.count) == [1, 1] && ends.map(\.count) == [1, 1, 1])
        tracks[0].setRelatedObject("album", to: nil)
        #expect(watches.map(\.count) == [1, 2] && ends.map(\.count) == [2, 1, 1])
        main.delete(tracks[1])
        #expect(watches.map(\.count) == [1, 3] && ends.map(\.count) == [2, 2, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: deleting a member notifies the observers of a relationship without an inverse`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Shelf.model)
        let main = container.mainContext
        let (list, saved, new) = (main.insert("Playlist"), main.insert("Track"), main.insert("Track"))
        list.setRelatedObjects("items", to: [saved])
        try await main.save()
        list.add(new, to: "items")
        let watch = Watch { _ = list.relatedObjects("items") }
        main.delete(saved)
        #expect(watch.count == 1)
        main.delete(new)
        #expect(watch.count == 2)
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: the ends of a one-to-one relationship are notified when a partner changes`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let artists = [main.makeArtist("a"), main.makeArtist("b")]
        let profiles = [main.insert("Profile"), main.insert("Profile")]
        for (artist, profile) in zip(artists, profiles) { artist.setRelatedObject("profile", to: profile) }
        let watches =
            artists.map { artist in Watch { _ = artist.relatedObject("profile") } }
            + profiles.map { profile in Watch { _ = profile.relatedObject("artist") } }
        artists[0].setRelatedObject("profile", to: profiles[1])
        #expect(watches.map(\.count) == [1, 1, 1, 1])
        #expect(artists[1].relatedObject("profile") == nil && profiles[0].relatedObject("artist") == nil)
    }

    @Test(arguments: Combination.all)
    func `S146: a save of another context notifies once per changed property`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let album = main.insert("Album")
        let (changed, other) = (main.makeTrack("a"), main.makeTrack("b"))
        changed.setRelatedObject("album", to: album)
        try await container.saveMain()
        let watches = [
            Watch { _ = changed["title"] }, Watch { _ = changed["plays"] }, Watch { _ = other["title"] },
            Watch { _ = album.relatedObjects("tracks") },
        ]
        let id = changed.objectID
        let worker = container.newBackgroundContext()
        try await worker.perform(andSave: .durable) { context in
            let track = context.object(with: id)
            for title in ["x", "y"] { track["title"] = .string(title) }
            track.setRelatedObject("album", to: nil)
        }
        try await until("the main context shows the save") { changed["title"] == .string("y") }
        #expect(watches.map(\.count) == [1, 0, 0, 1])
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: the deletion of an object by another context notifies of every property`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let track = main.makeTrack("a")
        try await main.save()
        let watches = [Watch { _ = track["title"] }, Watch { _ = track.relatedObject("album") }, Watch { _ = track.isDeleted }]
        let id = track.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.delete($0.object(with: id)) }
        try await until("the main context shows the deletion") { track.isDeleted }
        #expect(watches.map(\.count) == [1, 1, 1])
        #expect(track["title"] == .string(""))
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: rolling back and refreshing notify of the properties that get other values`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (track, other) = (main.makeTrack("a"), main.makeTrack("b"))
        try await main.save()
        let watches = [Watch { _ = track["title"] }, Watch { _ = track["plays"] }, Watch { _ = other["title"] }]
        track["title"] = .string("x")
        other["title"] = .string("y")
        main.refresh(track, mergeChanges: false)
        #expect(watches.map { $0.take() } == [2, 0, 1])
        track["title"] = .string("x")
        main.delete(other)
        #expect(watches.map { $0.take() } == [1, 0, 1])
        main.rollback()
        #expect(watches.map { $0.take() } == [1, 0, 1])
        #expect(track["title"] == .string("a") && other["title"] == .string("b") && !other.isDeleted)
    }

    @Test(arguments: StoreKind.allCases)
    func `S146, S151: reading another snapshot notifies of the properties that have other values in it`(_ kind: StoreKind)
        async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let (track, other) = (main.makeTrack("a"), main.makeTrack("b"))
        try await main.save()
        let before = try container.coordinator.snapshot()
        let id = track.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.object(with: id)["title"] = .string("x") }
        try await until("the main context shows the save") { track["title"] == .string("x") }
        let after = try container.coordinator.snapshot()
        let watches = [Watch { _ = track["title"] }, Watch { _ = track["plays"] }, Watch { _ = other["title"] }]
        for (snapshot, title) in [(before, "a"), (after, "x"), (before, "a")] {
            main.read(from: snapshot)
            #expect(watches.map { $0.take() } == [1, 0, 0])
            #expect(track["title"] == .string(title) && other["title"] == .string("b"))
        }
        // The same state again has no other values.
        main.read(from: before)
        #expect(watches.map { $0.take() } == [0, 0, 0])
        withExtendedLifetime(container) {}
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: Observations emits the values of several saves in their order`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let track = main.makeTrack("0")
        try await main.save()
        let id = track.objectID
        // With `@MainActor in`, Swift 6.3 crashes.
        let values = Observations { Self.text(track["title"]) }
        let worker = container.newBackgroundContext()
        var seen: [String] = []
        for await value in values {
            seen.append(value)
            if seen.count == 4 { break }
            let next = "\(seen.count)"
            try await worker.perform(andSave: .durable) { $0.object(with: id)["title"] = .string(next) }
        }
        #expect(seen == ["0", "1", "2", "3"])
    }

    @Test(arguments: Combination.all)
    func `S146: Observations emits one value per step: of a change, a refresh, a rollback, and a save of another context`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let main = container.mainContext
        let track = main.makeTrack("0")
        try await container.saveMain()
        let (id, worker) = (track.objectID, container.newBackgroundContext())
        let assign = { (number: Int64) in
            track["title"] = .string("\(number)")
            track["plays"] = .int(number)
        }
        // With `@MainActor in`, Swift 6.3 crashes.
        let values = Observations { "\(Self.text(track["title"])) \(track["plays"] == .int(0))" }
        var seen: [String] = []
        for await value in values {
            seen.append(value)
            switch seen.count {
            case 1, 4: assign(Int64(seen.count))
            case 2: track["title"] = .string("2")
            case 3: main.refresh(track, mergeChanges: false)
            case 5: main.rollback()
            case 6:
                try await worker.perform(andSave: .durable) { context in
                    let track = context.object(with: id)
                    track["title"] = .string("6")
                    track["plays"] = .int(6)
                }
            default: break
            }
            if seen.count == 7 { break }
        }
        #expect(seen == ["0 true", "1 false", "2 false", "0 true", "4 false", "0 true", "6 false"])
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: a context off the main actor notifies on its executor once it is observable`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.newBackgroundContext()
        let counts = Mutex<[Bool]>([])
        let note: @Sendable () -> Void = { counts.withLock { $0.append(true) } }
        await worker.perform { context in
            for isObservable in [false, true] {
                context.isObservable = isObservable
                let track = context.makeTrack("a")
                withObservationTracking {
                    _ = track["title"]
                } onChange: {
                    note()
                }
                track["title"] = .string("b")
            }
        }
        #expect(counts.withLock(\.count) == 1)
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: an observer may change the context while it is notified`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let album = main.insert("Album")
        let tracks = (0..<3).map { main.makeTrack("\($0)") }
        try await main.save()
        let first = Watch({ _ = tracks[0].relatedObject("album") }, note: { tracks[1].setRelatedObject("album", to: album) })
        let second = Watch({ _ = tracks[2]["title"] }, note: { tracks[0]["title"] = .string("changed") })
        album.setRelatedObjects("tracks", to: [tracks[0], tracks[2]])
        #expect(Set(album.relatedObjects("tracks")) == [tracks[0], tracks[2]])
        let id = tracks[2].objectID
        try await main.newBackgroundChild().perform(andSave: .durable) { $0.object(with: id)["title"] = .string("child") }
        #expect(tracks[2]["title"] == .string("child") && tracks[0]["title"] == .string("changed"))
        #expect(first.count == 1 && second.count == 1)
        try await main.save()
        #expect(!main.hasChanges)
    }

    /// Catches: a change of an observer that is not compared with the saves that the context moves past.
    @Test(arguments: StoreKind.allCases)
    func `S100, S146: a change that an observer makes at the end of a save conflicts with the save that it has not seen`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(.siblings)
        let main = container.mainContext
        main.automaticallyMergesChanges = false
        let (track, other) = (main.makeTrack("a"), main.makeTrack("b"))
        try await main.save()
        let id = track.objectID
        try await container.newBackgroundContext().perform(andSave: .durable) { $0.object(with: id)["plays"] = .int(5) }
        let watch = Watch({ _ = track["plays"] }, note: { track["plays"] = .int(1) })
        other["title"] = .string("c")
        try await main.save()
        #expect(watch.count == 1 && track.isUpdated)
        await #expect(throws: SaveError.self) { try await main.save() }
        try await container.close()
    }

    @Test(arguments: StoreKind.allCases)
    func `S146: inserting whole rows notifies the observers of the objects to which they refer`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let main = container.mainContext
        let album = main.insert("Album")
        let watch = Watch { _ = album.relatedObjects("tracks") }
        let entity = try #require(container.model.entity(named: "Track"))
        let relationship = try #require(entity.relationships.first { $0.name == "album" })
        guard case .toOne(let column) = relationship.kind else {
            _ = Issue.record("album is no to-one relationship")
            return
        }
        var values = entity.defaults
        values[Int(column.rawValue)] = .reference(album.objectID.key)
        let track = main.insert(entity, values: values)
        #expect(watch.count == 1)
        #expect(album.relatedObjects("tracks") == [track])
        try await container.close()
    }
}
