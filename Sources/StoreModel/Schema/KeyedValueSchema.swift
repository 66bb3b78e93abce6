/// The hidden entity that stores the values of keyed collections (S190).
///
/// A file has it once a container has opened the file for writing. From then on the entity stays, whatever schema the file is
/// opened with. Models cannot have an entity of this name.
extension EntitySchema {
    /// The entity: a unique key, which begins with the name of the collection, and the bytes of the value.
    package static let keyedValues = EntitySchema(
        name: "strata_keyed_values",
        columns: [
            ColumnSchema(name: "key", type: .data, index: .unique), ColumnSchema(name: "value", type: .data),
        ])
}

extension StoreSchema {
    /// The entity of keyed values; nil if the schema does not have it.
    package var keyedValues: EntityIndex? { entityIndices.last { entities[$0].name == EntitySchema.keyedValues.name } }

    /// The schema with the entity of keyed values. The numbers of the other entities stay.
    package var withKeyedValues: StoreSchema {
        guard keyedValues == nil else { return self }
        var schema = self
        schema.entities.append(.keyedValues)
        return schema
    }

    /// The schema without the entity of keyed values, to be compared with a model.
    package var withoutKeyedValues: StoreSchema {
        guard let number = keyedValues, number == entityIndices.last else { return self }
        var schema = self
        schema.entities.removeLast()
        return schema
    }

    /// Returns the schema to open a file with, which keeps the file's keyed values. O(schema).
    ///
    /// - Parameters:
    ///   - file: The schema of the file.
    ///   - mayAdd: Whether the file can get the entity of keyed values if the file does not have it.
    package func keepingKeyedValues(of file: StoreSchema, mayAdd: Bool) -> StoreSchema {
        guard file.keyedValues == nil else { return withKeyedValues }
        return mayAdd ? self : withoutKeyedValues
    }
}
