import PageCodec
import StoreInterface
import StoreModel

/// Encoding and decoding of a file's schema versions, for fuzzing: the work of opening a file before it reads an object.
@_spi(Fuzzing) public enum SchemaBytes {
    /// Returns the bytes of successive versions of a model.
    public static func encoded(_ models: [StoreSchema]) throws -> [[UInt8]] {
        guard let first = models.first else { return [] }
        var versions = [StoredSchema(first: first)]
        for (number, model) in models.enumerated().dropFirst() {
            let last = versions[number - 1]
            let evolution = try SchemaEvolution(from: last.schema, to: model)
            versions.append(
                last.evolved(to: model, evolution, number: number + 1, generation: Generation(rawValue: UInt64(number))))
        }
        return try versions.map { Array(try $0.json()) }
    }

    /// Reads versions and makes `model` the current schema after them. If the first version cannot be decoded as such, it is
    /// decoded in the form of old files.
    /// - Returns: False if one of them is not a schema.
    public static func read(_ versions: [[UInt8]], then model: StoreSchema, history: ChangeSet) throws -> Bool {
        var read: [StoredSchema] = []
        for (position, bytes) in versions.enumerated() {
            let schema = bytes.withUnsafeBytes { StoredSchema(json: $0) ?? (position == 0 ? StoredSchema(firstJSON: $0) : nil) }
            guard let schema else { return false }
            read.append(schema)
        }
        guard let current = read.last, read.fitTogether else { return false }
        _ = read.translated(history, of: history.generation)
        for layout in try StoredSchema.layouts(read, model: current.schema, format: MetaTable.formatVersion) {
            do { try Self.readPage(of: read[0], layout) } catch is PageError {}
        }
        let evolution = try SchemaEvolution(from: current.schema, to: model)
        let next = current.evolved(to: model, evolution, number: read.count + 1, generation: 9)
        _ = StoredSchemas.change(from: current, to: next, since: read.count, number: read.count + 1)
        _ = StoredTables(next).all
        _ = try StoredSchema.layouts(read + [next], model: model, format: MetaTable.formatVersion)
        return true
    }

    /// Writes a page of an entity as a file's first version does, and reads it as the last version does.
    private static func readPage(of first: StoredSchema, _ layout: PageLayout) throws {
        guard let number = layout.entityNumber, let place = first.entity(number: number) else { return }
        let entity = first.schema.entities[place]
        let older = try PageLayout(entity, schemaNumber: 1, entityNumber: number)
        let builder = LayerBuilder(schema: StoreSchema(entities: [entity]))
        for slot in 0..<PageAddress.slots {
            let values = entity.columns.map { $0.type == .reference ? .reference(1) : Value.zero(of: $0.type) }
            builder.insert(values, entity: 0, key: PageAddress.key(page: 1, slot: slot))
        }
        guard let changes = builder.finish(as: 1).entity(0)?.page(1) else { return }
        let bytes = try PageMerge(old: nil, changes: changes, layout: older, number: 1).withBytes { Array($0) }
        try bytes.withUnsafeBytes { bytes in
            let page = try ObjectPage(bytes, layout: layout, number: 1, check: .full)
            for slot in SlotIterator(page.presence) {
                for column in layout.entity.columnIndices { _ = try page.value(slot, column) }
            }
        }
    }
}
