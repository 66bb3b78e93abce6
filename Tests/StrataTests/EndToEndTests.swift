import Strata
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A program that imports only Strata.
@Suite @MainActor struct EndToEndTests {
    @Test(arguments: TestStore.allCases, [ContextStack.siblings, .nested])
    func whatOneContextSavesAnotherFetches(_ store: TestStore, _ stack: ContextStack) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Track.self, Artist.self, Tag.self, store: description, stack: stack)
            let importer = container.newBackgroundContext()
            await importer.perform { context in
                let artist = Artist(name: "Nina")
                for number in 0..<30 {
                    let track = Track(isrc: "isrc \(number)", title: "title \(number)", playCount: number * 100)
                    if number.isMultiple(of: 2) { track.artist = artist }
                    context.insert(track)
                }
            }
            try await importer.save(through: .store, .durable)

            let main = container.mainContext
            try await Self.until { try main.count(FetchRequest<Track>()) == 30 }
            let popular = try main.fetch(
                FetchRequest<Track>(where: #Predicate { $0.playCount > 1_000 }, sortBy: [.init(\.title)], limit: 5))
            #expect(popular.map(\.title) == ["title 11", "title 12", "title 13", "title 14", "title 15"])
            #expect(popular.map(\.shout).first == "title 11!")
            #expect(popular.map { $0.artist?.name } == [nil, "Nina", nil, "Nina", nil])
            let nina = try #require(popular[1].artist)
            #expect(nina === popular[3].artist)
            #expect(nina.tracks.count == 15)
            let byArtist = FetchRequest<Track>(where: #Predicate { $0.artist?.name == "Nina" && $0.playCount < 500 })
            #expect(try main.count(byArtist) == 3)
        }
    }

    @Test(arguments: TestStore.allCases)
    func namesInBackticksAreNamesAsOthers(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: `Protocol`.self, store: description)
            let writer = container.coordinator.newBackgroundContext()
            await writer.perform { context in
                let outer = `Protocol`(extension: "a")
                context.insert(`Protocol`(extension: "b", `play count`: 3, in: outer))
            }
            try await writer.save()
            try await container.coordinator.newBackgroundContext().perform { context throws in
                let entity = try #require(context.model.entity(named: "Protocol"))
                #expect(entity.columns.map(\.name) == ["extension", "play count", "in"])
                let request = FetchRequest<`Protocol`>(where: #Predicate { $0.`extension` == "b" && $0.`in` != nil })
                let inner = try #require(try context.fetch(request).first)
                #expect(inner.`play count` == 3 && inner.`in`?.`default` == [inner])
                inner.`extension` = "c"
                #expect(inner.managedObject["extension"] == .string("c"))
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func everyTypeComesBackAfterReopening(_ store: TestStore) async throws {
        try await store.use { description in
            let uuid = UUID()
            let saved = try await Self.save(in: description, Everything.self) { _ in
                let all = Everything()
                all.uuid = uuid
                all.url = URL(string: "https://example.org/a%20b")
                return all
            }
            try await Self.reading(saved, in: description, Everything.self) { (all: Everything) in
                #expect(all.bool)
                #expect(all.int8 == .min && all.int16 == .min && all.int32 == .min && all.int64 == .min && all.int == .min)
                #expect(all.uint8 == .max && all.uint16 == .max && all.uint32 == .max)
                #expect(all.uint64 == .max && all.uint == .max)
                #expect(all.float == 0.1 && all.double == 0.1)
                #expect(all.string == "ü\u{0}🎵")
                #expect(all.data == Data([0, 255]))
                #expect(all.date == Date(timeIntervalSinceReferenceDate: 0.125))
                #expect(all.uuid == uuid)
                #expect(all.url?.absoluteString == "https://example.org/a%20b")
                #expect(all.mood == .wild)
                #expect(all.place == Place(city: "Oslo", seats: 3))
                #expect(all.nothing == nil)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func relationshipsFollowEachOtherAndComeBackAfterReopening(_ store: TestStore) async throws {
        try await store.use { description in
            let saved = try await Self.save(in: description, Artist.self, Track.self, Tag.self) { context in
                let teacher = Artist(name: "Bach")
                let artist = Artist(name: "Nina", home: Place(city: "Tryon", seats: 0))
                artist.mentor = teacher
                let first = Track(isrc: "1", title: "one", artist: artist)
                let second = Track(isrc: "2", title: "two")
                artist.tracks = [first, second]
                context.insert(Tag("slow", on: [first, second]))
                context.insert(artist)
                second.tags.append(Tag("blue"))
                #expect(second.artist === artist)
                #expect(teacher.pupils.map(\.name) == ["Nina"])
                return artist
            }
            try await Self.reading(saved, in: description, Artist.self, Track.self, Tag.self) { (artist: Artist) in
                #expect(artist.home?.city == "Tryon")
                #expect(artist.mentor?.name == "Bach")
                #expect(artist.mentor?.pupils == [artist])
                #expect(artist.tracks.map(\.title).sorted() == ["one", "two"])
                let second = try #require(artist.tracks.first { $0.title == "two" })
                #expect(second.tags.map(\.name).sorted() == ["blue", "slow"])
                let slow = try #require(second.tags.first { $0.name == "slow" })
                #expect(slow.tracks.count == 2)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func deleteRulesOfTheModelAreKept(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(for: Track.self, Artist.self, Tag.self, store: description)
            let main = container.mainContext
            let artist = Artist(name: "Nina")
            let track = Track(isrc: "1", title: "one", artist: artist)
            let other = Track(isrc: "2", title: "two", artist: Artist(name: "Abbey"))
            for track in [track, other] { main.insert(track) }
            try await main.save()
            main.delete(artist)
            try await main.save()
            #expect(track.isDeleted)
            #expect(try main.fetch(FetchRequest<Track>()) == [other])
            main.delete(other)
            try await main.save()
            let abbey = try main.fetch(FetchRequest<Artist>())
            #expect(abbey.map(\.name) == ["Abbey"])
            #expect(abbey.first?.tracks == [])
        }
    }

    @Test func valuesOfAnObjectThatExistsAreNotTouchedByInitialValues() async throws {
        let container = try await PersistentContainer(for: Track.self, Artist.self, Tag.self, store: .memory)
        let main = container.mainContext
        let object = main.insert("Track")
        object["isrc"] = .string("1")
        object["playCount"] = .int(7)
        // The typed object is created for an object with unsaved changes. `playCount = 0` and `tags = []` must not overwrite
        // them.
        let track = try main.existingObject(Track.self, with: object.objectID)
        #expect(track.playCount == 7)
        #expect(track.mood == .calm)
        #expect(!track.isPlaying)
        track.isPlaying = true
        #expect(try main.existingObject(Track.self, with: object.objectID).isPlaying)
    }

    @Test(arguments: TestStore.allCases)
    func S022_anEnumOfARecordThatIsGoneReadsAsItsDefaultOrFirstCase(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(
                for: Track.self, Artist.self, Tag.self, store: description)
            let worker = container.newBackgroundContext()
            let id = await worker.perform { context in
                let track = Track(isrc: "1", title: "one", mood: .wild)
                context.insert(track)
                return track.id
            }
            try await worker.save()
            let other = container.newBackgroundContext()
            try await other.perform { try $0.delete($0.existingObject(with: id)) }
            try await other.save()
            let read = await other.perform { context in
                let track = context.object(Track.self, with: id)
                return [track.title, track.mood.rawValue, track.format.rawValue, "\(track.isDeleted)"]
            }
            #expect(read == ["", "calm", "single", "true"])
        }
    }

    @Test func hooksRunAndAFailingOneStopsTheSave() async throws {
        try await TestStore.memory.use { description in
            let container = try await PersistentContainer(for: Watched.self, store: description)
            let main = container.mainContext
            let watched = Watched(name: "")
            main.insert(watched)
            await #expect(throws: (any Error).self) { try await main.save() }
            watched.name = "now"
            try await main.save()
            #expect(watched.calls == ["inserted", "saved"])
            #expect(watched.stamp == 1)
            let id = watched.id
            let other = container.newBackgroundContext()
            let calls = try await other.perform { context in
                let watched = try context.existingObject(Watched.self, with: id)
                #expect(watched.name == "now")
                return watched.calls
            }
            #expect(calls == ["fetched"])
        }
    }

    @Test func aModelWrittenByHandIsAModel() async throws {
        let container = try await PersistentContainer(for: Song.self, Band.self, store: .memory)
        let main = container.mainContext
        let band = Band(name: "Can")
        main.insert(Song(isrc: "1", title: "Vitamin C", plays: 3, band: band))
        main.insert(Song(isrc: "2", title: "Halleluwah", rating: 0.5))
        band.songs.append(Song(isrc: "3", title: "Spoon"))
        try await main.save()
        let songs = try main.fetch(
            FetchRequest<Song>(where: #Predicate { $0.band?.name == "Can" && $0.plays < 3 }, sortBy: [.init(\.title)]))
        #expect(songs.map(\.title) == ["Spoon"])
        #expect(songs.first?.band === band)
    }

    // MARK: Saving in one container, reading in the next

    private struct Saved {
        var id: ObjectID
        /// Keeps a store in memory alive.
        var container: PersistentContainer?
    }

    private static func save<M: PersistentModel>(
        in description: StoreDescription, _ types: any PersistentModel.Type..., make: (ManagedObjectContext) throws -> M
    ) async throws -> Saved {
        let container = try await PersistentContainer(model: Model(types), store: description)
        let model = try make(container.mainContext)
        if model.managedObjectContext == nil { container.mainContext.insert(model) }
        try await container.mainContext.save()
        return Saved(id: model.id, container: description.name == "memory" ? container : nil)
    }

    private static func reading<M: PersistentModel>(
        _ saved: Saved, in description: StoreDescription, _ types: any PersistentModel.Type..., body: (M) throws -> Void
    ) async throws {
        let container = try await PersistentContainer(model: Model(types), store: description)
        try body(container.mainContext.existingObject(M.self, with: saved.id))
        withExtendedLifetime(saved) {}
    }

    /// Waits for the effect of another executor. The limit ends a test that hangs.
    private static func until(_ condition: () throws -> Bool) async throws {
        let start = ContinuousClock.now
        while try !condition() {
            try #require(ContinuousClock.now - start < .seconds(600))
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}
