import ObjectGraph

// Three models as the macro expands them: one to many, one to one, and many to many.

final class Guest: PersistentModel {
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

    var party: Party? {
        @storageRestrictions(initializes: _party, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.locatedObject.initializeToOne(0, 1, to: initialValue)
            _party = ModelPlaceholder()
        }
        get { managedObject.toOne(0, 1) }
        set { modelAnchor.locatedObject.setToOne(0, 1, to: newValue) }
    }
    private var _party = ModelPlaceholder()

    var badge: Badge? {
        get { managedObject.toOne(1, 2) }
        set { modelAnchor.locatedObject.setToOne(1, 2, to: newValue) }
    }

    var friends: [Guest] {
        @storageRestrictions(initializes: _friends, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.locatedObject.initializeToMany(2, to: initialValue)
            _friends = ModelPlaceholder()
        }
        get { managedObject.toMany(2) }
        set { modelAnchor.locatedObject.setToMany(2, to: newValue) }
    }
    private var _friends = ModelPlaceholder()

    var admirers: [Guest] {
        get { managedObject.toMany(3) }
        set { modelAnchor.locatedObject.setToMany(3, to: newValue) }
    }

    /// Transient, so it is lost with the instance.
    var note: String

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Guest.detachedEntity)
    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Guest",
        properties: [
            .attribute(AttributeDescription("name", of: \Guest.name)),
            .relationship(.init(name: "party", destination: "Party", inverse: "guests", cardinality: .toOne)),
            .relationship(.init(name: "badge", destination: "Badge", inverse: "guest", cardinality: .toOne)),
            .relationship(.init(name: "friends", destination: "Guest", inverse: "admirers", cardinality: .toMany)),
            .relationship(.init(name: "admirers", destination: "Guest", inverse: "friends", cardinality: .toMany)),
        ])
    private static let detachedEntity = DetachedEntity(entityDescription)
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Guest.name: "name", \Guest.party: "party", \Guest.badge: "badge", \Guest.friends: "friends",
    ]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init(wrapping: ())
    }

    @inline(never) private init(wrapping: Void) {
        _name = ModelPlaceholder()
        note = ""
    }

    /// Sets the relationship first, while the instance is incomplete.
    @inline(never) init(party: Party?, friends: [Guest] = [], name: String, note: String = "") {
        self.party = party
        self.friends = friends
        self.name = name
        self.note = note
    }

    struct Refused: Error {}

    /// Fails before the instance is complete, and perhaps after a use of the context that inserts its object.
    @inline(never) init(refusedBy party: Party, friends: [Guest] = [], isShown: Bool) throws {
        self.party = party
        self.friends = friends
        if isShown { _ = party.guests }
        guard party.title.isEmpty else { throw Refused() }
        self.name = ""
        self.note = ""
    }

    /// Uses the context of the party before the instance is complete.
    @inline(never) init(sittingIn party: Party) {
        self.party = party
        let number = party.guests.count
        self.name = "\(party.title) \(number)"
        self.note = "made"
    }
}

final class Party: PersistentModel {
    var title: String {
        @storageRestrictions(initializes: _title, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.object.initialize(0, to: initialValue)
            _title = ModelPlaceholder()
        }
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    private var _title: ModelPlaceholder

    var guests: [Guest] {
        @storageRestrictions(initializes: _guests, accesses: modelAnchor)
        init(initialValue) {
            modelAnchor.locatedObject.initializeToMany(0, to: initialValue)
            _guests = ModelPlaceholder()
        }
        get { managedObject.toMany(0) }
        set { modelAnchor.locatedObject.setToMany(0, to: newValue) }
    }
    private var _guests = ModelPlaceholder()

    @exclusivity(unchecked) private var modelAnchor = ModelAnchor(for: Party.detachedEntity)
    var managedObject: ManagedObject { modelAnchor.object }

    static let entityDescription = EntityDescription(
        name: "Party",
        properties: [
            .attribute(AttributeDescription("title", of: \Party.title)),
            .relationship(
                .init(
                    name: "guests", destination: "Guest", inverse: "party", cardinality: .toMany, deleteRule: .nullify)),
        ])
    private static let detachedEntity = DetachedEntity(entityDescription)
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [
        \Party.title: "title", \Party.guests: "guests",
    ]

    convenience init(managedObject: ManagedObject) {
        ModelAnchor.wrapNext(managedObject)
        self.init(wrapping: ())
    }

    @inline(never) private init(wrapping: Void) { _title = ModelPlaceholder() }

    @inline(never) init(title: String, guests: [Guest] = []) {
        self.title = title
        self.guests = guests
    }
}

/// A model written by hand, without a property `modelAnchor`.
final class Badge: PersistentModel {
    let managedObject: ManagedObject
    private let anchor: ModelAnchor

    init(managedObject: ManagedObject) {
        self.managedObject = managedObject
        anchor = ModelAnchor(managedObject)
    }

    convenience init(guest: Guest? = nil, code: Int) {
        self.init(managedObject: ManagedObject(detached: DetachedEntity(Self.entityDescription)))
        self.guest = guest
        self.code = code
    }

    var code: Int {
        get { managedObject.get(0) }
        set { managedObject.set(0, to: newValue) }
    }
    var guest: Guest? {
        get { managedObject.toOne(0, 1) }
        set { managedObject.setToOne(0, 1, to: newValue) }
    }

    static let entityDescription = EntityDescription(
        name: "Badge",
        properties: [
            .attribute(AttributeDescription("code", of: \Badge.code)),
            .relationship(.init(name: "guest", destination: "Guest", inverse: "badge", cardinality: .toOne)),
        ])
    // Immutable: it is created once, and key paths do not change.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Badge.code: "code", \Badge.guest: "guest"]
}
