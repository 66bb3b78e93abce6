import StoreInterface

/// The relationships of a model in the numbers of the store: which objects a deletion takes along, and which columns are the two ends
/// of one pair.
///
/// The one set of delete rules (S051): contexts ask it when an object is deleted, parents when a child has deleted one, and the
/// writer for every save, batches included.
final class RelationshipRules: Sendable {
    /// A to-one column that leads to an entity.
    struct Incoming: Sendable {
        var entity: Int
        var column: Int
        /// What becomes of the referring object when the one that it refers to is deleted.
        var rule: DeleteRule
        /// The relationship that has the rule, for errors.
        var name: String
    }

    /// A relationship with a rule that follows what the deleted object itself holds: a column of its own, or pairs of a link.
    struct Outgoing: Sendable {
        var kind: Relationship.Kind
        var destination: Int
        var rule: DeleteRule
        var name: String
    }

    /// One end of a one-to-one relationship.
    struct Pair: Sendable {
        var column: Int
        /// The entity and the column of the other end.
        var destination: Int
        var back: Int
    }

    /// A link's relationships by the end that has them, for errors, and whether deletions leave its pairs to the store.
    struct LinkEnds: Sendable {
        var source: String?
        var destination: String?
        var mayDangle = false
    }

    /// By the entity that is referred to.
    let incoming: [[Incoming]]
    /// By entity.
    let outgoing: [[Outgoing]]
    /// By entity: the columns whose references must lead to objects.
    let references: [ColumnSet]
    /// By entity: the columns whose references may lead to nothing, because deletions leave them (`noAction`).
    let dangling: [ColumnSet]
    /// By entity.
    let pairs: [[Pair]]
    let links: [LinkEnds]
    let hasPairs: Bool
    let canDeny: Bool
    /// Whether the model has relationships at all.
    let isUsed: Bool

    init(_ model: Model) {
        var draft = Draft(model)
        for entity in model.entities {
            for relationship in entity.relationships { draft.add(relationship, of: entity, model) }
        }
        incoming = draft.incoming
        outgoing = draft.outgoing
        references = draft.references
        dangling = draft.dangling
        pairs = draft.pairs
        links = draft.links
        hasPairs = pairs.contains { !$0.isEmpty }
        isUsed = model.entities.contains { !$0.relationships.isEmpty }
        canDeny = model.entities.contains { $0.relationships.contains { $0.deleteRule == .deny } }
    }

    /// The rules while they are gathered.
    private struct Draft {
        var incoming: [[Incoming]]
        var outgoing: [[Outgoing]]
        var references: [ColumnSet]
        var dangling: [ColumnSet]
        var pairs: [[Pair]]
        var links: [LinkEnds]

        init(_ model: Model) {
            incoming = model.entities.map { _ in [] }
            outgoing = model.entities.map { _ in [] }
            references = model.entities.map { _ in ColumnSet() }
            dangling = references
            pairs = model.entities.map { _ in [] }
            links = model.storeSchema.links.map { _ in LinkEnds() }
        }

        mutating func add(_ relationship: Relationship, of entity: Entity, _ model: Model) {
            let name = "\(entity.name).\(relationship.name)"
            let rule = relationship.deleteRule
            switch relationship.kind {
            case .toOne(let column):
                addToOne(relationship, column, of: entity, model)
            case .toMany(.link(let link, let direction, _)):
                if direction == .forward { links[link].source = name } else { links[link].destination = name }
                if rule == .noAction { links[link].mayDangle = true }
            case .toMany(.referrers):
                return
            }
            guard rule == .cascade || rule == .deny else { return }
            outgoing[entity.number].append(
                Outgoing(kind: relationship.kind, destination: relationship.destination, rule: rule, name: name))
        }

        private mutating func addToOne(_ relationship: Relationship, _ column: Int, of entity: Entity, _ model: Model) {
            let far = model.entities[relationship.destination]
            let back = relationship.inverse.map { far.relationships[$0] }
            // The rule stands at the end that is deleted. Without an inverse, references are forgotten.
            let own: DeleteRule = relationship.deleteRule == .noAction ? .noAction : .nullify
            let rule = back?.deleteRule ?? own
            let name = back.map { "\(far.name).\($0.name)" } ?? "\(entity.name).\(relationship.name)"
            incoming[far.number].append(Incoming(entity: entity.number, column: column, rule: rule, name: name))
            if relationship.leavesReferences(model.entities) {
                dangling[entity.number].insert(column)
            } else {
                references[entity.number].insert(column)
            }
            if case .toOne(let other)? = back?.kind {
                pairs[entity.number].append(Pair(column: column, destination: far.number, back: other))
            }
        }
    }
}

/// What the delete rules ask for when one object is deleted.
enum DeletionConsequence {
    /// An object goes too. `column` is its reference to the deleted object; nil when the deleted object refers to it.
    case delete(entity: Int, key: ObjectKey, column: Int?)
    /// A reference to the deleted object becomes nil.
    case clear(entity: Int, key: ObjectKey, column: Int)
    /// The object may not be deleted while these exist.
    case deny(relationship: String, entity: Int, blocking: [ObjectKey])
}

extension RelationshipRules {
    /// Whether objects of an entity may be protected from deletion.
    func canDeny(_ entity: Int) -> Bool {
        incoming[entity].contains { $0.rule == .deny } || outgoing[entity].contains { $0.rule == .deny }
    }

    /// Returns whether deleting an object of the entity can change or protect other objects.
    func hasConsequences(_ entity: Int) -> Bool {
        !outgoing[entity].isEmpty || incoming[entity].contains { $0.rule != .noAction }
    }

    /// Returns what the deletion of one object asks for in a state, which may hold the object still or not. Objects that are gone in that
    /// state are not named. O(references to the object).
    ///
    /// - Parameter own: the last value of a to-one column of the deleted object.
    func consequences(
        of entity: Int, _ key: ObjectKey, in reader: some ObjectReader, own: (Int) throws -> ObjectKey?
    ) throws -> [DeletionConsequence] {
        var consequences: [DeletionConsequence] = []
        for referrer in incoming[entity] where referrer.rule != .noAction {
            let found = try reader.related(.referrers(entity: referrer.entity, column: referrer.column), to: key)
            guard !found.isEmpty else { continue }
            switch referrer.rule {
            case .deny:
                consequences.append(.deny(relationship: referrer.name, entity: referrer.entity, blocking: found))
            case .cascade:
                for other in found {
                    consequences.append(.delete(entity: referrer.entity, key: other, column: referrer.column))
                }
            case .nullify, .noAction:
                for other in found {
                    consequences.append(.clear(entity: referrer.entity, key: other, column: referrer.column))
                }
            }
        }
        for relationship in outgoing[entity] {
            let found: [ObjectKey]
            switch relationship.kind {
            case .toOne(let column):
                found = try own(column).map { try reader.exists(relationship.destination, $0) ? [$0] : [] } ?? []
            case .toMany(let relation):
                found = try reader.related(relation, to: key)
            }
            guard !found.isEmpty else { continue }
            if relationship.rule == .deny {
                consequences.append(
                    .deny(relationship: relationship.name, entity: relationship.destination, blocking: found))
            } else {
                for other in found {
                    consequences.append(.delete(entity: relationship.destination, key: other, column: nil))
                }
            }
        }
        return consequences
    }
}
