/// The relationships of a model that are inverses of each other, as a file records them (S165).
///
/// Columns and links do not show them: of a to-many relationship whose inverse leads to one object, a file has the column of that inverse
/// only, and two to-one relationships have the same columns whether they are a pair or not.
package struct InversePairs: Sendable, Hashable {
    /// A relationship by its names in the file. The entity is the one at the head of the hierarchy.
    package struct End: Sendable, Hashable, Comparable {
        package var entity: String
        package var name: String

        package init(_ entity: String, _ name: String) { (self.entity, self.name) = (entity, name) }

        package static func < (one: End, other: End) -> Bool { (one.entity, one.name) < (other.entity, other.name) }
    }

    /// Two relationships, or one that is its own inverse.
    package struct Pair: Sendable, Hashable, Comparable {
        package let first: End
        package let second: End

        package init(_ one: End, _ other: End) { (first, second) = one < other ? (one, other) : (other, one) }

        package static func < (one: Pair, other: Pair) -> Bool { (one.first, one.second) < (other.first, other.second) }
    }

    package private(set) var pairs: Set<Pair>

    package init(pairs: Set<Pair> = []) { self.pairs = pairs }

    /// Returns the pairs of a model. Returns nil for a schema that does not tell, because it was read from a file or has no relationships.
    package init?(of schema: StoreSchema) {
        guard !schema.relationships.isEmpty, !schema.migration.keepsInverses else { return nil }
        pairs = []
        func end(_ relationship: RelationshipSchema) -> End { End(schema.entities[relationship.entity].name, relationship.name) }
        for relationship in schema.relationships {
            guard let inverse = relationship.inverse else { continue }
            pairs.insert(Pair(end(relationship), end(schema.relationships[inverse])))
        }
    }

    package func contains(_ one: End, _ other: End) -> Bool { pairs.contains(Pair(one, other)) }

    /// Returns the pairs under the names that a step gives to their relationships, without those whose column or link it removes.
    package func renamed(from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution) -> InversePairs {
        InversePairs(
            pairs: Set(
                pairs.compactMap { pair in
                    guard let first = pair.first.renamed(from: old, to: new, evolution),
                        let second = pair.second.renamed(from: old, to: new, evolution)
                    else { return nil }
                    return Pair(first, second)
                }))
    }
}

extension InversePairs.End {
    /// Returns the relationship under the name that a step gives to it; nil if the step removes its entity, its column or its link.
    func renamed(from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution) -> InversePairs.End? {
        guard let place = old.entityIndices.first(where: { old.entities[$0].name == entity }),
            let successor = evolution.successor(of: place)
        else { return nil }
        let scope = new.entities[successor].name
        switch old.storage(of: self) {
        case .column(let column):
            return evolution.successor(of: column, in: place).map {
                InversePairs.End(scope, new.entities[successor].columns[$0].name)
            }
        case .link(let link):
            guard let name = evolution.successor(of: link).map({ new.links[$0].name }) else { return nil }
            if name.hasPrefix(scope + "."), !evolution.isReversed(link) {
                return InversePairs.End(scope, String(name.dropFirst(scope.count + 1)))
            }
        case nil: break
        }
        // The file does not have its name.
        let own = new.relationships.filter { $0.entity == successor }
        let isThere = own.contains { $0.name == name && $0.renamedFrom == nil }
        return InversePairs.End(scope, (isThere ? nil : own.first { $0.renamedFrom == name }?.name) ?? name)
    }
}

/// Files have a sorted list with four names per pair.
extension InversePairs: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        pairs = []
        for names in try container.decode([[String]].self) {
            guard names.count == 4 else {
                throw DecodingError.dataCorruptedError(in: container, debugDescription: "a pair of inverses has four names")
            }
            pairs.insert(Pair(End(names[0], names[1]), End(names[2], names[3])))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(pairs.sorted().map { [$0.first.entity, $0.first.name, $0.second.entity, $0.second.name] })
    }
}

extension StoreSchema {
    /// The column or the link of a relationship in a file.
    enum RelationshipStorage: Hashable {
        case column(ColumnIndex)
        case link(LinkIndex)
    }

    /// Returns what a file has under the name of a relationship; nil if it is stored at the other end.
    func storage(of end: InversePairs.End) -> RelationshipStorage? {
        let entity = entities.first { $0.name == end.entity }
        if let column = entity?.columnIndices.first(where: { entity?.columns[$0].name == end.name }) { return .column(column) }
        let name = "\(end.entity).\(end.name)"
        return linkIndices.first { links[$0].name == name }.map { .link($0) }
    }
}

extension SchemaEvolution {
    /// Returns the position of an entity in the new schema; nil if it is removed.
    func successor(of entity: EntityIndex) -> EntityIndex? {
        entities.indices(as: EntityIndex.self).first { entities[$0].source == entity }
    }

    /// Returns the position of a column in the new schema; nil if it is removed.
    func successor(of column: ColumnIndex, in entity: EntityIndex) -> ColumnIndex? {
        guard let columns = successor(of: entity).map({ entities[$0].columns }) else { return nil }
        return columns.indices(as: ColumnIndex.self).first { columns[$0].source == column }
    }

    /// Returns the position of a link in the new schema; nil if it is removed.
    func successor(of link: LinkIndex) -> LinkIndex? {
        links.indices(as: LinkIndex.self).first { links[$0]?.source == link }
    }

    /// Returns whether a link has its ends reversed in the new schema.
    func isReversed(_ link: LinkIndex) -> Bool { links.contains { $0?.source == link && $0?.isReversed == true } }
}
