/// Whether a relationship without a named inverse gets one (S173).
///
/// ```swift
/// let album = RelationshipDescription(name: "album", destination: "Album", cardinality: .toOne, inference: .wanted)
/// ```
public enum InverseInference: Sendable, Hashable {
    /// The relationship gets an inverse if exactly one relationship of the destination can be it. Relationships of macro models
    /// without `@Relationship` want one.
    case wanted
    /// The relationship becomes the inverse of one that wants it. Two relationships that only accept stay apart, so that files of
    /// earlier versions keep their meaning.
    case accepted
    /// The relationship has no inverse: `@Relationship(inverse: nil)`.
    case refused
}

extension [EntityDescription] {
    /// Returns the descriptions with the inverses that can be inferred: of a pair of relationships that lead to each other's entity,
    /// have no inverse, and are each other's only candidate. At least one of the two has to want an inverse.
    ///
    /// Two relationships within one entity are a pair if one leads to one object and the other to many.
    func withInferredInverses() -> [EntityDescription] {
        guard let open = openRelationships() else { return self }
        var inferred = self
        for (pair, candidates) in open {
            var ends = candidates
            if pair.source == pair.destination {
                guard ends.count == 2, ends[0].relationship.cardinality != ends[1].relationship.cardinality else { continue }
            } else {
                let back = open[Pair(source: pair.destination, destination: pair.source)] ?? []
                // Each pair of entities is looked at from both sides.
                guard pair.source < pair.destination, candidates.count == 1, back.count == 1 else { continue }
                ends += back
            }
            guard ends.contains(where: { $0.relationship.inference == .wanted }) else { continue }
            inferred[ends[0].entity].setInverse(ends[1].relationship.name, of: ends[0].relationship.name)
        }
        return inferred
    }

    /// Returns a message per pair of entities between which an inverse is wanted, but could be one of several relationships.
    func ambiguousInverses() -> [String] {
        guard let open = openRelationships() else { return [] }
        var messages: [String] = []
        for (pair, candidates) in open where pair.source <= pair.destination {
            var ends = candidates
            if pair.source == pair.destination {
                guard ends.count > 2, Set(ends.map(\.relationship.cardinality)).count == 2 else { continue }
            } else {
                let back = open[Pair(source: pair.destination, destination: pair.source)] ?? []
                guard !back.isEmpty, candidates.count + back.count > 2 else { continue }
                ends += back
            }
            guard ends.contains(where: { $0.relationship.inference == .wanted }) else { continue }
            let names = ends.map { "\(self[$0.entity].name).\($0.relationship.name)" }.sorted()
            messages.append(
                "cannot infer the inverse among \(names.joined(separator: ", ")): there is more than one candidate, so that none of them has "
                    + "one. Name it with @Relationship(inverse:), or write @Relationship(inverse: nil) on those without an inverse."
            )
        }
        return messages.sorted()
    }

    /// Returns the relationships without an inverse, by the entities that they connect. Returns nil if none of them wants one.
    private func openRelationships() -> [Pair: [Candidate]]? {
        var open: [Pair: [Candidate]] = [:]
        var isWanted = false
        for (position, entity) in enumerated() {
            for relationship in entity.relationships where !isPaired(relationship, of: entity) {
                isWanted = isWanted || relationship.inference == .wanted
                open[Pair(source: entity.name, destination: relationship.destination), default: []].append(
                    Candidate(entity: position, relationship: relationship))
            }
        }
        return isWanted ? open : nil
    }

    private struct Pair: Hashable {
        var source: String
        var destination: String
    }

    private struct Candidate {
        /// The position of the entity.
        var entity: Int
        var relationship: RelationshipDescription
    }

    /// Whether a relationship has an inverse, is the inverse of another, or refuses one.
    private func isPaired(_ relationship: RelationshipDescription, of entity: EntityDescription) -> Bool {
        if relationship.inverse != nil || relationship.inference == .refused { return true }
        let destination = first { $0.name == relationship.destination }
        return destination?.relationships.contains { $0.destination == entity.name && $0.inverse == relationship.name } ?? false
    }
}

extension EntityDescription {
    fileprivate mutating func setInverse(_ inverse: String, of name: String) {
        for (position, property) in properties.enumerated() {
            guard case .relationship(var relationship) = property, relationship.name == name else { continue }
            relationship.inverse = inverse
            properties[position] = .relationship(relationship)
        }
    }
}
