import StoreModel

extension StoreSnapshot {
    /// Returns the number of references or pairs that lead to objects of some types. Returns nil for a subject of another kind.
    /// O(objects that may refer).
    package func countByDestination(_ subject: SchemaLoss.Subject) throws -> Int? {
        switch subject {
        case .referencesToTypes(let entity, let column, let farEntity, let typeColumn, let types):
            return try keys(StoreQuery(entity: entity, predicate: .compare(column, .notEqual, to: .null))).count { key in
                guard let far = try value(entity, key: key, column: column)?.referenceKey else { return false }
                return try isObject(far, of: farEntity, typeColumn: typeColumn, types: types)
            }
        case .pairsToTypes(let link, let entity, let typeColumn, let types):
            let relation = Relation.link(link, .forward, destination: entity)
            var count = 0
            for key in try keys(StoreQuery(entity: schema.links[link].source)) {
                for far in try related(relation, to: key) {
                    if try isObject(far, of: entity, typeColumn: typeColumn, types: types) { count += 1 }
                }
            }
            return count
        default: return nil
        }
    }

    /// Returns whether an object exists and has one of the types. Objects that are older than the hierarchy have the type 0.
    private func isObject(
        _ key: ObjectKey, of entity: EntityIndex, typeColumn: ColumnIndex?, types: Set<Int64>
    ) throws -> Bool {
        guard try exists(entity, key) else { return false }
        if let typeColumn, case .int(let type)? = try value(entity, key: key, column: typeColumn) {
            return types.contains(type)
        }
        return types.contains(0)
    }
}
