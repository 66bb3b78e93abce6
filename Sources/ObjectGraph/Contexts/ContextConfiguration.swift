internal import Platform
import StoreInterface

/// All that a new context must know, in a form that can travel to the executor where it will live.
struct ContextConfiguration: @unchecked Sendable {
    // `@unchecked Sendable` is right because every part is immutable and every layer in `baseState` is sealed.
    let name: String
    /// The root's coordinator; a child keeps it to take keys and read the store.
    let coordinator: PersistentStoreCoordinator
    /// What the context reads at first; nil in the copy that a context keeps.
    var baseState: ManagedObjectContext.BaseState?
    let parent: ParentLink?
    var automaticallyMergesChanges: Bool
    /// Whether the context reads the newest state at its first read, instead of the one at its creation: the container's own contexts.
    var beginsAtFirstRead = false

    /// The way to a parent. The parent is not kept alive: a save into one that is gone throws (S078).
    struct ParentLink: Sendable {
        let place: ContextAddress
        let name: String

        var host: (any ContextExecutor)? { place.host }
    }

    var model: Model { coordinator.model }
    var traits: ModelCapabilities { coordinator.traits }
    var writer: StoreWriter { coordinator.writer }

    private static let counter = Atomic<UInt64>(1)

    static func nextNumber() -> UInt64 { counter.add(1, ordering: .relaxed).oldValue }
}

/// Facts of a model that contexts ask for often: worked out once a coordinator.
final class ModelCapabilities: Sendable {
    /// By entity: whether its model type has life cycle hooks.
    let hasLifecycle: [Bool]
    let hasAnyLifecycle: Bool
    let noKeys: [Range<ObjectKey>]
    /// By entity: the columns whose values stay in the history when an object is deleted; empty when no entity has any.
    let preserved: [ColumnSet]
    let rules: RelationshipRules

    init(_ model: Model) {
        rules = RelationshipRules(model)
        hasLifecycle = model.entities.map { entity in
            model.type(of: entity).map { $0 is any ManagedObjectLifecycle.Type } ?? false
        }
        hasAnyLifecycle = hasLifecycle.contains(true)
        let columns = model.entities.map { entity in
            entity.attributes.reduce(into: ColumnSet()) { set, attribute in
                if attribute.preservesValueOnDeletion { set.insert(attribute.column) }
            }
        }
        preserved = columns.allSatisfy(\.isEmpty) ? [] : columns
        noKeys = Array(repeating: 0..<0, count: model.entities.count)
    }
}
