import MemoryStore
import ObjectGraph
import Testing

// Two models as `@Model` expands them. They and their uses are in one file, so that the compiler could inline the initializers. A test of the
// macro checks that the expansion has `@inline(never)`.

final class Song: PersistentModel {
    var title: String {
        @storageRestrictions(initializes: _title, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(0, to: initialValue)
            _title = ModelPlaceholder()
        }
        get { modelAnchor.object.get(0) }
        set { modelAnchor.object.set(0, to: newValue) }
    }
    private var _title: ModelPlaceholder

    var band: Band? {
        @storageRestrictions(initializes: _band, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.locatedObject.initializeToOne(0, 1, to: initialValue)
            _band = ModelPlaceholder()
        }
        get { modelAnchor.object.toOne(0, 1) }
        set { modelAnchor.locatedObject.setToOne(0, 1, to: newValue) }
    }
    private var _band = ModelPlaceholder()

    /// Transient, so it is lost with an instance that was not retained.
    var isPlaying = false

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Song.detachedEntity)
    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Song",
        properties: [
            .attribute(AttributeDescription("title", of: \Song.title)),
            .relationship(.init(name: "band", destination: "Band", inverse: "songs", cardinality: .toOne)),
        ])
    private static let detachedEntity = DetachedEntity(entityDescription)
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Song.title: "title", \Song.band: "band"]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init(wrapping: ())
    }

    @inline(never) private init(wrapping: Void) { _title = ModelPlaceholder() }

    @inline(never) init(title: String, band: Band? = nil) {
        self.title = title
        self.band = band
    }
}

extension Song {
    /// Without `@inline(never)`, because the macro does not see extensions.
    convenience init(numbered number: Int, band: Band) { self.init(title: "song \(number)", band: band) }
}

final class Band: PersistentModel {
    var songs: [Song] {
        get { modelAnchor.object.toMany(0) }
        set { modelAnchor.locatedObject.setToMany(0, to: newValue) }
    }

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Band.detachedEntity)
    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Band",
        properties: [
            .relationship(.init(name: "songs", destination: "Song", inverse: "band", cardinality: .toMany, deleteRule: .nullify))
        ])
    private static let detachedEntity = DetachedEntity(entityDescription)
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Band.songs: "songs"]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init()
    }

    @inline(never) init() {}
}

/// Catches: a new model that the optimizer allocates on the stack, without the header that counts references.
@Suite @MainActor struct OptimizedModelTests {
    @Test func `the target is optimized`() {
        var isChecked = false
        assert(
            {
                isChecked = true
                return true
            }())
        #expect(!isChecked)
    }

    @Test(arguments: 0..<20)
    func `S175: a new object that is only related is saved, however the relationship is set`(round: Int) async throws {
        let container = try await PersistentContainer(for: Song.self, Band.self, store: .memory)
        let context = container.mainContext
        let band = Band()
        context.insert(band)
        for number in 0..<4 {
            let song = Song(title: "set afterwards")
            song.band = band
            _ = Song(title: "set by the initializer", band: band)
            _ = Song(numbered: number, band: band)
            band.songs.append(Song(title: "appended"))
        }
        try await context.save()
        let other = container.newBackgroundContext()
        let titles = try await other.perform { context in try context.fetch(FetchRequest<Song>()).map(\.title) }
        #expect(titles.filter { $0.hasPrefix("song") }.sorted() == ["song 0", "song 1", "song 2", "song 3"])
        for title in ["set afterwards", "set by the initializer", "appended"] {
            #expect(titles.filter { $0 == title }.count == 4, "\(title)")
        }
        try await container.close()
    }

    @Test(arguments: 0..<20)
    func `S175: a new object that is shown by its partner is the same object, and stays`(round: Int) async throws {
        let container = try await PersistentContainer(for: Song.self, Band.self, store: .memory)
        let context = container.mainContext
        let band = Band()
        context.insert(band)
        for number in 0..<4 {
            let song = Song(title: "song \(number)", band: band)
            song.isPlaying = true
            #expect(band.songs.count == number + 1)
            #expect(band.songs.last?.title == song.title)
        }
        // Transient, so it is lost with an object that was not retained.
        #expect(band.songs.filter(\.isPlaying).count == 4)
        try await context.save()
        #expect(band.songs.count == 4)
        try await container.close()
    }
}
