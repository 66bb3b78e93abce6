import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Relationships in committed states, whichever context saves (S050 to S056).
@Suite struct IntegrityTests {
    static let policies: [MergePolicy] = [.error, .storeTrump, .objectTrump, .overwrite, .rollback]

    /// Returns the target that the error of a save names as missing.
    private func danglingTarget(_ error: (any Error)?) -> ObjectID? {
        guard case .danglingReference(_, _, let target)? = error as? SaveError else { return nil }
        return target
    }

    private func isDenied(_ error: (any Error)?) -> Bool {
        if case .deleteDenied? = error as? SaveError { true } else { false }
    }

    /// Checks the committed state. Every reference leads to an object, one-to-one ends agree, and `verify` has no findings.
    static func check(_ container: PersistentContainer, _ comment: String = "") async throws {
        try await container.coordinator.newBackgroundContext().perform { try IntegrityExplorer.check($0, comment) }
        let findings = try container.coordinator.store.verify()
        #expect(findings.isEmpty, "\(comment)")
    }

    // MARK: S050

    @Test(arguments: StoreKind.allCases, [false, true])
    func `S050: relating to an object that was deleted in the same context is refused`(
        _ kind: StoreKind, _ isSaved: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        let (mentor, pupil) = await worker.perform { ($0.makeArtist("mentor").objectID, $0.makeArtist("pupil").objectID) }
        if isSaved { try await worker.save() }
        await worker.perform { context in
            let lost = context.object(with: mentor)
            context.delete(lost)
            context.object(with: pupil).setRelatedObject("mentor", to: lost)
        }
        let first = await #expect(throws: SaveError.self) { try await worker.save() }
        #expect(danglingTarget(first) == mentor, "\(String(describing: first))")
        #expect(first?.description.contains("Artist.mentor") == true)
        try await worker.perform { context throws in
            #expect(context.hasChanges)
            // S053: the property and the predicate agree that there is one.
            let query = Music.query("Artist", .compare(Music.column("Artist", "mentor"), .equal, to: .null))
            #expect(context.object(with: pupil).relatedObject("mentor") != nil)
            #expect(try !context.keys(matching: query).contains(pupil.key))
            context.object(with: pupil).setRelatedObject("mentor", to: nil)
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: context.object(with: mentor))
        }
        let second = await #expect(throws: SaveError.self) { try await worker.save() }
        #expect(danglingTarget(second) == mentor)
        try await worker.perform { context throws in
            for album in try context.objects("Album") { context.delete(album) }
        }
        try await worker.save()
        try await Self.check(container)
    }

    /// Saves a mentor, a pupil, a list and a track. Then relates the pupil, which also has a new year of birth, and a new artist to the
    /// mentor, and the track to the list, while another root deletes the mentor and the list and saves.
    private static func relate(
        in ours: BackgroundContext, toWhatIsDeletedIn container: PersistentContainer
    ) async throws -> (mentor: ObjectID, pupil: ObjectID, track: ObjectID) {
        let theirs = container.coordinator.newBackgroundContext()
        let (mentor, pupil) = await ours.perform { ($0.makeArtist("mentor").objectID, $0.makeArtist("pupil").objectID) }
        let list = await ours.perform { $0.insert("Playlist").objectID }
        let track = await ours.perform { $0.makeTrack("t").objectID }
        try await ours.save()
        try await theirs.perform { context throws in
            context.refreshAllObjects()
            context.delete(try context.existingObject(with: mentor))
            context.delete(try context.existingObject(with: list))
        }
        try await ours.perform { context throws in
            let object = try context.existingObject(with: pupil)
            object["born"] = .int(1900)
            object.setRelatedObject("mentor", to: try context.existingObject(with: mentor))
            context.makeArtist("new").setRelatedObject("mentor", to: try context.existingObject(with: mentor))
            try context.existingObject(with: list).add(try context.existingObject(with: track), to: "tracks")
        }
        try await theirs.save()
        return (mentor, pupil, track)
    }

    @Test(arguments: StoreKind.allCases)
    func `S050: relating to what another root deletes is refused or left out by policy`(_ kind: StoreKind) async throws {
        for policy in Self.policies {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let ours = container.coordinator.newBackgroundContext()
            await ours.perform { $0.mergePolicy = policy }
            let (mentor, pupil, _) = try await Self.relate(in: ours, toWhatIsDeletedIn: container)
            switch policy {
            case .storeTrump, .rollback:
                try await ours.save()
                #expect(try await ours.perform { try $0.existingObject(with: pupil)["born"] } == .int(1900), "\(policy)")
                #expect(try await ours.perform { try $0.objects("Artist").allSatisfy { $0.relatedObject("mentor") == nil } })
            default:
                let error = await #expect(throws: SaveError.self, "\(policy)") { try await ours.save() }
                #expect(danglingTarget(error) == mentor, "\(policy): \(String(describing: error))")
            }
            try await Self.check(container, "\(policy)")
        }
    }

    /// Catches: a context of SwiftData's spelling that cannot be saved any more.
    @Test(arguments: StoreKind.allCases)
    func `S050: a context that clears references to missing objects saves everything else`(_ kind: StoreKind) async throws {
        for policy in [MergePolicy.error, .objectTrump, .overwrite] {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let ours = container.coordinator.newBackgroundContext()
            await ours.perform { context in
                context.mergePolicy = policy
                context.clearsMissingReferences = true
            }
            let (_, pupil, track) = try await Self.relate(in: ours, toWhatIsDeletedIn: container)
            let preview = await ours.previewSave()
            #expect(preview.failure == nil, "\(policy): \(String(describing: preview.failure))")
            try await ours.save()
            try await ours.perform { context throws in
                #expect(try context.existingObject(with: pupil)["born"] == .int(1900) && !context.hasChanges, "\(policy)")
                let artists = try context.objects("Artist")
                #expect(artists.count == 2 && artists.allSatisfy { $0.relatedObject("mentor") == nil }, "\(policy)")
                #expect(try context.existingObject(with: track).relatedObjects("playlists").isEmpty, "\(policy)")
            }
            try await Self.check(container, "\(policy)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S050: an imported reference to nothing is refused`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        await #expect(throws: SaveError.self) {
            try await container.coordinator.insert(
                into: "Album", ["title", "artist"], rows: [[.string("x"), .reference(4711)]])
        }
        let worker = container.coordinator.newBackgroundContext()
        let artist = await worker.perform { $0.makeArtist("a").objectID }
        try await worker.save()
        await worker.perform { context in
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: context.object(with: artist))
        }
        let query = EntityFetchRequest("Artist")
        _ = try await container.coordinator.batchDelete(query)
        let error = await #expect(throws: SaveError.self) { try await worker.save() }
        #expect(danglingTarget(error) == artist, "a batch deleted what a context had related")
        try await Self.check(container)
    }

    @Test(arguments: Combination.parented, [false, true])
    func `S051: a child's deletion takes what the parent has related meanwhile`(
        _ combination: Combination, _ through: Bool
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let parent = await container.newBackgroundContext()
        let (mentor, pupil) = await parent.perform { ($0.makeArtist("mentor").objectID, $0.makeArtist("pupil").objectID) }
        let list = await parent.perform { $0.insert("Playlist").objectID }
        try await parent.save(through: .store)
        let child = await parent.perform { $0.newBackgroundChild() }
        let album = try await parent.perform { context throws in
            let artist = try context.existingObject(with: mentor)
            try context.existingObject(with: pupil).setRelatedObject("mentor", to: artist)
            let album = context.insert("Album")
            artist.add(album, to: "albums")
            try context.existingObject(with: list).add(context.makeTrack("t"), to: "tracks")
            return album.objectID
        }
        try await child.perform { context throws in
            context.delete(try context.existingObject(with: mentor))
            context.delete(try context.existingObject(with: list))
        }
        if through {
            try await child.save(through: .store)
        } else {
            try await child.save()
            try await parent.perform { context throws in
                #expect(try context.existingObject(with: pupil).relatedObject("mentor") == nil)
                #expect(throws: ContextError.self) { try context.existingObject(with: album) }
            }
            try await parent.save(through: .store)
        }
        try await container.coordinator.newBackgroundContext().perform { context throws in
            #expect(try context.objects("Album").isEmpty)
            #expect(try context.objects("Artist").map { $0["name"] } == [.string("pupil")])
        }
        try await Self.check(container)
    }

    // MARK: S051

    @Test(arguments: StoreKind.allCases)
    func `S051: rules deny, cascade and nullify what another root has saved meanwhile`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let (artist, album) = await ours.perform { context in
            (context.makeArtist("a").objectID, context.insert("Album").objectID)
        }
        try await ours.save()
        try await ours.perform { context throws in
            context.delete(try context.existingObject(with: artist))
            context.delete(try context.existingObject(with: album))
        }
        let track = try await theirs.perform { context throws in
            context.refreshAllObjects()
            let track = context.makeTrack("t")
            track.setRelatedObject("album", to: try context.existingObject(with: album))
            let other = context.insert("Album")
            other.setRelatedObject("artist", to: try context.existingObject(with: artist))
            context.makeArtist("pupil").setRelatedObject("mentor", to: try context.existingObject(with: artist))
            return track.objectID
        }
        try await theirs.save()
        let error = await #expect(throws: SaveError.self) { try await ours.save() }
        #expect(isDenied(error), "\(String(describing: error))")
        try await theirs.perform { $0.delete(try $0.existingObject(with: track)) }
        try await theirs.save()
        try await ours.save()
        try await ours.perform { context throws in
            #expect(try context.objects("Album").isEmpty, "cascade takes the album of the other root")
            #expect(try context.objects("Artist").map { $0["name"] } == [.string("pupil")])
        }
        try await Self.check(container)
    }

    @Test(arguments: StoreKind.allCases)
    func `S051: live results and objects of the saving context follow what its deletion took along`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let artist = await ours.perform { $0.makeArtist("a").objectID }
        try await ours.save()
        let album = try await theirs.perform { context throws in
            context.refreshAllObjects()
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: try context.existingObject(with: artist))
            return album.objectID
        }
        let counter = Counter()
        await ours.perform { context in
            _ = context.addObserver { counter.note($0) }
            context.delete(context.object(with: artist))
        }
        try await theirs.save()
        try await ours.save()
        let identity = container.coordinator.store.identity
        let saved = try #require(counter.all.last { $0.kind == .didSave })
        #expect(saved.changes.deletedIDs(in: identity).contains(album))
        #expect(counter.all.contains { $0.kind == .objectsDidChange && $0.changes.deletedIDs(in: identity).contains(album) })
        try await Self.check(container)
    }

    // MARK: S052

    @Test(arguments: StoreKind.allCases, [false, true])
    func `S052: one profile that two roots give to two artists has one owner`(
        _ kind: StoreKind, _ isRefreshed: Bool
    ) async throws {
        for policy in Self.policies {
            let bed = try TestBed(kind)
            let container = try await bed.container()
            let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
            let ids = await ours.perform { context in
                let (a, b, c) = (context.makeArtist("a"), context.makeArtist("b"), context.makeArtist("c"))
                let (profile, other) = (context.insert("Profile"), context.insert("Profile"))
                a.setRelatedObject("profile", to: other)
                c.setRelatedObject("profile", to: profile)
                return [a.objectID, b.objectID, profile.objectID]
            }
            try await ours.save()
            await theirs.perform { context in
                context.refreshAllObjects()
                context.object(with: ids[1]).setRelatedObject("profile", to: context.object(with: ids[2]))
            }
            await ours.perform { context in
                context.mergePolicy = policy
                context.object(with: ids[0]).setRelatedObject("profile", to: context.object(with: ids[2]))
            }
            try await theirs.save()
            if isRefreshed { await ours.perform { $0.refreshAllObjects() } }
            if case .error = policy, !isRefreshed {
                await #expect(throws: SaveError.self) { try await ours.save() }
                await ours.perform { $0.rollback() }
            } else {
                try await ours.save()
            }
            let owner = try await container.coordinator.newBackgroundContext().perform { context throws in
                try context.existingObject(with: ids[2]).relatedObject("artist")?["name"]
            }
            let oursWins =
                switch policy {
                case .objectTrump, .overwrite: true
                default: isRefreshed
                }
            #expect(owner == .string(oursWins ? "a" : "b"), "\(policy)")
            try await Self.check(container, "\(policy)")
        }
    }

    @Test(arguments: StoreKind.allCases)
    func `S052: values given directly to one end of a pair reach the other`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = container.coordinator.newBackgroundContext()
        try await worker.perform { context throws in
            let (a, b, profile) = (context.makeArtist("a"), context.makeArtist("b"), context.insert("Profile"))
            a.setRelatedObject("profile", to: profile)
            let entity = try #require(Music.model.entity(named: "Profile"))
            context.insert(entity, values: [.string("raw"), .reference(b.objectID.key)])
            b["mentor"] = .reference(a.objectID.key)
        }
        try await worker.save()
        try await worker.perform { context throws in
            for artist in try context.objects("Artist") { #expect(artist.relatedObject("profile") != nil) }
        }
        try await Self.check(container)
    }

    // MARK: S054, S055, S056

    @Test(arguments: Combination.all)
    func `S054: a deleted object shows its last values until it is saved`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let id = await worker.perform { context in
            let track = context.makeTrack("t", plays: 7)
            track["rating"] = .double(4)
            return track.objectID
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            let track = try context.existingObject(with: id)
            track["plays"] = .int(8)
            context.processPendingChanges()
            _ = context.newBackgroundChild()
            track["title"] = .string("changed")
            context.delete(track)
            #expect(track.isDeleted)
            #expect(track["title"] == .string("changed") && track["plays"] == .int(8) && track["rating"] == .double(4))
            track["title"] = .string("ignored")
            #expect(track["title"] == .string("changed") && track.changedValues.isEmpty)
        }
        try await worker.save(through: .store)
        try await Self.check(container)
    }

    @Test(arguments: Combination.all)
    func `S055: refreshing without merging drops relationship changes on both ends`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in
            let (a, b) = (context.makeArtist("a"), context.makeArtist("b"))
            let (p, q) = (context.insert("Profile"), context.insert("Profile"))
            a.setRelatedObject("profile", to: p)
            b.setRelatedObject("profile", to: q)
            let (track, list, other) = (context.makeTrack("t"), context.insert("Playlist"), context.insert("Playlist"))
            list.add(track, to: "tracks")
            return [a, b, p, q, track, list, other].map(\.objectID)
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            let objects = try ids.map { try context.existingObject(with: $0) }
            objects[0].setRelatedObject("profile", to: objects[3])
            objects[4].add(objects[6], to: "playlists")
            objects[4].remove(objects[5], from: "playlists")
            _ = context.newBackgroundChild()
            context.refresh(objects[0], mergeChanges: false)
            context.refresh(objects[4], mergeChanges: false)
            #expect(objects[0].relatedObject("profile") === objects[2] && objects[2].relatedObject("artist") === objects[0])
            #expect(objects[1].relatedObject("profile") === objects[3] && objects[3].relatedObject("artist") === objects[1])
            #expect(objects[4].relatedObjects("playlists") == [objects[5]] && objects[6].relatedObjects("tracks").isEmpty)
            #expect(!context.hasChanges)
        }
        try await Self.check(container)
    }

    /// Catches: changes of a to-many relationship that stay at its other end.
    @Test(arguments: Combination.all)
    func `S055: refreshing without merging returns the members of to-many relationships`(_ combination: Combination) async throws
    {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in
            let (a, b, pupil) = (context.makeArtist("a"), context.makeArtist("b"), context.makeArtist("pupil"))
            let (first, second) = (context.insert("Album"), context.insert("Album"))
            a.add(first, to: "albums")
            b.add(second, to: "albums")
            pupil.setRelatedObject("mentor", to: a)
            return [a, b, pupil, first, second].map(\.objectID)
        }
        try await worker.save(through: .store)
        try await worker.perform { context throws in
            let objects = try ids.map { try context.existingObject(with: $0) }
            let (a, b, pupil, first, second) = (objects[0], objects[1], objects[2], objects[3], objects[4])
            a.remove(first, from: "albums")
            a.add(second, to: "albums")
            let new = context.insert("Album")
            new.setRelatedObject("artist", to: a)
            first["title"] = "kept"
            _ = context.newBackgroundChild()
            context.refresh(a, mergeChanges: false)
            #expect(a.relatedObjects("albums") == [first] && b.relatedObjects("albums") == [second])
            #expect(first.relatedObject("artist") === a && new.relatedObject("artist") == nil)
            #expect(context.updatedObjects == [first] && first.changedValues == ["title": "kept"])
            // An object is back with those that referred to it, and without those that were deleted with it.
            context.delete(a)
            #expect(pupil.relatedObject("mentor") == nil)
            context.refresh(a, mergeChanges: false)
            #expect(!a.isDeleted && pupil.relatedObject("mentor") === a && !pupil.hasChanges && first.isDeleted)
            // A member does not return to an object that is deleted here.
            pupil.setRelatedObject("mentor", to: b)
            context.delete(a)
            context.refresh(b, mergeChanges: false)
            #expect(pupil.relatedObject("mentor") == nil)
        }
        try await worker.save(through: .store)
        try await Self.check(container)
    }

    /// Catches: an update of an object that others have deleted, which the save drops without an error.
    @Test(arguments: StoreKind.allCases, [false, true])
    func `S055, S106: refreshing one end of a pair keeps other changes of a deleted object at the other end`(
        _ kind: StoreKind, _ isOverwriting: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let (ours, theirs) = (container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext())
        let (artist, profile) = await ours.perform { ($0.makeArtist("a").objectID, $0.insert("Profile").objectID) }
        try await ours.save()
        try await theirs.perform { context throws in
            context.refreshAllObjects()
            context.delete(try context.existingObject(with: profile))
        }
        try await ours.perform { context throws in
            context.mergePolicy = isOverwriting ? .objectTrump : .error
            let object = try context.existingObject(with: profile)
            object["text"] = "ours"
            try context.existingObject(with: artist).setRelatedObject("profile", to: object)
        }
        try await theirs.save()
        try await ours.perform { context throws in
            context.refreshAllObjects()
            let object = try context.existingObject(with: artist)
            context.refresh(object, mergeChanges: false)
            #expect(object.relatedObject("profile") == nil && !object.hasChanges && context.hasChanges)
        }
        if isOverwriting {
            try await ours.save()
            try await container.read { context throws in
                let object = try context.existingObject(with: profile)
                #expect(object["text"] == "ours" && object.relatedObject("artist") == nil)
            }
        } else {
            let error = await #expect(throws: SaveError.self) { try await ours.save() }
            #expect(error?.code == .conflicts)
        }
        try await Self.check(container)
    }

    @Test(arguments: Combination.all)
    func `S056: deleting in a child what is gone above leaves nothing`(_ combination: Combination) async throws {
        for (through, refreshes) in [(false, false), (false, true), (true, false), (true, true)] {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack)
            let parent = await container.newBackgroundContext()
            let killer = container.coordinator.newBackgroundContext()
            let saved = await parent.perform { $0.makeTrack("saved").objectID }
            try await parent.save(through: .store)
            let inserted = await parent.perform { context in
                let (track, list) = (context.makeTrack("new"), context.insert("Playlist"))
                list.add(track, to: "tracks")
                return track.objectID
            }
            let child = await parent.perform { $0.newBackgroundChild() }
            try await child.perform { context throws in
                context.delete(try context.existingObject(with: saved))
                context.delete(try context.existingObject(with: inserted))
            }
            await parent.perform { $0.rollback() }
            try await killer.perform { context throws in
                context.refreshAllObjects()
                context.delete(try context.existingObject(with: saved))
            }
            try await killer.save()
            if refreshes { try await child.refreshFromParent() }
            let generation = try container.coordinator.snapshot().generation
            if through {
                try await child.save(through: .store)
            } else {
                try await child.save()
                await parent.perform { context in
                    #expect(!context.deletedObjects.map(\.objectID).contains(inserted))
                }
                try await parent.save(through: .store)
            }
            try await container.coordinator.flush()
            let history = try #require(try container.coordinator.store.changes(after: generation))
            #expect(
                history.allSatisfy { $0.entities.allSatisfy { $0.deletedKeys.isEmpty } && $0.links.isEmpty },
                "\(through), \(refreshes)")
            try await Self.check(container)
        }
    }

    // MARK: S106

    @Test(arguments: StoreKind.allCases)
    func `S106: an object that comes back has no reference to what was deleted with it`(_ kind: StoreKind) async throws {
        for policy in [MergePolicy.objectTrump, .overwrite] {
            for byBatch in [false, true] {
                for isRefreshed in [false, true] {
                    let bed = try TestBed(kind)
                    let container = try await bed.container()
                    let (ours, killer) = (
                        container.coordinator.newBackgroundContext(), container.coordinator.newBackgroundContext()
                    )
                    let (artist, album, profile) = await ours.perform { context in
                        let (artist, album, profile) = (
                            context.makeArtist("a"), context.insert("Album"), context.insert("Profile")
                        )
                        artist.add(album, to: "albums")
                        artist.setRelatedObject("profile", to: profile)
                        return (artist.objectID, album.objectID, profile.objectID)
                    }
                    try await ours.save()
                    await ours.perform { context in
                        context.mergePolicy = policy
                        context.object(with: album)["title"] = .string("ours")
                        context.object(with: profile)["text"] = .string("ours")
                    }
                    if byBatch {
                        try await container.coordinator.batchDelete(EntityFetchRequest("Artist"))
                    } else {
                        try await killer.perform { context throws in
                            context.refreshAllObjects()
                            context.delete(try context.existingObject(with: artist))
                        }
                        try await killer.save()
                    }
                    if isRefreshed { await ours.perform { $0.refreshAllObjects() } }
                    try await ours.save()
                    try await container.coordinator.newBackgroundContext().perform { context throws in
                        #expect(try context.existingObject(with: album)["title"] == .string("ours"))
                        #expect(try context.existingObject(with: album).relatedObject("artist") == nil)
                        #expect(try context.existingObject(with: profile)["artist"] == .null)
                    }
                    try await Self.check(container, "\(policy), batch \(byBatch), refreshed \(isRefreshed)")
                }
            }
        }
    }

    /// Catches: a new object that takes a partner by its values alone, while the partner's former object keeps its reference.
    @Test(arguments: StoreKind.allCases, [Durability.durable, .deferred])
    func `S052: an object inserted by values takes a partner whose other end is taken`(
        _ kind: StoreKind, _ durability: Durability
    ) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let context = container.coordinator.newBackgroundContext()
        let (artistID, oldID) = try await context.perform(andSave: durability) { context in
            let (artist, profile) = (context.makeArtist("Ravel"), context.insert("Profile"))
            artist.setRelatedObject("profile", to: profile)
            return (artist.objectID, profile.objectID)
        }
        let newIDs = try await context.perform(andSave: durability) { context in
            let entity = try #require(context.model.entity(named: "Profile"))
            let column = Music.column("Profile", "artist")
            // Two at once: only one of them can have the artist.
            return (0..<2).map { number in
                var values = entity.columns.map { _ in Value.null }
                values[Music.column("Profile", "text")] = .string("\(number)")
                values[column] = .reference(artistID.key)
                return context.insert(entity, values: values).objectID
            }
        }
        for reader in [context, container.coordinator.newBackgroundContext()] {
            try await reader.perform { context in
                let profile = try #require(try context.existingObject(with: artistID).relatedObject("profile"))
                #expect(newIDs.contains(profile.objectID))
                let owners = try ([oldID] + newIDs).map { try context.existingObject(with: $0).relatedObject("artist") }
                #expect(owners.compactMap { $0?.objectID } == [artistID])
                #expect(profile.relatedObject("artist")?.objectID == artistID)
            }
        }
        try await container.flush()
        #expect(try container.coordinator.store.verify() == [])
    }
}
