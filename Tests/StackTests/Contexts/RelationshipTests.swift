import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct RelationshipTests {
    /// Returns the names at the far end of a to-many relationship, ascending.
    static func names(_ objects: [ManagedObject], _ property: String = "title") -> [String] {
        objects.compactMap { if case .string(let name) = $0[property] { name } else { nil } }.sorted()
    }

    @Test(arguments: Combination.all)
    func S041_anObjectInsertedAndDeletedLeavesNoTrace(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let counter = Counter()
        let gone = await worker.perform { context in
            _ = context.addObserver { counter.note($0) }
            let gone = context.makeTrack("gone")
            context.delete(gone)
            context.makeTrack("kept")
            #expect(context.deletedObjects.isEmpty)
            return gone.objectID
        }
        try await worker.save(through: .store)
        let saved = try #require(counter.all.last { $0.kind == .didSave })
        let store = container.coordinator.store.identity
        #expect(saved.changes.deletedIDs(in: store).isEmpty)
        #expect(counter.all.contains { !$0.changes.insertedIDs(in: store).isEmpty })
        for notice in counter.all {
            let named = notice.changes.insertedIDs(in: store) + notice.changes.updatedIDs(in: store)
            #expect(!named.contains(gone) && !notice.changes.deletedIDs(in: store).contains(gone), "\(notice.kind)")
        }
        let history = try #require(try container.coordinator.store.changes(after: 0))
        #expect(history.allSatisfy { $0.entities.allSatisfy { $0.deletedKeys.isEmpty } })
    }

    @Test(arguments: StoreKind.allCases)
    func S045_removingWhatBelongsToAnotherChangesNothing(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let (owner, other) = (context.makeArtist("owner"), context.makeArtist("other"))
            let album = context.insert("Album")
            owner.add(album, to: "albums")
            other.remove(album, from: "albums")
            #expect(album.relatedObject("artist") === owner)
        }
        try await worker.save()
        await worker.perform { context in
            let (track, playlist) = (context.makeTrack("t"), context.insert("Playlist"))
            playlist.remove(track, from: "tracks")
            #expect(playlist.relatedObjects("tracks") == [])
        }
    }

    /// Catches: a context that reports changes but lists none, and hooks that are not called for a change of pairs.
    @Test(arguments: Combination.all)
    func S007_theEndsOfAChangedPairAreUpdated(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let ids = await worker.perform { context in
            let playlist = context.insert("Playlist")
            playlist["name"] = .string("p")
            return [context.makeTrack("t").objectID, playlist.objectID]
        }
        try await worker.save(through: .store)
        try await worker.perform { context in
            let (track, playlist) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            playlist.remove(track, from: "tracks")
            #expect(!context.hasChanges, "they were not related")
            playlist.add(track, to: "tracks")
            #expect(context.hasChanges && track.isUpdated && playlist.hasChanges)
            #expect(Set(context.updatedObjects) == [track, playlist])
            #expect(context.insertedObjects.isEmpty && context.deletedObjects.isEmpty)
            playlist.remove(track, from: "tracks")
            #expect(!context.hasChanges && context.updatedObjects.isEmpty, "S032: nothing is left of it")
            let passing = context.insert("Playlist")
            passing.add(track, to: "tracks")
            context.delete(passing)
            #expect(!context.hasChanges, "S041")
            playlist.add(track, to: "tracks")
        }
        try await worker.save(through: .store)
        try await worker.perform { context in
            let (track, playlist) = (try context.existingObject(with: ids[0]), try context.existingObject(with: ids[1]))
            playlist.remove(track, from: "tracks")
            #expect(context.hasChanges)
            track.add(playlist, to: "playlists")
            #expect(!context.hasChanges && playlist.relatedObjects("tracks") == [track])
        }
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    @Test(arguments: Combination.all)
    func S043_deleteRulesCascadeNullifyAndDeny(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let artistID = await worker.perform { context in
            let artist = context.makeArtist("a")
            artist.setRelatedObject("profile", to: context.insert("Profile"))
            for title in ["x", "y"] {
                let album = context.insert("Album")
                album["title"] = .string(title)
                artist.add(album, to: "albums")
            }
            let pupil = context.makeArtist("pupil")
            pupil.setRelatedObject("mentor", to: artist)
            let track = context.makeTrack("t")
            track.setRelatedObject("album", to: artist.relatedObjects("albums")[0])
            return artist.objectID
        }
        try await worker.save(through: .store)
        await worker.perform { $0.delete($0.object(with: artistID)) }
        await #expect(throws: SaveError.self, "the album's track denies") { try await worker.save(through: .store) }
        try await worker.perform { context in
            #expect(context.deletedObjects.count == 4, "S062: artist, profile and two albums are still pending")
            for track in try context.objects("Track") { context.delete(track) }
        }
        try await worker.save(through: .store)
        let reader = await container.newBackgroundContext()
        try await reader.perform { context in
            #expect(try context.objects("Album").isEmpty && context.objects("Profile").isEmpty)
            let pupil = try #require(try context.objects("Artist").first)
            #expect(pupil["name"] == .string("pupil") && pupil.relatedObject("mentor") == nil)
        }
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    /// Orders with one customer each. The rule deny refuses to delete an order that has a customer.
    private static let orders: Model = {
        let customer = EntityDescription(
            name: "Customer",
            properties: [
                .relationship(.init(name: "orders", destination: "Order", inverse: "customer", cardinality: .toMany))
            ])
        let order = EntityDescription(
            name: "Order",
            properties: [
                .relationship(
                    .init(
                        name: "customer", destination: "Customer", inverse: "orders", cardinality: .toOne, deleteRule: .deny))
            ])
        do { return try Model([customer, order]) } catch { preconditionFailure("the test model is wrong: \(error)") }
    }()

    @Test(arguments: Combination.all)
    func S043_denyLooksAtWhatAnObjectReferredToWhenItWasDeleted(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Self.orders)
        let worker = await container.newBackgroundContext()
        let (held, free, customer) = await worker.perform { context in
            let customer = context.insert("Customer")
            let held = context.insert("Order")
            held.setRelatedObject("customer", to: customer)
            return (held.objectID, context.insert("Order").objectID, customer.objectID)
        }
        try await worker.save(through: .store)
        // A reference blocks the deletion even if only this context has it.
        try await worker.perform { context throws in
            let order = try context.existingObject(with: free)
            order.setRelatedObject("customer", to: try context.existingObject(with: customer))
            context.delete(order)
        }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        // A removed reference does not block the deletion, also after a rollback and in a later save.
        await worker.perform { $0.rollback() }
        try await worker.perform { context throws in
            context.delete(try context.existingObject(with: free))
            let order = try context.existingObject(with: held)
            context.delete(order)
        }
        await #expect(throws: SaveError.self) { try await worker.save(through: .store) }
        await worker.perform { $0.rollback() }
        try await worker.perform { context throws in
            let order = try context.existingObject(with: held)
            order.setRelatedObject("customer", to: nil)
            context.delete(order)
            context.delete(try context.existingObject(with: free))
        }
        try await worker.save(through: .store)
        try await container.newBackgroundContext().perform { context throws in
            #expect(try context.count(EntityFetchRequest("Order")) == 0)
            #expect(try context.count(EntityFetchRequest("Customer")) == 1)
        }
    }

    /// Catches: a cascade that takes one stack frame per object.
    @Test func S043_aCascadeIsAsLongAsItsChain() async throws {
        let node = EntityDescription(
            name: "Node",
            properties: [
                .relationship(
                    .init(name: "next", destination: "Node", inverse: "previous", cardinality: .toOne, deleteRule: .cascade)),
                .relationship(.init(name: "previous", destination: "Node", inverse: "next", cardinality: .toOne)),
            ])
        let bed = try TestBed(.memory)
        let container = try await bed.container(model: try Model([node]))
        let worker = await container.newBackgroundContext()
        let first = await worker.perform { context in
            let first = context.insert("Node")
            var last = first
            for _ in 0..<10_000 {
                let next = context.insert("Node")
                last.setRelatedObject("next", to: next)
                last = next
            }
            return first.objectID
        }
        try await worker.save()
        try await worker.perform { context in
            context.delete(try context.existingObject(with: first))
            #expect(context.deletedObjects.count == 10_001)
        }
        try await worker.save()
        #expect(try await worker.perform { try $0.count(EntityFetchRequest("Node")) } == 0)
    }

    @Test func S043_aCascadeInACircleEnds() async throws {
        let node = EntityDescription(
            name: "Node",
            properties: [
                .relationship(
                    .init(name: "next", destination: "Node", inverse: "previous", cardinality: .toOne, deleteRule: .cascade)),
                .relationship(.init(name: "previous", destination: "Node", cardinality: .toOne)),
            ])
        let bed = try TestBed(.memory)
        let container = try await bed.container(model: Model([node]))
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            let nodes = (0..<5).map { _ in context.insert("Node") }
            for (i, node) in nodes.enumerated() { node.setRelatedObject("next", to: nodes[(i + 1) % 5]) }
            context.delete(nodes[2])
            #expect(!context.hasChanges)
        }
    }

    @Test(arguments: Combination.all)
    func S044_oneSideSetsTheOther(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let artist = context.makeArtist("a")
            let other = context.makeArtist("b")
            let profile = context.insert("Profile")
            artist.setRelatedObject("profile", to: profile)
            #expect(profile.relatedObject("artist") === artist, "to-one, to-one")
            other.setRelatedObject("profile", to: profile)
            #expect(artist.relatedObject("profile") == nil && profile.relatedObject("artist") === other)
            let album = context.insert("Album")
            album.setRelatedObject("artist", to: artist)
            #expect(artist.relatedObjects("albums") == [album], "to-one, to-many")
            let track = context.makeTrack("t")
            let list = context.insert("Playlist")
            track.add(list, to: "playlists")
            #expect(list.relatedObjects("tracks") == [track], "many to many")
            list.remove(track, from: "tracks")
            #expect(track.relatedObjects("playlists").isEmpty)
            artist.setRelatedObject("mentor", to: other)
            #expect(other.relatedObjects("pupils") == [artist], "self-referential")
        }
    }

    @Test(arguments: Combination.all)
    func S045_movingAToOneMovesItBetweenToManys(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let (a, b) = await worker.perform { context in
            let albums = ["A", "B"].map { title in
                let album = context.insert("Album")
                album["title"] = .string(title)
                return album
            }
            for title in ["1", "2", "3"] { context.makeTrack(title).setRelatedObject("album", to: albums[0]) }
            return (albums[0].objectID, albums[1].objectID)
        }
        try await worker.save(through: .store)
        try await worker.perform { context in
            let (first, second) = try (context.existingObject(with: a), context.existingObject(with: b))
            first.relatedObjects("tracks")[1].setRelatedObject("album", to: second)
            #expect(Self.names(first.relatedObjects("tracks")) == ["1", "3"])
            #expect(Self.names(second.relatedObjects("tracks")) == ["2"])
            let fresh = context.makeTrack("4")
            second.setRelatedObjects("tracks", to: [fresh, first.relatedObjects("tracks")[0]])
            #expect(Self.names(second.relatedObjects("tracks")) == ["1", "4"])
        }
        try await worker.save(through: .store)
        let reader = await container.newBackgroundContext()
        try await reader.perform { context in
            #expect(Self.names(try context.existingObject(with: a).relatedObjects("tracks")) == ["3"])
            #expect(Self.names(try context.existingObject(with: b).relatedObjects("tracks")) == ["1", "4"])
            let lost = try #require(try context.objects("Track").first { $0["title"] == .string("2") })
            #expect(lost.relatedObject("album") == nil)
        }
    }

    @Test(arguments: Combination.all)
    func S044_manyToManyLinksAreSavedAndRemoved(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let list = await worker.perform { context in
            let list = context.insert("Playlist")
            for i in 0..<100 { list.add(context.makeTrack("\(i)"), to: "tracks") }
            return list.objectID
        }
        try await worker.save(through: .store)
        try await worker.perform { context in
            let list = try context.existingObject(with: list)
            let tracks = list.relatedObjects("tracks")
            #expect(tracks.count == 100)
            for track in tracks.prefix(40) { list.remove(track, from: "tracks") }
            context.delete(tracks[99])
            #expect(list.relatedObjects("tracks").count == 59)
        }
        try await worker.save(through: .store)
        let reader = await container.newBackgroundContext()
        let count = try await reader.perform { try $0.existingObject(with: list).relatedObjects("tracks").count }
        #expect(count == 59)
        #expect(try container.coordinator.store.verify().isEmpty)
    }

    @Test(arguments: Combination.all)
    func S047_deletedObjectsVanishFromFetchesBeforeTheSave(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in for title in ["a", "b"] { context.makeTrack(title) } }
        try await worker.save(through: .store)
        try await worker.perform { context in
            context.delete(try #require(try context.objects("Track").first))
            #expect(try context.trackTitles() == ["b"])
        }
    }

    @Test(arguments: Combination.all)
    func S048_rollbackRevivesAndRestores(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        let (albumID, trackID) = await worker.perform { context in
            let album = context.insert("Album")
            let track = context.makeTrack("a", plays: 1)
            track.setRelatedObject("album", to: album)
            return (album.objectID, track.objectID)
        }
        try await worker.save(through: .store)
        try await worker.perform { context in
            let (album, track) = try (context.existingObject(with: albumID), context.existingObject(with: trackID))
            track["plays"] = .int(2)
            let new = context.makeTrack("new")
            context.delete(track)
            context.delete(album)
            context.rollback()
            #expect(!context.hasChanges)
            #expect(!track.isDeleted && track["plays"] == .int(1) && track.relatedObject("album") === album)
            #expect(album.relatedObjects("tracks") == [track])
            #expect(new.managedObjectContext == nil)
            #expect(try context.trackTitles() == ["a"])
        }
    }

    @Test(arguments: Combination.all)
    func S049_resetForgetsEveryObject(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack)
        let worker = await container.newBackgroundContext()
        try await worker.perform { context throws in
            let track = context.makeTrack("a")
            context.reset()
            #expect(!context.hasChanges && context.registeredObjects.isEmpty)
            #expect(track.managedObjectContext == nil)
            #expect(try context.trackTitles().isEmpty)
        }
    }

    @Test(arguments: Combination.all)
    func `S041: a new object that is deleted again leaves relationships that have no inverse`(
        _ combination: Combination
    ) async throws {
        let bed = try TestBed(combination.store)
        let container = try await bed.container(combination.stack, model: Shelf.model)
        let worker = await container.newBackgroundContext()
        let list = await worker.perform { context in
            let (list, kept, dropped) = (context.insert("Playlist"), context.insert("Track"), context.insert("Track"))
            list.setRelatedObjects("items", to: [kept, dropped])
            context.delete(dropped)
            #expect(list.relatedObjects("items") == [kept])
            return list.objectID
        }
        try await worker.save(through: .store)
        let saved = await worker.perform { $0.object(with: list).relatedObjects("items").count }
        #expect(saved == 1)
        try await container.close()
    }

    /// Catches: pairs in layers below the top one, which a child or a refused save leaves there.
    @Test(arguments: Combination.all)
    func `S041: a deleted object leaves relationships without an inverse, wherever its pairs are`(
        _ combination: Combination
    ) async throws {
        for place in PlaceOfPair.allCases {
            let bed = try TestBed(combination.store)
            let container = try await bed.container(combination.stack, model: Shelf.model)
            let worker = await container.newBackgroundContext()
            let child = await worker.perform { $0.newBackgroundChild() }
            let (list, dropped) = try await place.makeList(worker, child)
            let context = place == .parentOfDeletingChild ? child : worker
            await context.perform { context in
                context.delete(context.object(with: dropped))
                #expect(context.object(with: list).relatedObjects("items").count == 1, "\(place)")
            }
            try await context.save(through: .store)
            let saved = await container.newBackgroundContext().perform { $0.object(with: list).relatedObjects("items").count }
            #expect(saved == 1, "\(place)")
            #expect(try container.coordinator.store.verify() == [], "\(place)")
            try await container.close()
        }
    }

    /// Where the pair of a playlist and a track is when the track is deleted.
    private enum PlaceOfPair: CaseIterable {
        case context, contextWithSavedTrack, parentOfDeletingChild, savedChild, refusedSave, store

        /// Makes a playlist with two tracks. Returns it and one of the tracks.
        func makeList(_ worker: BackgroundContext, _ child: BackgroundContext) async throws -> (ObjectID, ObjectID) {
            let author = self == .savedChild ? child : worker
            let (list, items) = await author.perform { context in
                (context.insert("Playlist").objectID, [context.insert("Track").objectID, context.insert("Track").objectID])
            }
            if self == .contextWithSavedTrack {
                await worker.perform { $0.object(with: list).setRelatedObjects("items", to: [$0.insert("Track")]) }
                try await worker.save(through: .store)
            }
            await author.perform { context in
                context.object(with: list).setRelatedObjects("items", to: items.map { context.object(with: $0) })
            }
            switch self {
            case .context, .contextWithSavedTrack: break
            case .parentOfDeletingChild: try await child.refreshFromParent()
            case .savedChild: try await child.save()
            case .refusedSave:
                let review = await worker.perform { $0.insert("Review").objectID }
                #expect(await failure { try await worker.save() } != nil, "a review needs an album")
                await worker.perform { $0.delete($0.object(with: review)) }
            case .store: try await worker.save(through: .store)
            }
            return (list, items[1])
        }
    }
}
