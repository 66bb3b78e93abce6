import Dispatch
import StoreInterface
import StoreModel

extension Model {
    /// Creates the model that is stored in a file, for programs that open files of other programs.
    ///
    /// ```swift
    /// let store = StoreDescription.lmdb(file, readOnly: true)
    /// let container = try await PersistentContainer(model: Model(storedIn: store), store: store)
    /// let count = try await container.read { try $0.count(EntityFetchRequest("Track")) }
    /// ```
    /// A file stores entities, attributes, to-one relationships, links and indexes, but neither delete rules nor default values. So the
    /// model has one relationship per reference and link, without an inverse, with the rule `.nullify`. The file keeps the inverses of
    /// the model that wrote it. To read along the other direction, add inverses to the descriptions of ``EntityDescription/all(in:)``, and
    /// open the file with ``keepingInverses``; to-many relationships with a to-one inverse are not stored and can have any name. Do not
    /// delete objects with such a model: the rules of the program that owns the file are unknown.
    ///
    /// Reads the file on a background queue, and does not change it.
    /// - Parameter store: The description of a file, which may be read-only.
    /// - Throws: `StoreError`: `.cannotOpen` if the file has no schema that this version can read, `.unsupported` for a store without a
    ///   file, and errors of opening.
    public init(storedIn store: StoreDescription) async throws {
        guard let read = store.storedSchema else {
            throw StoreError(
                .unsupported, "cannot read the model of the store \(store.name): it has no file. Use a store in a file")
        }
        guard let schema = try await DispatchQueue.blocking(read) else {
            throw StoreError(
                .cannotOpen,
                "cannot read the model of the store \(store.name): its file is missing or empty, was written by a newer version, or "
                    + "belongs to another program. Check the path")
        }
        try self.init(stored: schema)
    }

    /// Creates the model of a schema that was made from a model and stored, as ``init(storedIn:)`` does.
    ///
    /// - Throws: `StoreError` `.schemaMismatch` for a schema that no model has: one whose numbers lead nowhere, for instance.
    public init(stored schema: StoreSchema) throws {
        // Opening a store computes the values that its file does not have yet.
        let plain = schema.withoutHints.withoutPendingDerivations
        let descriptions = schema.isSound ? EntityDescription.all(in: plain) : []
        // A file of keyed collections only has no entities.
        let found = try? descriptions.isEmpty ? Model.empty : Model(descriptions, version: schema.version)
        guard let found, descriptions.isEmpty ? schema.entities.isEmpty : found.storeSchema.withoutHints == plain else {
            throw StoreError(
                .schemaMismatch, "cannot use a stored schema: it was not made from a model. Open its store with the schema itself"
            )
        }
        self = found.keepingInverses
    }
}

extension EntityDescription {
    /// Returns descriptions of the entities of a schema, as far as a schema has them: without inverses, delete rules and default values.
    /// The entities that inherit from others follow the others. Relationships lead to the heads of hierarchies.
    ///
    /// A model of the descriptions has the same schema, if the schema was made from a model.
    ///
    /// - Precondition: The numbers in the schema are those of its entities and columns, as in the schema of a ``Model``.
    public static func all(in schema: StoreSchema) -> [EntityDescription] {
        var inheriting: [EntityDescription] = []
        let heads = schema.entities.enumerated(as: EntityIndex.self).map { number, entity in
            let stored = entity.columnIndices.filter { $0 != entity.typeColumn }
            var properties = stored.map { PropertyDescription(entity.columns[$0], in: schema) }
            let prefix = entity.name + "."
            for link in schema.links where link.source == number {
                let name = link.name.hasPrefix(prefix) ? String(link.name.dropFirst(prefix.count)) : link.name
                properties.append(
                    .relationship(
                        RelationshipDescription(
                            name: name, destination: schema.entities[link.destination].name, cardinality: .toMany,
                            inference: .refused)))
            }
            let indexes = entity.indexes.map { index in
                IndexDescription(properties: index.columns.map { entity.columns[$0].name }, kind: index.kind)
            }
            let whole = EntityDescription(
                name: entity.name, properties: properties, indexes: indexes, isAbstract: entity.isAbstract)
            guard !entity.subentities.isEmpty else { return whole }
            let members = members(of: whole, entity)
            inheriting += members.dropFirst()
            return members[0]
        }
        return heads + inheriting
    }
}

extension PropertyDescription {
    fileprivate init(_ column: ColumnSchema, in schema: StoreSchema) {
        if let destination = column.destination {
            self = .relationship(
                RelationshipDescription(
                    name: column.name, destination: schema.entities[destination].name, cardinality: .toOne, inference: .refused))
        } else {
            self = .attribute(
                AttributeDescription(
                    name: column.name, type: column.type, isOptional: column.isOptional, index: column.index,
                    defaultValue: column.defaultValue, derivation: column.derivation.map { Derivation(.stored($0)) }))
        }
    }
}
