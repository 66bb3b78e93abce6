import StoreInterface
import StoreModel

/// The settings with which a context is created. A class, because contexts pass them on and keep them.
final class ContextConfiguration: Sendable {
    /// The context's first name.
    let name: String
    /// The coordinator of the root context. A child uses it to allocate keys and to read the store.
    let coordinator: PersistentStoreCoordinator
    let parent: ContextLink?
    /// Whether the context merges other saves automatically at first.
    let automaticallyMergesChanges: Bool
    /// Whether the context reads the newest state at its first read, instead of the state at its creation.
    /// True for the container's own contexts.
    let beginsAtFirstRead: Bool
    /// The number of the root, in a child that also follows the store: the main context of `.hybrid`. nil in other contexts.
    ///
    /// The writer announces the saves of other roots to such a child. If its parent has not merged them before the next read, the child
    /// takes them from the writer (S068). It may thus read a newer state than its parent.
    let followedRoot: UInt64?
    /// The number of the root that saves the changes of a child; nil in a root.
    let root: UInt64?
    /// Whether the context's merge policy is also that of its parent: the main context, whose root programs do not see.
    let decidesForParent: Bool

    init(
        name: String, coordinator: PersistentStoreCoordinator, parent: ContextLink? = nil, automaticallyMergesChanges: Bool,
        beginsAtFirstRead: Bool = false, followedRoot: UInt64? = nil, root: UInt64? = nil, decidesForParent: Bool = false
    ) {
        self.name = name
        self.coordinator = coordinator
        self.parent = parent
        self.automaticallyMergesChanges = automaticallyMergesChanges
        self.beginsAtFirstRead = beginsAtFirstRead
        self.followedRoot = followedRoot
        self.root = root
        self.decidesForParent = decidesForParent
    }

    var capabilities: ModelCapabilities { coordinator.capabilities }
    var writer: StoreWriter { coordinator.writer }
}

/// The settings of a context that is about to be created, and the state that it reads first. The context does not keep that state: it would
/// prevent reuse of the state's pages for the lifetime of the context.
struct NewContext: @unchecked Sendable {
    // `@unchecked Sendable` is safe because every layer in `baseState` is sealed.
    let configuration: ContextConfiguration
    var baseState: LayerStack.BaseState

    /// Returns what a new root context needs to read the newest state.
    ///
    /// - Parameter beginsAtFirstRead: See ``ContextConfiguration/beginsAtFirstRead``.
    static func root(
        of coordinator: PersistentStoreCoordinator, name: String, merging: Bool = false, beginsAtFirstRead: Bool = false
    ) -> NewContext {
        let configuration = ContextConfiguration(
            name: name, coordinator: coordinator, automaticallyMergesChanges: merging, beginsAtFirstRead: beginsAtFirstRead)
        let state = LayerStack.BaseState(
            state: coordinator.writer.firstState(), inherited: [], route: coordinator.rootRoute)
        return NewContext(configuration: configuration, baseState: state)
    }

    /// Returns what a new child needs to read the present state of its parent. The parent's unsaved changes become immutable.
    ///
    /// - Parameters:
    ///   - followsStore: Whether the child merges automatically and also follows the store: see ``ContextConfiguration/followedRoot``.
    ///   - decidesForParent: Whether the child's merge policy is also that of its parent.
    static func child(
        of parent: ManagedObjectContext, name: String, followsStore: Bool = false, decidesForParent: Bool = false
    ) -> NewContext {
        parent.checkIsolation()
        precondition(
            parent.place.confinement == nil,
            "cannot create a child of the context \(parent.name): it has no executor. Create another context of the container")
        let configuration = ContextConfiguration(
            name: name, coordinator: parent.configuration.coordinator,
            parent: ContextLink(place: parent.place, name: parent.name), automaticallyMergesChanges: followsStore,
            followedRoot: followsStore ? parent.number : nil, root: parent.configuration.root ?? parent.number,
            decidesForParent: decidesForParent)
        return NewContext(configuration: configuration, baseState: parent.baseStateForChild())
    }
}

/// A weak reference to a context, for its children. Saving to a parent that was released throws (S078).
package struct ContextLink: Sendable {
    let place: ContextAddress
    package let name: String

    var contextExecutor: (any ContextExecutor)? { place.contextExecutor }
}

/// A model, and the properties of it that contexts read often. They are computed once per coordinator.
final class ModelCapabilities: Sendable {
    /// The model with its hidden entities.
    let model: Model
    let layerTemplate: LayerTemplate
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

    func derivedColumns(of entity: EntityIndex) -> ColumnSet { derived.isEmpty ? ColumnSet() : derived[entity] }

    init(_ model: Model) {
        self.model = model
        layerTemplate = LayerTemplate(model.storeSchema)
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
