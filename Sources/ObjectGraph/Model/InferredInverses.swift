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
        var inferred = self
        for ends in candidateInverses() where ends.count == 2 && Self.wantsInverse(ends) {
            inferred[ends[0].entity].setInverse(ends[1].relationship.name, of: ends[0].relationship.name)
        }
        return inferred
    }

    /// Removes the inverse of each relationship that yields it to an earlier relationship of its entity. Returns a message per such
    /// relationship.
    mutating func yieldSharedInverses() -> [String] {
        var messages: [String] = []
        for position in indices {
            // The first relationship that names an inverse, by the name of the inverse.
            var owners: [String: String] = [:]
            let entity = self[position]
            for (number, property) in entity.properties.enumerated() {
                guard case .relationship(var relationship) = property, let inverse = relationship.inverse else { continue }
                let far = "\(relationship.destination).\(inverse)"
                guard let owner = owners[far] else {
                    owners[far] = relationship.name
                    continue
                }
                guard relationship.yieldsInverse else { continue }
                relationship.inverse = nil
                relationship.inference = .refused
                self[position].properties[number] = .relationship(relationship)
                let name = "\(entity.name).\(relationship.name)"
                messages.append(
                    "cannot make \(far) the inverse of \(name): it is that of \(entity.name).\(owner), so setting \(name) does "
                        + "not change \(far). Name another inverse, or write @Relationship(inverse: nil) on \(name).")
            }
        }
        return messages
    }

    /// Returns a message per pair of entities whose relationships have no inverse, although they look like two ends of one relationship:
    /// an inverse is wanted, but could be one of several relationships, or both ends have `@Relationship` and neither names the other.
    ///
    /// - Parameter classes: The names of the entities that have a class. Those that are described at run time are paired by name only.
    func inverseWarnings(classes: Set<String>) -> [String] {
        var messages: [String] = []
        for ends in candidateInverses() {
            let names = ends.map { "\(self[$0.entity].name).\($0.relationship.name)" }.sorted()
            if Self.wantsInverse(ends) {
                guard ends.count > 2 else { continue }
                messages.append(
                    "cannot infer the inverse among \(names.joined(separator: ", ")): there is more than one candidate, so that "
                        + "none of them has one. Name it with @Relationship(inverse:), or write @Relationship(inverse: nil) on "
                        + "those without an inverse.")
            } else if ends.count == 2, ends.allSatisfy({ classes.contains(self[$0.entity].name) }) {
                messages.append(
                    "cannot infer that \(names[0]) and \(names[1]) are inverses: both have @Relationship without inverse:, so "
                        + "setting one does not change the other. Name the inverse with @Relationship(inverse:) at one end, or "
                        + "write @Relationship(inverse: nil) at one end to keep them apart.")
            }
        }
        return messages.sorted()
    }

    /// Returns the open relationships that may be inverses of each other, per pair of entities: two if each is the other's only candidate,
    /// and otherwise more.
    private func candidateInverses() -> [[Candidate]] {
        let open = openRelationships()
        var found: [[Candidate]] = []
        // Each pair of entities is looked at from one side.
        for (pair, candidates) in open where pair.source <= pair.destination {
            if pair.source == pair.destination {
                guard Set(candidates.map(\.relationship.cardinality)).count == 2 else { continue }
                found.append(candidates)
            } else if let back = open[Pair(source: pair.destination, destination: pair.source)] {
                found.append(candidates + back)
            }
        }
        return found
    }

    private static func wantsInverse(_ ends: [Candidate]) -> Bool {
        ends.contains { $0.relationship.inference == .wanted }
    }

    /// Returns the relationships without an inverse, by the entities that they connect.
    private func openRelationships() -> [Pair: [Candidate]] {
        let entities = Dictionary(map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var open: [Pair: [Candidate]] = [:]
        for (position, entity) in enumerated() {
            for relationship in entity.relationships
            where !isPaired(relationship, of: entity, to: entities[relationship.destination]) {
                open[Pair(source: entity.name, destination: relationship.destination), default: []].append(
                    Candidate(entity: position, relationship: relationship))
            }
        }
        return open
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
    private func isPaired(
        _ relationship: RelationshipDescription, of entity: EntityDescription, to destination: EntityDescription?
    ) -> Bool {
        if relationship.inverse != nil || relationship.inference == .refused { return true }
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
