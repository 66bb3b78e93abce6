import ObjectGraph

// Two models without the macro, for programs that cannot use it. A test of the macro compares this text with the expansion of
// @Model for the same classes, so that both stay equal.

final class Song {
    var isrc: String {
        @storageRestrictions(initializes: _$isrc, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.object.initialize(0, to: initialValue)
            _$isrc = ModelPlaceholder()
        }
        get { __$modelAnchor.object.get(0) }
        set { __$modelAnchor.object.set(0, to: newValue) }
    }
    private var _$isrc: ModelPlaceholder

    var title: String {
        @storageRestrictions(initializes: _$title, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.object.initialize(1, to: initialValue)
            _$title = ModelPlaceholder()
        }
        get { __$modelAnchor.object.get(1) }
        set { __$modelAnchor.object.set(1, to: newValue) }
    }
    private var _$title: ModelPlaceholder

    var plays: Int {
        @storageRestrictions(initializes: _$plays, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.object.initialize(2, to: initialValue)
            _$plays = ModelPlaceholder()
        }
        get { __$modelAnchor.object.get(2) }
        set { __$modelAnchor.object.set(2, to: newValue) }
    }
    private var _$plays = ModelPlaceholder()

    var rating: Double? {
        @storageRestrictions(initializes: _$rating, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.object.initialize(3, to: initialValue)
            _$rating = ModelPlaceholder()
        }
        get { __$modelAnchor.object.get(3) }
        set { __$modelAnchor.object.set(3, to: newValue) }
    }
    private var _$rating = ModelPlaceholder()

    var band: Band? {
        @storageRestrictions(initializes: _$band, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.locatedObject.initializeToOne(0, 4, to: initialValue)
            _$band = ModelPlaceholder()
        }
        get { __$modelAnchor.object.toOne(0, 4) }
        set { __$modelAnchor.locatedObject.setToOne(0, 4, to: newValue) }
    }
    private var _$band = ModelPlaceholder()

    var isPlaying = false

    @exclusivity(unchecked) private var __$modelAnchor = ModelAnchor(for: Song.detachedEntity)

    var managedObject: ManagedObject { __$modelAnchor.object }

    static let entityDescription: EntityDescription = {
        var description = EntityDescription(name: "Song", properties: [])
        description.properties.append(.attribute(AttributeDescription("isrc", of: \Song.isrc, index: .unique)))
        description.properties.append(.attribute(AttributeDescription("title", of: \Song.title, renamedFrom: "name")))
        description.properties.append(
            .attribute(
                AttributeDescription("plays", of: \Song.plays, index: .indexed, default: 0, preservesValueOnDeletion: true)))
        description.properties.append(.attribute(AttributeDescription("rating", of: \Song.rating)))
        description.properties.append(
            .relationship(RelationshipDescription("band", of: \Song.band, inverse: "songs", renamedFrom: "group")))
        return description
    }()

    static var entityName: String { "Song" }

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

    @inline(never) private init(wrapping: Void) {
        _$isrc = ModelPlaceholder()
        _$title = ModelPlaceholder()
    }

    @inline(never) init(isrc: String, title: String, plays: Int = 0, rating: Double? = nil, band: Band? = nil) {
        self.isrc = isrc
        self.title = title
        self.plays = plays
        self.rating = rating
        self.band = band
    }
}

final class Band {
    var name: String {
        @storageRestrictions(initializes: _$name, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.object.initialize(0, to: initialValue)
            _$name = ModelPlaceholder()
        }
        get { __$modelAnchor.object.get(0) }
        set { __$modelAnchor.object.set(0, to: newValue) }
    }
    private var _$name: ModelPlaceholder

    var songs: [Song] {
        @storageRestrictions(initializes: _$songs, accesses: __$modelAnchor)
        init(initialValue) {
            __$modelAnchor.locatedObject.initializeToMany(0, to: initialValue)
            _$songs = ModelPlaceholder()
        }
        get { __$modelAnchor.object.toMany(0) }
        set { __$modelAnchor.locatedObject.setToMany(0, to: newValue) }
    }
    private var _$songs = ModelPlaceholder()

    @exclusivity(unchecked) private var __$modelAnchor = ModelAnchor(for: Band.detachedEntity)

    var managedObject: ManagedObject { __$modelAnchor.object }

    static let entityDescription: EntityDescription = {
        var description = EntityDescription(name: "Band", properties: [], renamedFrom: "Group")
        description.properties.append(.attribute(AttributeDescription("name", of: \Band.name)))
        description.properties.append(
            .relationship(RelationshipDescription("songs", of: \Band.songs, deleteRule: .cascade)))
        return description
    }()

    static var entityName: String { "Band" }

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

    @inline(never) private init(wrapping: Void) {
        _$name = ModelPlaceholder()
    }

    @inline(never) init(name: String, songs: [Song] = []) {
        self.name = name
        self.songs = songs
    }
}

nonisolated extension Song: PersistentModel {}

@available(*, unavailable) extension Song: Sendable {}

nonisolated extension Band: PersistentModel {}

@available(*, unavailable) extension Band: Sendable {}
