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
        _ = try StoredSchema.layouts(read, model: current.schema, format: MetaTable.formatVersion)
        let evolution = try SchemaEvolution(from: current.schema, to: model)
        let next = current.evolved(to: model, evolution, number: read.count + 1, generation: 9)
        _ = StoredSchemas.change(from: current, to: next, since: read.count, number: read.count + 1)
        _ = StoredTables(next).all
        _ = try StoredSchema.layouts(read + [next], model: model, format: MetaTable.formatVersion)
        return true
    }
}
