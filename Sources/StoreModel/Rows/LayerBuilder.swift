/// Makes the layer of one save from plain values, for programs that call a store without contexts: its tests, fuzzers and
/// benchmarks.
///
/// ```swift
/// try store.write(.durable) { transaction in
///     let changes = LayerBuilder(schema: store.schema)
///     changes.insert([.string("Kim"), .int(41)], entity: 0, key: 64)
///     changes.update([1: .int(42)], entity: 0, key: 65)
///     let layer = changes.finish(as: transaction.nextGeneration)
///     try transaction.apply(layer, changes: layer.changeSet())
/// }
/// ```
///
/// Values are not checked against the schema, so that a test can pass what a store must refuse. Entities, columns and links that the
/// schema does not have are programmer errors. Use a builder on one thread.
public struct LayerBuilder: ~Copyable {
    private let layer: Layer
    private let schema: StoreSchema

    /// Creates a builder of an empty layer. O(entities + links).
    public init(schema: StoreSchema) {
        self.schema = schema
        layer = Layer(schema: schema)
    }

    /// Adds a new object. Replaces an earlier change of the object.
    ///
    /// - Parameters:
    ///   - values: The values of all columns, in their order. Another number of values is a programmer error.
    ///   - entity: The position of the entity in the schema.
    ///   - key: The key of the object.
    ///   - generation: The generation of this object, for layers of several saves; nil stands for that of ``finish(as:)``.
    public func insert(_ values: [Value], entity: EntityIndex, key: ObjectKey, generation: Generation? = nil) {
        precondition(values.count == schema.entities[entity].columns.count, "a new object has a value for each column")
        let row = makeRow(.insert, entity: entity, generation: generation)
        for (column, value) in values.enumerated(as: ColumnIndex.self) { row[column] = value }
        layer.put(row, entity: entity, key: key)
    }

    /// Adds an update of some columns. Replaces an earlier change of the object. The parameters are those of
    /// ``insert(_:entity:key:generation:)``, with values by column.
    public func update(
        _ values: [ColumnIndex: Value], entity: EntityIndex, key: ObjectKey, generation: Generation? = nil
    ) {
        let row = makeRow(.update, entity: entity, generation: generation)
        for (column, value) in values { row[column] = value }
        layer.put(row, entity: entity, key: key)
    }

    /// Adds a deletion. Replaces an earlier change of the object.
    public func delete(entity: EntityIndex, key: ObjectKey, generation: Generation? = nil) {
        layer.put(makeRow(.delete, entity: entity, generation: generation), entity: entity, key: key)
    }

    /// Adds a pair to a link, or its removal.
    public func setLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey, linked: Bool) {
        layer.setLink(link, from: source, to: destination, linked: linked)
    }

    private func makeRow(_ kind: RowKind, entity: EntityIndex, generation: Generation?) -> Row {
        let row = Row.make(kind: kind, layer: layer.id, columnCount: schema.entities[entity].columns.count)
        if let generation { row.version = .committed(generation) }
        return row
    }

    /// Returns the layer, which does not change any more.
    ///
    /// - Parameter generation: The generation of the layer and all its objects: `StoreTransaction.nextGeneration` for a layer to write. Nil
    ///   keeps the generations of the objects.
    public consuming func finish(as generation: Generation?) -> Layer {
        if let generation { layer.stamp(generation) }
        layer.seal()
        return layer
    }
}
