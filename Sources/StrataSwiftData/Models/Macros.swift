import ObjectGraph

/// Makes a class a stored model, as SwiftData's macro of this name does.
///
/// Each stored property is an attribute or a relationship. The type decides which, and no annotation is needed. See Docs/Models.md for
/// the storage of each type.
///
/// ```swift
/// @Model final class Trip {
///     @Attribute(.unique) var name: String
///     var start = Date.now
///     @Relationship(deleteRule: .cascade, inverse: \Stop.trip) var stops: [Stop] = []
///
///     init(name: String) { self.name = name }
/// }
///
/// @Model final class Stop {
///     var place: String
///     var trip: Trip?
///
///     init(place: String) { self.place = place }
/// }
/// ```
@attached(
    member, conformances: PersistentModel, Sendable, names: named(__$modelAnchor), named(__$link), named(__$linked),
    named(managedObject), named(__$managedObject), named(entityDescription), named(describedEntity), named(entityName),
    named(detachedEntity), named(columnsByKeyPath), named(keyPaths), named(inheritableColumns), named(PropertyNumbers),
    named(init))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel, ObjectGraph.PersistentModel, Hashable, Sendable)
public macro Model() = #externalMacro(module: "StrataMacros", type: "SwiftDataModelMacro")

/// Sets the options of an attribute, and its former name.
///
/// Strata has its own answer to `.externalStorage`, and ignores `.spotlight`, `.allowsCloudEncryption` and `hashModifier`.
/// `.ephemeral` is the same as ``Transient()``.
@attached(peer)
public macro Attribute(_ options: Schema.Attribute.Option..., originalName: String? = nil, hashModifier: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Sets the options of a relationship. Relationships need no annotation.
///
/// Without a named inverse, a relationship is paired with the only relationship of the other model that leads back.
/// - Parameters:
///   - options: Ignored.
///   - deleteRule: The effect on the related objects when this object is deleted.
///   - minimumModelCount: The smallest number of objects; 0 for no limit. If the property is an optional, it may also have none.
///   - maximumModelCount: The largest number of objects; 0 for no limit.
///   - originalName: The former name of the relationship.
///   - inverse: The property of the related class that leads back. Of several relationships of a class that name the same property, the
///     first in the source has it as its inverse, and the others have none.
///   - hashModifier: Ignored.
@attached(peer)
public macro Relationship(
    _ options: Schema.Relationship.Option..., deleteRule: Schema.Relationship.DeleteRule = .nullify,
    minimumModelCount: Int? = 0, maximumModelCount: Int? = 0, originalName: String? = nil, inverse: AnyKeyPath? = nil,
    hashModifier: String? = nil
) = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Excludes a property from the store. A stored property needs an initial value.
@attached(peer)
public macro Transient() = #externalMacro(module: "StrataMacros", type: "MarkerMacro")

/// Adds indexes to a model: `#Index<Trip>([\.name], [\.start, \.name])`.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Adds indexes of given kinds to a model: `#Index<Trip>(.binary([\.name]))`. All kinds are B-trees.
@freestanding(declaration)
public macro Index<T: PersistentModel>(_ indices: Schema.Index<T>.Types<T>...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Requires that no two objects have the same values in all properties of a list. If a new object has the values of a saved one, the save
/// updates the saved object and deletes the new one.
@freestanding(declaration)
public macro Unique<T: PersistentModel>(_ constraints: [PartialKeyPath<T>]...) =
    #externalMacro(module: "StrataMacros", type: "IndexMacro")

/// Gives an actor a container and a model context: see ``ModelActor``.
///
/// - Parameter disableGenerateInit: Whether the actor has its own initializer, which sets `modelContainer` and `modelExecutor`.
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor(disableGenerateInit: Bool = false) =
    #externalMacro(module: "StrataMacros", type: "ModelActorMacro")

/// Implements an attribute. ``Model()`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro _PersistedAttribute<Column>(_ column: Column) =
    #externalMacro(module: "StrataMacros", type: "PersistedAttributeMacro")

/// Implements a to-one relationship. ``Model()`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro _PersistedToOne<Number, Column>(_ relationship: Number, column: Column) =
    #externalMacro(module: "StrataMacros", type: "PersistedToOneMacro")

/// Implements a to-many relationship. ``Model()`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro _PersistedToMany<Number>(_ relationship: Number) =
    #externalMacro(module: "StrataMacros", type: "PersistedToManyMacro")

/// Implements a property whose kind the compiler chooses by its type. ``Model()`` adds this macro; do not use it directly.
@attached(accessor, names: named(init), named(get), named(set))
@attached(peer, names: prefixed(_$))
public macro _PersistedProperty(_ column: String, _ relationship: String? = nil) =
    #externalMacro(module: "StrataMacros", type: "PersistedPropertyMacro")
