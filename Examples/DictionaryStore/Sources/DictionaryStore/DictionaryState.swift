import StoreInterface

/// Everything in the store at one moment. A copy costs nothing until it is changed; then each changed dictionary is copied.
struct DictionaryState: Sendable {
    struct Object: Sendable {
        /// The save that last wrote the object.
        var version: Generation
        var values: [Value]
    }

    struct Pair: Hashable, Sendable {
        var source: ObjectKey
        var destination: ObjectKey
    }

    var generation: Generation = 0
    /// The objects of each entity.
    var objects: [[ObjectKey: Object]]
    /// The pairs of each link.
    var links: [Set<Pair>]
    /// The first key of each entity that was never allocated.
    var nextKeys: [ObjectKey]
    /// The saves, oldest first.
    var history: [ChangeSet] = []
    /// The newest save that was deleted from the history; 0 if none was.
    var historyStart: Generation = 0

    init(_ schema: StoreSchema) {
        objects = schema.entities.map { _ in [:] }
        links = schema.links.map { _ in [] }
        nextKeys = schema.entities.map { _ in ObjectKey(page: 1, slot: 0) }
    }
}
