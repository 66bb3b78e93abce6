import StoreModel

/// The spelling of names in a file. Two names that look alike, such as those with "é" as one code point or as two, are equal in Swift. In
/// SQLite they are the names of different tables.
extension StoreSchema {
    /// Whether names could be spelled with other code points.
    var hasOtherSpellings: Bool {
        let names = entities.flatMap { [$0.name] + $0.columns.map(\.name) } + links.map(\.name)
        return names.contains { $0.utf8.contains { $0 >= 0x80 } }
    }

    /// Returns the schema, and those that lead to it, with the names of entities, columns and links as a file spells them.
    func spelled(as file: StoreSchema) -> StoreSchema {
        var spelled = self
        for entity in entityIndices {
            guard let known = file.entities.first(where: { $0.name == entities[entity].name }) else { continue }
            spelled.entities[entity].name = known.name
            for column in entities[entity].columnIndices {
                let name = known.columns.first { $0.name == entities[entity].columns[column].name }?.name
                if let name { spelled.entities[entity].columns[column].name = name }
            }
        }
        for link in linkIndices {
            if let name = file.links.first(where: { $0.name == links[link].name })?.name { spelled.links[link].name = name }
        }
        spelled.migration.way = migration.way.map { $0.spelled(as: file) }
        return spelled
    }
}
