import StoreInterface
import StoreModel

/// Counts the data in a file that a changed model drops, before the file is migrated (S165).
struct SQLiteLossCount {
    let connection: SQLiteConnection
    /// The layout of the file's schema.
    let layout: SQLiteLayout

    func check(_ losses: [SchemaLoss], path: String) throws {
        try losses.check(path: path) { subject in Int(try connection.integer(query(subject)) ?? 0) }
    }

    private func query(_ subject: SchemaLoss.Subject) -> String {
        switch subject {
        case .objects(let entity):
            return "SELECT COUNT(*) FROM \(layout.tables[entity])"
        case .objectsOfType(let entity, let column, let type):
            return "SELECT COUNT(*) FROM \(layout.tables[entity]) WHERE \(layout.columns[entity][column]) = \(type)"
        case .values(let entity, let column):
            return "SELECT COUNT(\(layout.columns[entity][column])) FROM \(layout.tables[entity])"
        case .valuesOfTypes(let entity, let column, let typeColumn, let types):
            return "SELECT COUNT(\(layout.columns[entity][column])) FROM \(layout.tables[entity]) "
                + "WHERE \(condition(entity, typeColumn: typeColumn, types: types))"
        case .unanswered(let entity, let column, let backEntity, let backColumn):
            let name = layout.columns[entity][column]
            return """
                SELECT COUNT(*) FROM \(layout.tables[entity]) AS there WHERE \(name) IS NOT NULL AND NOT EXISTS \
                (SELECT 1 FROM \(layout.tables[backEntity]) AS back WHERE back.id = there.\(name) \
                AND back.\(layout.columns[backEntity][backColumn]) = there.id)
                """
        case .pairs(let link):
            return "SELECT COUNT(*) FROM \(layout.links[link])"
        case .pairsOfTypes(let link, let entity, let typeColumn, let types):
            return "SELECT COUNT(*) FROM \(layout.links[link]) WHERE source IN "
                + "(\(objects(entity, typeColumn: typeColumn, types: types)))"
        case .referencesToTypes(let entity, let column, let farEntity, let typeColumn, let types):
            return "SELECT COUNT(*) FROM \(layout.tables[entity]) WHERE \(layout.columns[entity][column]) IN "
                + "(\(objects(farEntity, typeColumn: typeColumn, types: types)))"
        case .pairsToTypes(let link, let entity, let typeColumn, let types):
            return "SELECT COUNT(*) FROM \(layout.links[link]) WHERE destination IN "
                + "(\(objects(entity, typeColumn: typeColumn, types: types)))"
        }
    }

    /// Returns the query of the ids of objects of some types. Without a column of types, all objects have the type 0.
    private func objects(_ entity: EntityIndex, typeColumn: ColumnIndex?, types: Set<Int64>) -> String {
        let all = "SELECT id FROM \(layout.tables[entity])"
        guard let typeColumn else { return all }
        return all + " WHERE " + condition(entity, typeColumn: typeColumn, types: types)
    }

    private func condition(_ entity: EntityIndex, typeColumn: ColumnIndex, types: Set<Int64>) -> String {
        "COALESCE(\(layout.columns[entity][typeColumn]), 0) IN (\(types.sorted().map(String.init).joined(separator: ", ")))"
    }
}
