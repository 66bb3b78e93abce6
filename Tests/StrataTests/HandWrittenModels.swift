import ObjectGraph

// Two models without the macro, for programs that cannot use it. A test of the macro compares this text with the expansion of
// @Model for the same classes, so that both stay equal.

final class Song {
    var isrc: String {
        @storageRestrictions(initializes: _isrc, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(0, to: initialValue)
            _isrc = ModelPlaceholder()
        }
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    private var _isrc: ModelPlaceholder

    var title: String {
        @storageRestrictions(initializes: _title, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(1, to: initialValue)
            _title = ModelPlaceholder()
        }
        get { managedObject.get(1) }
        set { managedObject.set(1, to: newValue) }
    }
    private var _title: ModelPlaceholder

    var plays: Int {
        @storageRestrictions(initializes: _plays, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(2, to: initialValue)
            _plays = ModelPlaceholder()
        }
        get { managedObject.get(2) }
        set { managedObject.set(2, to: newValue) }
    }
    private var _plays = ModelPlaceholder()

    var rating: Double? {
        @storageRestrictions(initializes: _rating, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(3, to: initialValue)
            _rating = ModelPlaceholder()
        }
        get { managedObject.get(3) }
        set { managedObject.set(3, to: newValue) }
    }
    private var _rating = ModelPlaceholder()

    var band: Band? {
        @storageRestrictions(initializes: _band, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initializeToOne(0, 4, to: initialValue)
            _band = ModelPlaceholder()
        }
        get { managedObject.toOne(0, 4) }
        set { managedObject.setToOne(0, 4, to: newValue) }
    }
    private var _band = ModelPlaceholder()

    var isPlaying = false

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Song.detachedEntity)

    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Song",
        properties: [
            .attribute(AttributeDescription("isrc", of: \Song.isrc, index: .unique)),
            .attribute(AttributeDescription("title", of: \Song.title, renamedFrom: "name")),
            .attribute(
                AttributeDescription("plays", of: \Song.plays, index: .indexed, default: 0, preservesValueOnDeletion: true)),
            .attribute(AttributeDescription("rating", of: \Song.rating)),
            .relationship(
                RelationshipDescription(
                    name: "band", destination: "Band", inverse: "songs", cardinality: .toOne, renamedFrom: "group")),
        ])

    private static let detachedEntity = DetachedEntity(entityDescription)

    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Song.isrc: "isrc",
        \Song.title: "title",
        \Song.plays: "plays",
        \Song.rating: "rating",
        \Song.band: "band",
    ]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init(wrapping: ())
    }

    private init(wrapping: Void) {
        _isrc = ModelPlaceholder()
        _title = ModelPlaceholder()
    }

    init(isrc: String, title: String, plays: Int = 0, rating: Double? = nil, band: Band? = nil) {
        self.isrc = isrc
        self.title = title
        self.plays = plays
        self.rating = rating
        self.band = band
    }
}

final class Band {
    var name: String {
        @storageRestrictions(initializes: _name, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(0, to: initialValue)
            _name = ModelPlaceholder()
        }
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    private var _name: ModelPlaceholder

    var songs: [Song] {
        @storageRestrictions(initializes: _songs, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initializeToMany(0, to: initialValue)
            _songs = ModelPlaceholder()
        }
        get { managedObject.toMany(0) }
        set { managedObject.setToMany(0, to: newValue) }
    }
    private var _songs = ModelPlaceholder()

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Band.detachedEntity)

    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Band",
        properties: [
            .attribute(AttributeDescription("name", of: \Band.name)),
            .relationship(
                RelationshipDescription(name: "songs", destination: "Song", cardinality: .toMany, deleteRule: .cascade)),
        ],
        renamedFrom: "Group")

    private static let detachedEntity = DetachedEntity(entityDescription)

    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Band.name: "name",
        \Band.songs: "songs",
    ]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init(wrapping: ())
    }

    private init(wrapping: Void) {
        _name = ModelPlaceholder()
    }

    init(name: String, songs: [Song] = []) {
        self.name = name
        self.songs = songs
    }
}

extension Song: PersistentModel {}

@available(*, unavailable) extension Song: Sendable {}

extension Band: PersistentModel {}

@available(*, unavailable) extension Band: Sendable {}
