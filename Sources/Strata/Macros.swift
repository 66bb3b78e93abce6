import ObjectGraph

/// Makes a final class a stored model.
///
/// Each stored property is an attribute, or a relationship where ``Relationship(deleteRule:inverse:renamedFrom:)`` says so; computed
/// ones are left alone. Properties are read from and written to the object's context; a new object keeps its own values until it
/// is inserted. Without an initializer of yours one is made that takes each property. The class is not `Sendable`: an object
/// belongs to its context. A class that had another name when files were written says so: `renamedFrom: "Singer"`.
@attached(
    member, names: named(modelAnchor), named(managedObject), named(entityDescription), named(detachedEntity),
    named(columnsByKeyPath), named(init))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel, Sendable)
public macro Model(renamedFrom: String? = nil) = #externalMacro(module: "StrataMacros", type: "ModelMacro")

/// What an attribute can be beside stored.
public enum AttributeOption: Sendable {
    /// No two objects have the same value; nil is different from nil. Implies an index.
    case unique
    /// Fetches by this attribute use an index; saves pay for it.
    case indexed
    /// The history keeps the value of a deleted object, in its tombstone.
    case preserveValueOnDeletion
}

/// Says more about a stored property of a model: whether it is unique, indexed or kept in the history on deletion, and what it was called before.
@attached(peer)
public macro Attribute(_ options: AttributeOption..., renamedFrom: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Inside a model: indexes over several properties each, in the order given: `#Index<Track>([\.album, \.number], [\.title])`.
///
/// Fetches and sorts by the first of them, or by the first and the second, and so on, may use such an index; saves pay for it.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indexes: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Inside a model: no two objects have the same values in all properties of a list: `#Unique<Track>([\.album, \.number])`. nil differs
/// from nil. Implies an index.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Makes a property a relationship: `Other?` to one object, `[Other]` to many.
///
/// With an inverse, both sides follow each other. Name it on one side only: the other learns it, and Swift cannot resolve two
/// attributes that name each other's properties. The rule says what becomes of the related
/// objects when this one is deleted; `renamedFrom` what the relationship was called before.
@attached(peer)
public macro Relationship(deleteRule: DeleteRule = .nullify, inverse: AnyKeyPath? = nil, renamedFrom: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Leaves a property out of the store. It needs an initial value.
@attached(peer)
public macro Transient() = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Written by ``Model(renamedFrom:)`` on each attribute; not for use by hand.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_))
public macro PersistedAttribute(_ column: Int) =
    #externalMacro(module: "StrataMacros", type: "PersistedAttributeMacro")

/// Written by ``Model(renamedFrom:)`` on each relationship to one; not for use by hand.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_))
public macro PersistedToOne(_ relationship: Int, column: Int) =
    #externalMacro(module: "StrataMacros", type: "PersistedToOneMacro")

/// Written by ``Model(renamedFrom:)`` on each relationship to many; not for use by hand.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_))
public macro PersistedToMany(_ relationship: Int) =
    #externalMacro(module: "StrataMacros", type: "PersistedToManyMacro")
