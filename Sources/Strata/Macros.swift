import ObjectGraph

/// Makes a class a stored model.
///
/// Each stored property is an attribute or a relationship. Its type decides which:
///
/// | type | stored as |
/// | --- | --- |
/// | numbers, `Bool`, `String`, `Data`, `Date`, `UUID`, `URL`, `Decimal`, and types that conform to `AttributeValue` | a value that predicates and sorts compare |
/// | an enum or another type with such a raw value | the raw value |
/// | another `Codable` type, such as `[String]` or a structure | JSON; predicates compute its fields in memory, without an index |
/// | `Other?` or `Other`, where `Other` is a model | a relationship to one object |
/// | `[Other]`, `[Other]?` or `Set<Other>` | a relationship to many objects |
///
/// All of the values can be optional. Reading a relationship `Other` whose object was deleted stops the program. A to-many relationship
/// is read in the order of the keys unless it is ordered, and never as nil.
///
/// A relationship without ``Relationship(_:deleteRule:inverse:count:renamedFrom:)`` gets the inverse that leads back, if each of the two models
/// has exactly one relationship that can be it.
///
/// Computed properties stay as they are. Properties are read from and written to the object's context. A new object keeps its
/// own values until it is inserted.
///
/// If the class has no initializer, the macro adds one with a parameter per property. As in a structure, a private property with a value
/// has no parameter, and one without a value makes the initializer private.
///
/// Unless the class says otherwise, it is not `Sendable`: an object belongs to its context. If the class had another name in existing
/// files, pass that name: `renamedFrom: "Singer"`.
///
/// ```swift
/// @Model final class Choir {
///     var name: String
///     @Relationship(deleteRule: .nullify, inverse: \Melody.band) var songs: [Melody]
/// }
///
/// @Model final class Melody {
///     var title: String
///     var plays = 0
///     @Transient var isPlaying = false
///     @Relationship var band: Choir?
/// }
/// ```
@attached(
    member, conformances: PersistentModel, Sendable, names: named(__$modelAnchor), named(__$link), named(__$linked),
    named(managedObject), named(__$managedObject), named(entityDescription), named(describedEntity), named(entityName),
    named(detachedEntity), named(columnsByKeyPath), named(keyPaths), named(inheritableColumns), named(PropertyNumbers),
    named(init))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel, Hashable, Sendable)
public macro Model(renamedFrom: String? = nil, isAbstract: Bool = false) =
    #externalMacro(module: "StrataMacros", type: "ModelMacro")

/// Sets the options of a stored property: whether it is unique, indexed or preserved in the history on deletion, the rules that its
/// values must follow when they are saved, and its former name.
///
/// ```swift
/// @Attribute(.unique) var isrc: String
/// var title: String
/// @Attribute(.indexed) var playCount = 0
/// ```
@attached(peer)
public macro Attribute(_ options: AttributeOption..., renamedFrom: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Adds indexes to a model. Each argument lists the properties of one index, in order:
/// `#Index<Track>([\.album, \.number], [\.title])`.
///
/// Fetches and sorts can use an index by its first property, by its first two properties, and so on. Saves take longer to
/// update it.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indexes: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Requires in a model that no two objects have the same values in all properties of a list:
/// `#Unique<Track>([\.album, \.number])`. nil differs from nil. Implies an index.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Sets the options of a relationship. A relationship without options needs no annotation.
///
/// An array with the option ``RelationshipOption/ordered`` keeps the order that the program gives it. Changing the array
/// changes only the objects that are new in it or that moved.
///
/// ```swift
/// @Model final class Partita {
///     var title: String
///     @Relationship(.ordered, deleteRule: .cascade, inverse: \Movement.partita) var movements: [Movement]
/// }
///
/// @Model final class Movement {
///     var title: String
///     var partita: Partita?
/// }
/// ```
///
/// With an inverse, a change of one side changes the other side. Name the inverse on one side only; the other side infers it.
/// Swift cannot resolve two attributes that name each other's properties.
///
/// Without a named inverse, the relationship is paired with the only relationship of the other model that leads back, if that one has
/// no annotation. Two annotated relationships are paired by name only.
/// - Parameters:
///   - options: `.required` for a relationship to one object that a save must not leave nil, `.ordered` for an array that keeps its
///     order.
///   - deleteRule: The effect on the related objects when this object is deleted.
///   - inverse: The property of the related class that leads back. An explicit nil keeps the relationship without an inverse.
///   - count: The number of objects that a relationship to many objects must have when it is saved, such as `1...`, `...20` or `2...2`.
///   - renamedFrom: The former name of the relationship.
@attached(peer)
public macro Relationship(
    _ options: RelationshipOption..., deleteRule: DeleteRule = .nullify, inverse: AnyKeyPath? = nil,
    count: (any RangeExpression<Int>)? = nil, renamedFrom: String? = nil
) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Excludes a property from the store. The property needs an initial value.
@attached(peer)
public macro Transient() = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from a value of a related object. Each save keeps the value (S200), and the property cannot be set.
///
/// Predicates, sorts and indexes use the attribute like any other. The property shows the value of the last save; for a new object
/// nil, zero or an empty string. If there is no related object, it is the same.
///
/// ```swift
/// @Model final class Concert {
///     var title: String
///     @Relationship var venue: Venue?
///     @Relationship(deleteRule: .cascade, inverse: \Ticket.concert) var tickets: [Ticket]
///     @Derived(from: \Concert.venue?.city) var city: String?
///     @Derived(count: \Concert.tickets) @Attribute(.indexed) var ticketCount: Int
///     @Derived(sum: \Ticket.price, in: \Concert.tickets) var income: Int
///     @Derived(folded: \Concert.title) var searchTitle: String
/// }
///
/// @Model final class Venue {
///     var city: String
/// }
///
/// @Model final class Ticket {
///     var price: Int
///     var concert: Concert?
/// }
/// ```
/// - Parameter path: The attribute, through one or more relationships to one object.
@attached(peer)
public macro Derived(from path: AnyKeyPath) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from the number of objects in a relationship: see ``Derived(from:)``.
@attached(peer)
public macro Derived(count relationship: AnyKeyPath) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from the sum of an attribute of related objects: see ``Derived(from:)``. Sums of integers are `Int`, others
/// `Double`. A `Decimal` has no sum.
@attached(peer)
public macro Derived(sum attribute: AnyKeyPath, in relationship: AnyKeyPath) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from the least value of an attribute of related objects: see ``Derived(from:)``.
@attached(peer)
public macro Derived(minimum attribute: AnyKeyPath, in relationship: AnyKeyPath) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from the greatest value of an attribute of related objects: see ``Derived(from:)``.
@attached(peer)
public macro Derived(maximum attribute: AnyKeyPath, in relationship: AnyKeyPath) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute, a `Double`, from the mean of an attribute of related objects: see ``Derived(from:)``.
@attached(peer)
public macro Derived(average attribute: AnyKeyPath, in relationship: AnyKeyPath) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from a string of the same object, in lower case: see ``Derived(from:)``.
@attached(peer)
public macro Derived(lowercased attribute: AnyKeyPath) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Derives an attribute from a string of the same object, in lower case and without diacritics, for searches: see ``Derived(from:)``.
@attached(peer)
public macro Derived(folded attribute: AnyKeyPath) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Implements an attribute. ``Model(renamedFrom:isAbstract:)`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro PersistedAttribute<Column>(_ column: Column) =
    #externalMacro(module: "StrataMacros", type: "PersistedAttributeMacro")

/// Implements a derived attribute. ``Model(renamedFrom:isAbstract:)`` adds this macro; do not use it directly.
@attached(accessor, names: named(get))
public macro PersistedDerived<Column>(_ column: Column) =
    #externalMacro(module: "StrataMacros", type: "PersistedDerivedMacro")

/// Implements a to-one relationship. ``Model(renamedFrom:isAbstract:)`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro PersistedToOne<Number, Column>(_ relationship: Number, column: Column) =
    #externalMacro(module: "StrataMacros", type: "PersistedToOneMacro")

/// Implements a to-many relationship. ``Model(renamedFrom:isAbstract:)`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro PersistedToMany<Number>(_ relationship: Number) =
    #externalMacro(module: "StrataMacros", type: "PersistedToManyMacro")

/// Implements a property whose kind the compiler chooses by its type. ``Model(renamedFrom:isAbstract:)`` adds this macro; do not use it
/// directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro PersistedProperty(_ column: String, _ relationship: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "PersistedPropertyMacro")
