import StoreInterface
import StoreModel

/// The rules of all properties of a model, in store numbers.
final class ValidationRules: Sendable {
    /// A relationship to many objects whose number is bounded.
    struct Counted: Sendable {
        /// The entity with the relationship.
        var owner: EntityIndex
        var rule: EntityRules.CountRule
        var relation: Relation
    }

    /// A relationship whose number a save may have changed.
    struct OpenCount: Hashable {
        /// The object with the relationship.
        var owner: ObjectAddress
        /// The position in ``counted``.
        var number: Int
    }

    /// The rules of each entity; nil if it has none.
    let entities: [EntityRules?]
    let counted: [Counted]
    /// The column that refers to the owner of a counted relationship, by the entity with the column.
    private let referrers: [[(column: ColumnIndex, number: Int)]]

    /// Returns nil if no entity has rules.
    init?(_ model: Model) {
        guard model.entities.contains(where: { $0.rules != nil }) else { return nil }
        entities = model.entities.map(\.rules)
        var counted: [Counted] = []
        var referrers: [[(column: ColumnIndex, number: Int)]] = model.entities.map { _ in [] }
        for entity in model.entities {
            for rule in entity.rules?.counts ?? [] {
                guard case .toMany(let relation) = entity.relationships[rule.relationship].kind else { continue }
                if case .referrers(let far, let column) = relation { referrers[far].append((column, counted.count)) }
                counted.append(Counted(owner: entity.number, rule: rule, relation: relation))
            }
        }
        self.counted = counted
        self.referrers = referrers
    }

    // MARK: Values

    /// Returns whether objects of an entity must have a value in a column.
    func requires(_ column: ColumnIndex, of entity: EntityIndex) -> Bool {
        entities[entity]?.columns.contains { rule in
            guard rule.column == column, case .required = rule.check else { return false }
            return true
        } ?? false
    }

    /// Calls `body` with the values of an object that have rules.
    ///
    /// - Parameters:
    ///   - rules: The rules to check, of the object's entity.
    ///   - row: The changed values of the object; nil if it has none.
    ///   - other: Returns the value of a column that is not changed; nil not to check it.
    ///   - body: Receives the rule and the value of each checked column.
    static func check(
        _ rules: [EntityRules.ColumnRule], row: Row?, other: (ColumnIndex) throws -> Value?,
        _ body: (EntityRules.ColumnRule, Value) -> Void
    ) rethrows {
        for rule in rules {
            if let owner = rule.owner, owner.types != nil {
                let isSet = row?.isSet(owner.typeColumn) == true
                guard owner.applies(to: try isSet ? row?[owner.typeColumn] : other(owner.typeColumn)) else { continue }
            }
            if let row, row.isSet(rule.column) {
                body(rule, row[rule.column])
            } else if let value = try other(rule.column) {
                body(rule, value)
            }
        }
    }

    // MARK: Counts

    /// Returns the relationships whose number of objects a layer may change, by entity and key of their owners. Inserted owners are
    /// among them. O(changed objects).
    ///
    /// - Parameter before: The state without the layer.
    func countsToCheck(_ changes: Layer, before: LayeredView) throws -> [OpenCount] {
        guard !counted.isEmpty else { return [] }
        var open: Set<OpenCount> = []
        for (number, counted) in counted.enumerated() {
            changes.forEachRow(of: counted.owner, \.inserted) { key, _ in open.insert(count(number, key)) }
            guard case .link(let link, let direction, let far) = counted.relation else { continue }
            let pairs = changes.links[link]
            for key in (direction == .forward ? pairs.forward : pairs.backward).keys { open.insert(count(number, key)) }
            let back = Relation.link(link, direction == .forward ? .backward : .forward, destination: counted.owner)
            try changes.forEachRow(of: far, \.deleted) { key, _ in
                for owner in try before.related(back, to: key) { open.insert(count(number, owner)) }
            }
        }
        for (entity, columns) in referrers.enumerated(as: EntityIndex.self) where !columns.isEmpty {
            try changes.forEachRow(of: entity, \.touched) { key, row in
                for (column, number) in columns {
                    let isSet = row.kind != .delete && row.isSet(column)
                    if row.kind == .update, !isSet { continue }
                    let old = row.kind == .insert ? nil : try before.value(entity, key: key, column: column)?.referenceKey
                    let new = isSet ? row[column].referenceKey : nil
                    if old == new { continue }
                    for owner in [old, new].compactMap(\.self) { open.insert(count(number, owner)) }
                }
            }
        }
        return open.sorted {
            ($0.owner.entity, $0.owner.key, $0.number) < ($1.owner.entity, $1.owner.key, $1.number)
        }
    }

    private func count(_ number: Int, _ owner: ObjectKey) -> OpenCount {
        OpenCount(owner: ObjectAddress(entity: counted[number].owner, key: owner), number: number)
    }

    /// Returns the violation of a bounded number in a state; nil if the owner does not exist. O(related objects).
    func violation(_ open: OpenCount, in view: LayeredView, _ store: StoreIdentity) throws -> RuleViolation? {
        guard try view.exists(open.owner.entity, open.owner.key) else { return nil }
        let counted = counted[open.number]
        if let owner = counted.rule.owner, owner.types != nil {
            let type = try view.value(open.owner.entity, key: open.owner.key, column: owner.typeColumn)
            guard owner.applies(to: type) else { return nil }
        }
        let count = try view.related(counted.relation, to: open.owner.key).count
        let id = ObjectID(store: store, entity: open.owner.entity, key: open.owner.key)
        return counted.rule.violation(count, entity: entities[open.owner.entity]?.entity ?? "", id: id)
    }

    /// Calls `body` with each violation of an object by the numbers of its related objects.
    func checkCounts(
        of entity: EntityIndex, key: ObjectKey, in view: LayeredView, store: StoreIdentity, _ body: (RuleViolation) -> Void
    ) throws {
        for (number, counted) in counted.enumerated() where counted.owner == entity {
            let open = OpenCount(owner: ObjectAddress(entity: entity, key: key), number: number)
            if let violation = try violation(open, in: view, store) { body(violation) }
        }
    }
}

extension Layer {
    /// Calls `body` with the rows of an entity that a mask selects, by key.
    func forEachRow(
        of entity: EntityIndex, _ mask: KeyPath<LayerPage, UInt64>, _ body: (ObjectKey, Row) throws -> Void
    ) rethrows {
        guard let changes = self.entity(entity) else { return }
        for number in changes.sortedPageNumbers {
            guard let page = changes.page(number) else { continue }
            for slot in SlotIterator(page[keyPath: mask]) {
                if let row = page[slot] { try body(PageAddress.key(page: number, slot: slot), row) }
            }
        }
    }
}
