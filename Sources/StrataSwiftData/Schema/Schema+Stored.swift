import ObjectGraph
import StoreModel

/// Matching a schema with that of the file which it opens.
extension Schema {
    /// Returns the schema with the version with which to open a file.
    ///
    /// A list of models has no version. As in SwiftData, it opens files of each version that has these models: it stands for the newest
    /// version of the plan, or for that of a file that stores the same.
    func matched(to stored: StoreSchema?, _ plan: (any SchemaMigrationPlan.Type)?) -> Schema {
        guard version == Self.version else { return self }
        if let newest = plan?.schemas.max(by: { $0.versionIdentifier < $1.versionIdentifier }) {
            let schema = Schema(versionedSchema: newest)
            return Self.classes(of: schema.types) == Self.classes(of: types) ? schema : self
        }
        guard let stored, let own = try? ordered(as: stored).model.get().storeSchema, own.version != stored.version,
            own.storesTheSame(as: stored)
        else { return self }
        return Schema(types, version: Version(stored.version.major, stored.version.minor, stored.version.patch))
    }

    /// Returns the identities of model classes and of their superclasses, which a model adds to a list without them.
    private static func classes(of types: [any ObjectGraph.PersistentModel.Type]) -> Set<ObjectIdentifier> {
        Set(types.withSuperclasses.map { ObjectIdentifier($0) })
    }

    /// Returns the schema with its entities in the order of a file, and new ones after them.
    ///
    /// The identifiers of objects contain the position of the entity, so that it must not depend on the order in which the program lists its
    /// models, or on models that are added. Models that the file does not have are in the order in which the versions of the plan add them, so
    /// that their identifiers are the same in all stages.
    func ordered(as stored: StoreSchema?, in plan: (any SchemaMigrationPlan.Type)? = nil) -> Schema {
        guard let stored, let model = try? model.get() else { return self }
        var positions: [String: Int] = [:]
        for entity in stored.entities {
            for name in [entity.name] + entity.subentities.map(\.name) where positions[name] == nil {
                positions[name] = positions.count
            }
        }
        // The positions of new models, by the names of their topmost classes.
        var added: [String: Int] = [:]
        for entity in (plan?.storeSchemas ?? []).flatMap(\.entities) where added[entity.name] == nil {
            added[entity.name] = positions.count + added.count
        }
        func position(_ type: any PersistentModel.Type) -> Int {
            guard let entity = model.entity(for: type) else { return .max }
            let head = model.storeSchema.entities[entity.number]
            let earlier = head.subentities.first { $0.name == entity.name }?.renamedFrom ?? head.renamedFrom
            return positions[entity.name] ?? earlier.flatMap { positions[$0] } ?? positions[head.name]
                ?? added[head.name] ?? .max
        }
        let sorted = types.enumerated().sorted { (position($0.element), $0.offset) < (position($1.element), $1.offset) }
        return Schema(sorted.map(\.element), version: version)
    }
}
