import StoreInterface
import StoreModel

/// Relationships whose objects are read together with those of a request, as names or paths of names, such as "album.artist".
struct PrefetchPlan {
    let paths: [String]

    /// Creates the plan of a request; nil if it prefetches nothing.
    init?(_ options: FetchOptions) {
        guard !options.relationshipKeyPathsForPrefetching.isEmpty else { return nil }
        paths = options.relationshipKeyPathsForPrefetching
    }
}

extension ManagedObjectContext {
    /// Throws if a path is not a relationship, before anything is read.
    func check(_ plan: PrefetchPlan, _ entity: EntityIndex) throws {
        for path in plan.paths { _ = try relationships(path, entity) }
    }

    private func relationships(_ path: String, _ entity: EntityIndex) throws -> [Relationship] {
        var entity = storedModel.entities[entity]
        return try entity.names(onPath: path, in: storedModel).map { name in
            guard let found = entity.relationship(named: name) else {
                throw FetchError.unknownProperty(entity: entity.name, property: name)
            }
            entity = storedModel.entities[found.destination]
            return found
        }
    }

    /// Reads the pages of related objects into the context's cache, each page once, without creating objects.
    ///
    /// Until the context moves to another state, following the relationships and reading properties then needs no access to the store.
    /// This also works in child contexts. Unsaved objects need no reading, because they are in layers.
    func prefetch(_ plan: PrefetchPlan, of keys: [ObjectKey], _ entity: EntityIndex) throws {
        for path in plan.paths {
            var sources = keys
            var place = entity
            for relationship in try relationships(path, entity) {
                sources = try related(relationship, of: sources, place)
                place = relationship.destination
                for key in sources {
                    _ = try layerStack.pages.page(place, key.page, in: layerStack.view.base)?.contains(
                        key.slot)
                }
            }
        }
    }

    private func related(_ relationship: Relationship, of keys: [ObjectKey], _ entity: EntityIndex) throws -> [ObjectKey] {
        var found: Set<ObjectKey> = []
        for key in keys {
            switch relationship.kind {
            case .toOne(let column):
                if let other = readBelow(entity, key: key, column: column)?.referenceKey { found.insert(other) }
            case .toMany(let relation):
                found.formUnion(try layerStack.view.related(relation, to: key))
            }
        }
        return found.sorted()
    }
}
