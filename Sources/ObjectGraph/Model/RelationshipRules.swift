import StoreInterface
import StoreModel

/// The relationships of a model in store numbers: the delete rules, and the columns that are the two ends of a pair.
///
/// This is the only implementation of delete rules (S051). Contexts use it when an object is deleted, parents when a child has
/// deleted an object, and the writer for every save, including batches.
final class RelationshipRules: Sendable {
    /// A to-one column that refers to an entity.
    struct Incoming: Sendable {
        var entity: EntityIndex
        var column: ColumnIndex
        /// The effect on the referring object if its destination is deleted.
        var rule: DeleteRule
        /// The relationship to which the rule belongs, for errors.
        var name: String
    }

    /// A relationship whose rule applies to the deleted object's own references: in a column, or in pairs of a link.
    struct Outgoing: Sendable {
        var kind: Relationship.Kind
        var destination: EntityIndex
        var rule: DeleteRule
        var name: String
    }

    /// One end of a one-to-one relationship.
    struct Pair: Sendable {
        var column: ColumnIndex
        /// The entity and the column of the other end.
        var destination: EntityIndex
        var back: ColumnIndex
    }

    /// The names of a link's relationships by end, for errors, and whether pairs of deleted objects are kept.
    struct LinkEnds: Sendable {
        var source: String?
        var destination: String?
        var mayDangle = false
    }

    /// A to-many relationship without an inverse, as its destination finds the objects that contain it.
    struct Container: Sendable {
        /// The entity of the objects with the relationship, and its number there.
        var entity: EntityIndex
        var relationship: Int
        /// The link of the pairs.
        var link: LinkIndex
        /// Leads from a destination to these objects.
        var relation: Relation { .link(link, .backward, destination: entity) }
    }

    /// The model, for errors.
    private let model: Model
    /// The columns that refer to each entity, by that entity.
    let incoming: [[Incoming]]
    /// The to-many relationships without an inverse whose pairs end with their destination, by that entity.
    let containers: [[Container]]
    /// The relationships with rules that follow an object's own references, by entity.
    let outgoing: [[Outgoing]]
    /// The columns whose references must lead to existing objects, by entity.
    let references: [ColumnSet]
    /// The columns whose references may lead to missing objects (`noAction`), by entity.
    let dangling: [ColumnSet]
    /// The one-to-one relationships, by entity.
    let pairs: [[Pair]]
    let links: [LinkEnds]
    /// The to-one relationships whose inverse is ordered, by entity.
    let ordered: [[OrderedReference]]
    /// The hidden entities with the orders of each link, by link.
    let orders: [[OrderEntity]]
    /// The positions of these entities.
    private let orderEntities: Range<EntityIndex>
    let hasPairs: Bool
    let hasOrdered: Bool
    let canDeny: Bool
    /// Whether the model has any relationships.
    let isUsed: Bool

    init(_ model: Model) {
        self.model = model
        var draft = Draft(model)
        for entity in model.entities {
            for relationship in entity.relationships { draft.add(relationship, of: entity, model) }
        }
        incoming = draft.incoming
        containers = draft.containers
        outgoing = draft.outgoing
        references = draft.references
        dangling = draft.dangling
        pairs = draft.pairs
        links = draft.links
        ordered = model.entities.map(\.orderedReferences)
        orders = model.storeSchema.linkIndices.map { model.orders(of: $0) }
        let numbers = orders.joined().map(\.number)
        orderEntities = (numbers.min() ?? 0)..<(numbers.max()?.next ?? 0)
        hasPairs = pairs.contains { !$0.isEmpty }
        hasOrdered = ordered.contains { !$0.isEmpty }
        isUsed = model.entities.contains { !$0.relationships.isEmpty }
        canDeny = model.entities.contains { $0.relationships.contains { $0.deleteRule == .deny } }
    }

    /// Returns the way in which people read the values of a column.
    func form(of column: ColumnIndex, in entity: EntityIndex) -> ValueForm {
        model.entities[entity].form(of: column, in: model)
    }

    var hasOrders: Bool { !orderEntities.isEmpty }

    /// Returns whether an entity is hidden and has positions in a many-to-many relationship.
    func isOrder(_ entity: EntityIndex) -> Bool { orderEntities.contains(entity) }

    /// The rules while they are being collected.
    private struct Draft {
        var incoming: [[Incoming]]
        var containers: [[Container]]
        var outgoing: [[Outgoing]]
        var references: [ColumnSet]
        var dangling: [ColumnSet]
        var pairs: [[Pair]]
        var links: [LinkEnds]

        init(_ model: Model) {
            incoming = model.entities.map { _ in [] }
            containers = model.entities.map { _ in [] }
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
                addToOne(relationship, column: column, of: entity, in: model)
            case .toMany(.link(let link, let direction, _)):
                if direction == .forward { links[link].source = name } else { links[link].destination = name }
                if rule == .noAction { links[link].mayDangle = true }
                if relationship.inverse == nil, rule != .noAction {
                    containers[relationship.destination].append(
                        Container(entity: entity.number, relationship: relationship.number, link: link))
                }
            case .toMany(.referrers):
                return
            }
            guard rule == .cascade || rule == .deny else { return }
            outgoing[entity.number].append(
                Outgoing(kind: relationship.kind, destination: relationship.destination, rule: rule, name: name))
        }

        /// A position goes with either end of its pair. The writer drops positions without a pair, so their references need no check.
        private mutating func addOrder(_ destination: EntityIndex, column: ColumnIndex, entity: Entity) {
            incoming[destination].append(Incoming(entity: entity.number, column: column, rule: .cascade, name: entity.name))
        }

        private mutating func addToOne(_ relationship: Relationship, column: ColumnIndex, of entity: Entity, in model: Model) {
            if OrderEntity.contains(entity) { return addOrder(relationship.destination, column: column, entity: entity) }
            let far = model.entities[relationship.destination]
            let back = relationship.inverse.map { far.relationships[$0] }
            // The rule belongs to the end that is deleted. Without an inverse, references are nullified.
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

/// A consequence of the delete rules for the deletion of one object.
enum DeletionConsequence {
    /// Deletes an object. `column` is its reference to the deleted object; nil if the deleted object refers to it.
    case delete(entity: EntityIndex, key: ObjectKey, column: ColumnIndex?)
    /// Sets a reference to the deleted object to nil.
    case clear(entity: EntityIndex, key: ObjectKey, column: ColumnIndex)
    /// Forbids the deletion while these objects exist.
    case deny(relationship: String, entity: EntityIndex, blocking: [ObjectKey])

    var isDenial: Bool { if case .deny = self { true } else { false } }
}

extension RelationshipRules {
    /// Whether a deny rule may protect objects of an entity from deletion.
    func canDeny(_ entity: EntityIndex) -> Bool {
        incoming[entity].contains { $0.rule == .deny } || outgoing[entity].contains { $0.rule == .deny }
    }

    /// Returns the rule, cascade or deny, by which the deletion of an object follows its pairs of a link; nil if there is none.
    func rule(of link: LinkIndex, _ direction: LinkDirection, from entity: EntityIndex) -> DeleteRule? {
        outgoing[entity].first { outgoing in
            if case .toMany(.link(link, direction, _)) = outgoing.kind { true } else { false }
        }?.rule
    }

    /// Returns whether deleting an object of the entity can change or protect other objects.
    func hasConsequences(_ entity: EntityIndex) -> Bool {
        !outgoing[entity].isEmpty || incoming[entity].contains { $0.rule != .noAction }
    }

    /// Returns the consequences of one object's deletion in a state, whether or not that state still contains the object.
    ///
    /// Objects that do not exist in that state are left out. O(references to the object).
    ///
    /// - Parameter own: Returns the last value of a to-one column of the deleted object.
    func consequences(
        of entity: EntityIndex, _ key: ObjectKey, in reader: some ObjectReader, own: (ColumnIndex) throws -> ObjectKey?
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
