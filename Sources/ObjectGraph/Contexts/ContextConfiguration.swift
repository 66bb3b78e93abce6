import StoreInterface
import StoreModel

/// The values that a new context needs, in a form that can be sent to the executor of that context.
struct ContextConfiguration: @unchecked Sendable {
    // `@unchecked Sendable` is safe because every part is immutable and every layer in `baseState` is sealed.
    let name: String
    /// The coordinator of the root context. A child uses it to allocate keys and to read the store.
    let coordinator: PersistentStoreCoordinator
    /// The state that the context reads first; nil in the copy that a context keeps.
    var baseState: LayerStack.BaseState?
    let parent: ContextLink?
    var automaticallyMergesChanges: Bool
    /// Whether the context reads the newest state at its first read, instead of the state at its creation.
    /// True for the container's own contexts.
    var beginsAtFirstRead = false
    /// The number of the root, in a child that also follows the store: the main context of `.hybrid`. nil in other contexts.
    ///
    /// The writer announces the saves of other roots to such a child. If its parent has not merged them before the next read, the child
    /// takes them from the writer (S068). It may thus read a newer state than its parent.
    var followedRoot: UInt64?

    /// The number of the root that saves the changes of a child; nil in a root.
    var root: UInt64?
    /// Whether the context's merge policy is also that of its parent: the main context, whose root programs do not see.
    var decidesForParent = false

    var model: Model { coordinator.contextModel }
    var capabilities: ModelCapabilities { coordinator.capabilities }
    var writer: StoreWriter { coordinator.writer }
}

/// A weak reference to a context, for its children. Saving to a parent that was released throws (S078).
package struct ContextLink: Sendable {
    let place: ContextAddress
    package let name: String

    var contextExecutor: (any ContextExecutor)? { place.contextExecutor }
}

/// Properties of a model that contexts read often. They are computed once per coordinator.
final class ModelCapabilities: Sendable {
    /// For each entity, whether its model type has lifecycle hooks.
    let hasLifecycle: [Bool]
    let hasAnyLifecycle: Bool
    let noKeys: [Range<ObjectKey>]
    /// For each entity, the columns whose values stay in the history when an object is deleted. Empty if no entity has such columns.
    let preserved: [ColumnSet]
    /// For each entity, the derived columns. Empty if no entity has any.
    let derived: [ColumnSet]
    let rules: RelationshipRules
    /// The rules of properties; nil if no property has any.
    let validation: ValidationRules?
    /// The hidden entity of keyed values; nil if the store does not have it.
    let keyedValues: EntityIndex?
    /// For each entity, the offset of the model's anchor in an instance of the model type; nil if it is unknown.
    let anchorOffsets: [Int?]

    init(_ model: Model) {
        rules = RelationshipRules(model)
        derived = DerivedColumns(model.storeSchema)?.sets ?? []
        validation = ValidationRules(model)
        keyedValues = model.storeSchema.keyedValues
        hasLifecycle = model.entities.map { entity in
            model.types(of: entity).contains { $0 is any ManagedObjectLifecycle.Type }
        }
        hasAnyLifecycle = hasLifecycle.contains(true)
        let columns = model.entities.map { entity in
            entity.attributes.reduce(into: ColumnSet()) { set, attribute in
                if attribute.preservesValueOnDeletion { set.insert(attribute.column) }
            }
        }
        preserved = columns.allSatisfy(\.isEmpty) ? [] : columns
        anchorOffsets = model.entities.map { model.type(of: $0).flatMap(ModelAnchor.offset) }
        noKeys = Array(repeating: 0..<0, count: model.entities.count)
    }
}
