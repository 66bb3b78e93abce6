import StoreInterface
import StoreModel

/// The link of a model to its managed object in a class whose superclass is a model too. The `@Model` macro generates it.
///
/// Swift initializes the properties of a subclass before those of its superclass. So the first anchor of a new model is that of its
/// class. It creates the object, and the anchors of the superclasses find it by the address of the model: another model of the hierarchy,
/// created for an argument of `super.init`, has another address.
public struct SubclassAnchor<M: PersistentModel>: ~Copyable {
    /// The managed object of the model.
    public private(set) var object: ManagedObject

    /// Creates the anchor of a model that is being created. It wraps the object passed to `ModelAnchor.wrapNext(_:)`, or else a new
    /// detached object.
    public init(for entity: DetachedEntity) {
        if let known = ObjectToWrap.take(for: entity) {
            object = known
            object.isBeingInitialized = false
        } else {
            object = ManagedObject(detached: entity)
            object.isBeingInitialized = true
        }
        if object.unattachedAnchors < .max { object.unattachedAnchors += 1 }
    }

    deinit {
        // An initializer that fails before it calls that of the superclass leaves the object without a model.
        if ModelsInCreation.remove(object) { object.modelWasReleased() }
    }

    /// The managed object of the model, for setting relationships of a model that may be new.
    public var locatedObject: ManagedObject {
        // Mutating like that of `ModelAnchor`: Swift 6.3 cannot borrow the anchor in an init accessor.
        mutating get { object }
    }

    /// Makes the object known to the anchors of the superclasses, or takes that of a subclass.
    ///
    /// - Precondition: The anchor is a stored property of a model.
    public mutating func link() {
        let offsets = AnchorOffsets.of(M.self)
        guard let own = offsets.last, let head = offsets.first else { return }
        let instance = withUnsafeMutablePointer(to: &self) { UnsafeRawPointer($0) } - own
        if let known = ModelsInCreation.object(at: instance) {
            // This object is dropped without a model.
            object.unattachedAnchors = 0
            known.take(initialValuesOf: object)
            object = known
        } else {
            object.detachedState?.anchorAddress = instance + head
            ModelsInCreation.add(object, at: instance)
        }
    }

    /// Returns the column of a property that the class declares.
    ///
    /// - Parameter number: The position among the attributes and to-one relationships of the class.
    public mutating func column(_ number: Int) -> Int {
        if object.state == .detached { return (object.detachedState?.entity.inherited(M.self)?.column.rawValue ?? 0) + number }
        // A property whose type makes it a to-many relationship passes the number after the last column, and does not use the answer.
        let own = declared.ownColumns
        return own.indices.contains(number) ? own[number].rawValue : 0
    }

    /// Returns the number of a relationship that the class declares.
    ///
    /// - Parameter number: The position among the relationships of the class.
    public mutating func relationship(_ number: Int) -> Int {
        if object.state == .detached { return (object.detachedState?.entity.inherited(M.self)?.relationship ?? 0) + number }
        // A property whose type makes it an attribute passes the number after the last relationship, and does not use the answer.
        let own = declared.ownRelationships
        return own.indices.contains(number) ? own[number] : 0
    }

    private var declared: Inheritance {
        guard let inheritance = object.requiredContext.storedModel.entity(for: M.self)?.inheritance else {
            preconditionFailure(
                "cannot use an object as \(M.self): the model of its context does not have that subclass. "
                    + "Give the container that type.")
        }
        return inheritance
    }
}

extension ModelAnchor {
    /// Takes the object of the model if an anchor of a subclass has created it.
    ///
    /// - Precondition: The anchor is a stored property of a model.
    @inline(__always)
    public mutating func link<M: PersistentModel>(_ type: M.Type) {
        if ModelsInCreation.isEmpty { return }
        takeObject(type)
    }

    @inline(never)
    private mutating func takeObject<M: PersistentModel>(_ type: M.Type) {
        guard let offset = AnchorOffsets.of(M.self).first else { return }
        let instance = withUnsafeMutablePointer(to: &self) { UnsafeRawPointer($0) } - offset
        guard let known = ModelsInCreation.takeObject(at: instance) else { return }
        known.take(initialValuesOf: object)
        object = known
    }

    /// Returns the column of a property: its number. In a class with a superclass, it depends on the model.
    @inlinable @inline(__always)
    public mutating func column(_ number: Int) -> Int { number }

    /// Returns the number of a relationship: the same number. In a class with a superclass, it depends on the model.
    @inlinable @inline(__always)
    public mutating func relationship(_ number: Int) -> Int { number }
}

extension ManagedObject {
    /// Takes the initial values of a superclass's properties from the object that its anchor created before it was linked.
    fileprivate func take(initialValuesOf other: ManagedObject) {
        guard let row = other.row, other.state == .detached else { return }
        row.set.forEach { initializeRawValue($0, to: row[$0]) }
        guard let relations = other.detachedState, relations.hasRelations, takesInitialValues else { return }
        for (number, partner) in relations.toOne { setToOne(number, to: partner.object) }
        for (number, partners) in relations.toMany { setToMany(number, to: partners.compactMap(\.object)) }
        relations.toOne = [:]
        relations.toMany = [:]
    }
}
