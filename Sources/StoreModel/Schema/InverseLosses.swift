/// The losses of relationships whose inverses change in one step, although their columns and links stay. In the positions of the older
/// schema.
struct InverseLosses {
    private let recorded: InversePairs
    private let old: StoreSchema
    private let new: StoreSchema
    private let evolution: SchemaEvolution
    private(set) var all: [SchemaLoss] = []

    /// - Parameter recorded: The pairs that the file has recorded. Without a record, nothing shows that an inverse has changed.
    init(recorded: InversePairs?, from old: StoreSchema, to new: StoreSchema, _ evolution: SchemaEvolution) {
        self.recorded = recorded ?? InversePairs()
        self.old = old
        self.new = new
        self.evolution = evolution
        guard recorded != nil, InversePairs(of: new) != nil else { return }
        addNewPairs()
        for pair in self.recorded.pairs.sorted() {
            addUnpaired(pair.first, storedBy: pair.second)
            if pair.first != pair.second { addUnpaired(pair.second, storedBy: pair.first) }
        }
    }

    /// Adds the references of two existing to-one relationships that become a pair, as far as they do not lead back.
    private mutating func addNewPairs() {
        func source(_ relationship: RelationshipSchema) -> (entity: EntityIndex, column: ColumnIndex)? {
            guard let column = relationship.column, let entity = evolution.entities[relationship.entity].source,
                let place = evolution.entities[relationship.entity].columns[column].source
            else { return nil }
            return (entity, place)
        }
        func end(_ place: (entity: EntityIndex, column: ColumnIndex)) -> InversePairs.End {
            InversePairs.End(old.entities[place.entity].name, old.entities[place.entity].columns[place.column].name)
        }
        for relationship in new.relationships {
            guard let inverse = relationship.inverse.map({ new.relationships[$0] }), let place = source(relationship),
                let back = source(inverse), !recorded.contains(end(place), end(back))
            else { continue }
            let name = end(place)
            var loss = SchemaLoss(
                subject: .unanswered(
                    entity: place.entity, column: place.column, backEntity: back.entity, backColumn: back.column),
                name: "\(name.entity).\(name.name)", allowedBy: [])
            loss.reason = "\(new.entities[inverse.entity].name).\(inverse.name) is its inverse now, and does not lead back"
            loss.isContradiction = true
            all.append(loss)
        }
    }

    /// Adds a to-many relationship that the file stores at its inverse, and that is not the inverse any more.
    private mutating func addUnpaired(_ end: InversePairs.End, storedBy far: InversePairs.End) {
        guard old.storage(of: end) == nil, let storage = old.storage(of: far), let successor = successor(of: end.entity),
            let entity = old.entityIndices.first(where: { old.entities[$0].name == far.entity })
        else { return }
        let candidates = new.relationships.filter {
            $0.entity == successor && ($0.name == end.name || $0.renamedFrom == end.name)
        }
        guard let first = candidates.first else { return }
        let subject: SchemaLoss.Subject
        let isKept: (RelationshipSchema) -> Bool
        switch storage {
        case .column(let column):
            guard let place = evolution.successor(of: column, in: entity) else { return }
            let holder = evolution.successor(of: entity)
            subject = .values(entity: entity, column: column)
            isKept = { inverse in inverse.entity == holder && inverse.column == place }
        case .link(let link):
            guard let place = evolution.successor(of: link) else { return }
            let name = new.links[place].name
            subject = .pairs(link: link)
            isKept = { [new] inverse in "\(new.entities[inverse.entity].name).\(inverse.name)" == name }
        }
        // A relationship that is stored itself now is the other end of the same link.
        let isSame = candidates.contains { candidate in
            isKept(candidate) || candidate.inverse.map { isKept(new.relationships[$0]) } == true
        }
        guard !isSame else { return }
        let name = "\(end.entity).\(end.name)"
        var loss = SchemaLoss(
            subject: subject, name: name, allowedBy: [name, "\(new.entities[successor].name).\(first.name)"])
        loss.reason = "\(far.entity).\(far.name) has them, and is not its inverse any more"
        all.append(loss)
    }

    private func successor(of entity: String) -> EntityIndex? {
        old.entityIndices.first { old.entities[$0].name == entity }.flatMap { evolution.successor(of: $0) }
    }
}
