import Foundation
import Observation
import Strata
import Testing

/// Models whose insertion was rolled back: in no context, readable, and ready to be inserted again (S048).
@Suite @MainActor struct RolledBackModelTests {
    /// Catches: a view that still shows the model of a form that was discarded, and stops the program.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S048: a model keeps its newest values after its insertion is rolled back, and can be inserted again`(
        _ store: TestStore, hasChild: Bool
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Track.self, Artist.self, Tag.self, store: description)
            let main = container.mainContext
            let kept = Artist(name: "kept")
            main.insert(kept)
            try await main.save()
            let track = Track(isrc: "1", title: "first", artist: kept, tags: [])
            main.insert(track)
            // A child seals the layer that has the insertion, so that the update is in another one.
            let child = hasChild ? main.newBackgroundChild() : nil
            track.title = "changed"
            track.mood = .wild
            track.format = .single
            track.tags = [Tag("new")]
            main.rollback()
            withExtendedLifetime(child) {}
            #expect(track.managedObject.managedObjectContext == nil)
            #expect(!track.managedObject.isInserted && !track.managedObject.isDeleted && !main.hasChanges)
            #expect(track.title == "changed" && track.mood == .wild && track.format == .single && track.playCount == 0)
            #expect(track.artist == nil && track.tags.isEmpty && kept.tracks.isEmpty)
            track.playCount = 7
            #expect(track.playCount == 7 && !main.hasChanges)

            main.insert(track)
            kept.tracks = [track]
            try await main.save()
            let background = container.newBatchOperationContext()
            try await background.perform { context in
                let found = try context.fetch(FetchRequest<Track>())
                #expect(found.map(\.title) == ["changed"] && found.map(\.playCount) == [7] && found.map(\.mood) == [.wild])
                #expect(found.first?.artist?.name == "kept")
                #expect(try context.fetch(FetchRequest<Tag>()).isEmpty)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S048: relating a model whose insertion was rolled back inserts it again, as an object of its class`(
        _ store: TestStore
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Excursion.self, BusinessExcursion.self, Tourist.self, Sponsor.self, store: description)
            let main = container.mainContext
            let ann = Tourist(name: "Ann", excursions: [])
            main.insert(ann)
            try await main.save()
            let business = BusinessExcursion(name: "Rome", perDiem: 40)
            let sponsor = Sponsor(title: "Acme", excursions: [business])
            main.insert(sponsor)
            business.days = 5
            main.rollback()
            #expect(business.name == "Rome" && business.days == 5 && business.perDiem == 40 && business.sponsor == nil)
            #expect(sponsor.title == "Acme" && sponsor.excursions.isEmpty)
            ann.excursions = [business]
            main.rollback()
            #expect(business.tourist == nil && ann.excursions.isEmpty)
            ann.excursions = [business]
            #expect(business.tourist === ann)
            try await main.save()
            #expect(try main.fetch(FetchRequest<BusinessExcursion>()) == [business])
            #expect(try main.fetch(FetchRequest<Sponsor>()).isEmpty)
            let background = container.newBatchOperationContext()
            try await background.perform { context in
                let found = try #require(try context.fetch(FetchRequest<Excursion>()).first as? BusinessExcursion)
                #expect(found.days == 5 && found.perDiem == 40 && found.tourist?.name == "Ann")
            }
        }
    }

    @Test func `S040: the hook of the insertion runs once, also if a model is inserted again`() async throws {
        try await TestStore.memory.use { description in
            let main = try await PersistentContainer(for: Watched.self, store: description).mainContext
            let watched = Watched(name: "a")
            main.insert(watched)
            main.rollback()
            main.insert(watched)
            #expect(watched.calls == ["inserted"])
            try await main.save()
            #expect(try main.fetch(FetchRequest<Watched>()) == [watched])
        }
    }

    /// Catches: the values of the insertion instead of the newest ones, and an insertion that does nothing.
    @Test(arguments: [false, true], [false, true])
    func `S048: a new model that was deleted again keeps its newest values, and can be inserted`(
        hasChild: Bool, isRolledBack: Bool
    ) async throws {
        try await TestStore.memory.use { description in
            let container = try await PersistentContainer(for: Track.self, Artist.self, Tag.self, store: description)
            let main = container.mainContext
            let track = Track(isrc: "1", title: "first", tags: [])
            main.insert(track)
            let child = hasChild ? main.newBackgroundChild() : nil
            track.title = "changed"
            main.delete(track)
            #expect(track.title == "changed")
            if isRolledBack { main.rollback() }
            withExtendedLifetime(child) {}
            #expect(track.title == "changed")
            main.insert(track)
            #expect(track.managedObject.isInserted && !track.managedObject.isDeleted && track.title == "changed")
            try await main.save()
            #expect(try main.fetch(FetchRequest<Track>()) == [track])
        }
    }

    /// Catches: an update of an object that never existed.
    @Test func `S048: an observer may roll back the insertion of the model that is being changed`() async throws {
        try await TestStore.memory.use { description in
            let container = try await PersistentContainer(for: Track.self, Artist.self, Tag.self, store: description)
            let main = container.mainContext
            let changes: [(Track) -> Void] = [
                { $0.title = "x" }, { $0.artist = Artist(name: "x") }, { $0.tags = [Tag("x")] },
            ]
            for change in changes {
                let track = Track(isrc: "1", title: "first", tags: [])
                main.insert(track)
                withObservationTracking {
                    _ = (track.title, track.artist, track.tags)
                } onChange: {
                    MainActor.assumeIsolated { container.mainContext.rollback() }
                }
                change(track)
                #expect(!main.hasChanges && track.managedObject.managedObjectContext == nil)
                #expect(track.title == "first" && track.artist == nil && track.tags.isEmpty)
                #expect(try main.fetch(FetchRequest<Track>()).isEmpty && main.fetch(FetchRequest<Artist>()).isEmpty)
            }
        }
    }
}
