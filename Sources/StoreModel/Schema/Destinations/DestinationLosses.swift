/// The references and pairs that lead to objects to which their relationship does not lead after one step, because its destination is an
/// inheriting entity now. In the positions of the older schema.
///
/// Reading such an object as one of the inheriting entity is impossible. If a relationship moves to an inheriting entity, the destination
/// of its inverse becomes narrower.
struct DestinationLosses {
    private let recorded: [InversePairs.End: Set<Int64>]
    private let old: StoreSchema
    private let new: StoreSchema
    private let evolution: SchemaEvolution
    private(set) var all: [SchemaLoss] = []

    /// - Parameter recorded: The destinations that the file has recorded, under the names of the newer schema. Without a record, a
    ///   relationship may lead to all objects of the hierarchy.
    init(recorded: NarrowedDestinations?, from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution) {
        self.recorded = recorded?.types ?? [:]
        self.old = old
        self.new = new
        self.evolution = evolution
        // A model that was read from a file knows no narrower destinations.
        guard !new.migration.keepsInverses else { return }
        for relationship in new.relationships {
            guard let allowed = relationship.destinationTypes else { continue }
            if let column = relationship.column {
                addReferences(of: relationship, column: column, allowed)
            } else {
                addPairs(of: relationship, allowed)
            }
        }
    }

    private mutating func addReferences(of relationship: RelationshipSchema, column: ColumnIndex, _ allowed: Set<Int64>) {
        guard let entity = evolution.entities[relationship.entity].source,
            let place = evolution.entities[relationship.entity].columns[column].source,
            let far = old.entities[entity].columns[place].destination
        else { return }
        let outside = typesOutside(allowed, of: relationship, far: far)
        guard !outside.isEmpty else { return }
        add(
            .referencesToTypes(
                entity: entity, column: place, farEntity: far, typeColumn: old.entities[far].typeColumn, types: outside),
            "\(old.entities[entity].name).\(old.entities[entity].columns[place].name)")
    }

    /// Adds the pairs of a many-to-many relationship. Two inverse relationships share one link, which has the name of one of them. The other
    /// one reads the link from its destination.
    private mutating func addPairs(of relationship: RelationshipSchema, _ allowed: Set<Int64>) {
        let own = link(of: relationship)
        guard let number = own ?? relationship.inverse.flatMap({ link(of: new.relationships[$0]) }),
            let change = evolution.links[number]
        else { return }
        let known = old.links[change.source]
        let leadsToDestination = (own != nil) != change.isReversed
        let far = leadsToDestination ? known.destination : known.source
        let outside = typesOutside(allowed, of: relationship, far: far)
        guard !outside.isEmpty else { return }
        let typeColumn = old.entities[far].typeColumn
        if leadsToDestination {
            add(.pairsToTypes(link: change.source, entity: far, typeColumn: typeColumn, types: outside), known.name)
        } else if let typeColumn {
            add(.pairsOfTypes(link: change.source, entity: far, typeColumn: typeColumn, types: outside), known.name)
        } else {
            add(.pairs(link: change.source), known.name)
        }
    }

    /// Returns the link that has the name of a relationship; nil if there is none.
    private func link(of relationship: RelationshipSchema) -> LinkIndex? {
        let name = "\(new.entities[relationship.entity].name).\(relationship.name)"
        return new.linkIndices.first { new.links[$0].name == name }
    }

    /// Returns the types of the objects to which a relationship does not lead any more. Returns an empty set if the file has recorded
    /// that it led to none of them. Types that the step removes do not count, because their objects refuse it.
    private func typesOutside(_ allowed: Set<Int64>, of relationship: RelationshipSchema, far: EntityIndex) -> Set<Int64> {
        let before = Set([0] + old.entities[far].subentities.map(\.type))
        let present = Set([0] + new.entities[relationship.destination].subentities.map(\.type))
        let outside = before.intersection(present).subtracting(allowed)
        let known = recorded[InversePairs.End(new.entities[relationship.entity].name, relationship.name)] ?? before
        return outside.isDisjoint(with: known) ? [] : outside
    }

    private mutating func add(_ subject: SchemaLoss.Subject, _ name: String) {
        var loss = SchemaLoss(subject: subject, name: name, allowedBy: [])
        loss.reason = "these objects are not of the entity to which the relationship leads now"
        loss.isContradiction = true
        loss.remedy =
            "Remove these objects from the relationship or delete them first, with the model of the file or in willMigrate of a custom "
            + "stage"
        all.append(loss)
    }
}
