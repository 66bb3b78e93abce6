/// The relationships of a model that lead to some entities of a hierarchy only, as a file records them (S165).
///
/// Columns and links do not show them: they lead to the entity at the head of the hierarchy.
package struct NarrowedDestinations: Sendable, Hashable {
    /// The types of the objects to which a relationship may lead. A relationship without types may lead to all objects of a hierarchy.
    package private(set) var types: [InversePairs.End: Set<Int64>] = [:]

    private init(_ types: [InversePairs.End: Set<Int64>]) { self.types = types }

    /// Returns the narrowed destinations of a model. Returns nil if it has none, or was read from a file, which does not tell.
    package init?(of schema: StoreSchema) {
        guard !schema.migration.keepsInverses else { return nil }
        for relationship in schema.relationships {
            guard let allowed = relationship.destinationTypes else { continue }
            types[InversePairs.End(schema.entities[relationship.entity].name, relationship.name)] = allowed
        }
        if types.isEmpty { return nil }
    }

    /// Returns the destinations under the names that a step gives to their relationships; nil if the step removes all of them.
    func renamed(from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution) -> NarrowedDestinations? {
        var kept: [InversePairs.End: Set<Int64>] = [:]
        for (end, allowed) in types {
            guard let name = end.renamed(from: old, to: new, evolution) else { continue }
            kept[name] = allowed
        }
        return kept.isEmpty ? nil : NarrowedDestinations(kept)
    }
}

extension NarrowedDestinations {
    /// Returns whether a relationship may lead to more objects by other destinations. Stores with these destinations could not read them.
    package func isWidened(by other: NarrowedDestinations?) -> Bool {
        types.contains { end, allowed in !(other?.types[end]?.isSubset(of: allowed) ?? false) }
    }
}

/// Files have a sorted list with the two names of each relationship and the types.
extension NarrowedDestinations: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        var found: [InversePairs.End: Set<Int64>] = [:]
        for words in try container.decode([[String]].self) {
            let allowed = words.dropFirst(2).compactMap { Int64($0) }
            guard !allowed.isEmpty, allowed.count == words.count - 2 else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "a destination has two names and the types of its objects")
            }
            found[InversePairs.End(words[0], words[1])] = Set(allowed)
        }
        self.init(found)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        let rows: [[String]] = types.sorted { $0.key < $1.key }.map { end, allowed in
            let numbers = allowed.sorted().map { String($0) }
            return [end.entity, end.name] + numbers
        }
        try container.encode(rows)
    }
}
