import ObjectGraph
import StoreInterface
import StoreModel

/// Compares two stores object by object. Entities, columns, links and lists are matched by name.
struct StoreComparison {
    private let old: Side
    private let new: Side

    /// One of the stores.
    private struct Side {
        let model: Model
        let snapshot: any StoreSnapshot
        let names: ObjectNames

        init(_ path: String) async throws {
            let kind = try FileKind(ofFile: path)
            let stored = try await kind.storedModel(path)
            let description = kind.description(path, .reading)
            model = InverseNames.model(over: stored, pairs: OrderPairs(description, stored.storeSchema))
            let store = try description.open(stored.storeSchema)
            snapshot = try store.snapshot()
            names = ObjectNames(model: model, store: store.identity)
        }

        /// Returns the keys of an entity's objects, ascending.
        func keys(_ entity: Entity?) throws -> [ObjectKey] {
            guard let entity else { return [] }
            return try snapshot.keys(StoreQuery(entity: entity.number))
        }

        /// Returns the number of objects that programs see.
        func objectCount() throws -> Int {
            try model.entities.reduce(0) { try $0 + snapshot.count(StoreQuery(entity: $1.number)) }
        }

        /// Returns an ordered relationship with the columns of its positions.
        func list(_ relationship: Relationship, of entity: Entity) -> OrderedList? {
            guard case .toMany(let relation) = relationship.kind else { return nil }
            let entities = snapshot.schema.entities
            if case .referrers(let source, let column) = relation {
                return entities[source].position(in: column).map { OrderedList(relation: relation, members: (source, $0)) }
            }
            let columns = EntitySchema.orderColumns
            let order = snapshot.schema.entityIndices.first {
                entities[$0].orderedRelationship == relationship.name
                    && entities[$0].columns[columns.owner].destination == entity.number
            }
            return order.map { OrderedList(relation: relation, order: $0) }
        }

        /// Returns the members of an ordered relationship in their order.
        func members(_ list: OrderedList, of owner: ObjectKey) throws -> [ObjectKey] {
            let members = try snapshot.related(list.relation, to: owner)
            var positions: [ObjectKey: Value] = [:]
            if let (entity, column) = list.members {
                for member in members { positions[member] = try snapshot.value(entity, key: member, column: column) }
            }
            if let order = list.order {
                let columns = EntitySchema.orderColumns
                for pair in try snapshot.related(.referrers(entity: order, column: columns.owner), to: owner) {
                    let member = try snapshot.value(order, key: pair, column: columns.member)?.referenceKey
                    guard let member else { continue }
                    positions[member] = try snapshot.value(order, key: pair, column: columns.position)
                }
            }
            return members.sorted { a, b in
                let order = (positions[a] ?? .null).order(positions[b] ?? .null)
                return order == 0 ? a < b : order < 0
            }
        }

        /// Returns the names of the columns that are not positions in lists.
        func columns(_ entity: Entity) -> [String] {
            let schema = snapshot.schema.entities[entity.number]
            return schema.columnIndices.filter { !schema.isPosition($0) }.map { schema.columns[$0].name }
        }
    }

    /// An ordered relationship, and where one store has its positions.
    private struct OrderedList {
        var relation: Relation
        /// The entity of the members and its column of positions, if the members refer to the object that has the list.
        var members: (entity: EntityIndex, column: ColumnIndex)?
        /// The hidden entity of the positions, if the relationship is many-to-many.
        var order: EntityIndex?
    }

    init(_ old: String, _ new: String) async throws {
        self.old = try await Side(old)
        self.new = try await Side(new)
    }

    /// Calls a closure with each difference: objects by entity and key, and then entries of keyed collections.
    /// - Parameter progress: Shows the part of the objects that is compared.
    func forEachDifference(showing progress: ProgressBar, _ body: (Difference) throws -> Void) throws {
        let names = old.model.entities.map(\.name)
        var steps = Steps(total: try old.objectCount() + new.objectCount(), bar: progress)
        for name in names + new.model.entities.map(\.name).filter({ !names.contains($0) }) {
            try compare(name, counting: &steps, body)
        }
        progress.clear()
        var collections = try CollectionComparison((old.snapshot, old.names), (new.snapshot, new.names))
        try collections.forEachDifference(body)
    }

    /// The number of objects of both stores that are compared.
    private struct Steps {
        let total: Int
        let bar: ProgressBar
        private var done = 0

        init(total: Int, bar: ProgressBar) {
            self.total = total
            self.bar = bar
        }

        mutating func advance(by count: Int) {
            done += count
            bar.update(done, of: total)
        }
    }

    /// Compares the objects of an entity.
    private func compare(_ name: String, counting steps: inout Steps, _ body: (Difference) throws -> Void) throws {
        let (first, second) = (old.model.wholeEntity(name), new.model.wholeEntity(name))
        let before = try old.keys(first)
        let after = try new.keys(second)
        let links = relations(first, second)
        let lists = orderedRelationships(first, second)
        var (i, j) = (0, 0)
        while i < before.count || j < after.count {
            if j == after.count || i < before.count && before[i] < after[j] {
                try body(Difference(kind: .delete, entity: name, key: before[i]))
                i += 1
                steps.advance(by: 1)
            } else if i == before.count || after[j] < before[i] {
                try body(Difference(kind: .insert, entity: name, key: after[j]))
                j += 1
                steps.advance(by: 1)
            } else {
                if let first, let second {
                    let reordered = try lists.compactMap { try $0.property(before[i], before: old, after: new) }
                    let related = try links.compactMap { try $0.property(before[i], before: old, after: new) }
                    // The difference of a list has its members, too.
                    let properties =
                        try properties(before[i], first: first, second: second)
                        + related.filter { link in !reordered.contains { $0.name == link.name } } + reordered
                    if !properties.isEmpty {
                        try body(Difference(kind: .update, entity: name, key: before[i], properties: properties))
                    }
                }
                i += 1
                j += 1
                steps.advance(by: 2)
            }
        }
    }

    /// Returns the columns whose values differ. A column that only one side has differs if it has a value there.
    private func properties(_ key: ObjectKey, first: Entity, second: Entity) throws -> [Difference.Property] {
        let names = old.columns(first) + new.columns(second).filter { first.column(named: $0) == nil }
        return try names.compactMap { name in
            let one = try first.column(named: name).map {
                (value: try old.snapshot.value(first.number, key: key, column: $0) ?? .null, type: first.columns[$0].type)
            }
            let other = try second.column(named: name).map {
                (value: try new.snapshot.value(second.number, key: key, column: $0) ?? .null, type: second.columns[$0].type)
            }
            let isEqual = (one?.value ?? .null).order(other?.value ?? .null) == 0
            if isEqual { return nil }
            return Difference.Property(
                name: name,
                values: (one.map { .value($0.value, $0.type) } ?? .missing, other.map { .value($0.value, $0.type) } ?? .missing))
        }
    }

    /// An ordered relationship that both stores have.
    private struct ListPair {
        var name: String
        var old: OrderedList
        var new: OrderedList

        /// Returns the difference between the lists of an object if their common members are in another order.
        func property(_ key: ObjectKey, before: Side, after: Side) throws -> Difference.Property? {
            let one = try before.members(old, of: key)
            let other = try after.members(new, of: key)
            if one == other { return nil }
            let (former, current) = (Set(one), Set(other))
            if one.filter(current.contains) == other.filter(former.contains) { return nil }
            return Difference.Property(
                name: name, values: (.objects(one), .objects(other, note: " in another order")))
        }
    }

    private func orderedRelationships(_ first: Entity?, _ second: Entity?) -> [ListPair] {
        guard let first, let second else { return [] }
        return first.relationships.filter(\.isOrdered).compactMap { one in
            guard let other = second.relationships.first(where: { $0.isOrdered && $0.name == one.name }),
                let before = old.list(one, of: first), let after = new.list(other, of: second)
            else { return nil }
            return ListPair(name: one.name, old: before, new: after)
        }
    }

    /// A link, from the entity that is its source. nil for a store that does not have it.
    private struct LinkPair {
        var name: String
        var old: Relation?
        var new: Relation?

        func property(_ key: ObjectKey, before: Side, after: Side) throws -> Difference.Property? {
            let one = try old.map { try before.snapshot.related($0, to: key) } ?? []
            let other = try new.map { try after.snapshot.related($0, to: key) } ?? []
            if one == other { return nil }
            return Difference.Property(name: name, values: (.objects(one), .objects(other)))
        }
    }

    private func relations(_ first: Entity?, _ second: Entity?) -> [LinkPair] {
        guard let first, let second else { return [] }
        let (before, after) = (links(of: first, in: old), links(of: second, in: new))
        let known = Set(before.map(\.name))
        return before.map { link in
            LinkPair(name: link.property, old: link.relation, new: after.first { $0.name == link.name }?.relation)
        } + after.filter { !known.contains($0.name) }.map { LinkPair(name: $0.property, old: nil, new: $0.relation) }
    }

    /// Returns the links whose source is an entity, with the names of their properties.
    private func links(of entity: Entity, in side: Side) -> [(name: String, property: String, relation: Relation)] {
        let schema = side.model.storeSchema
        return schema.links.enumerated(as: LinkIndex.self).filter { $1.source == entity.number }.map { number, link in
            (
                name: link.name, property: SchemaText.property(ofLink: number, schema),
                relation: .link(number, .forward, destination: link.destination)
            )
        }
    }
}

extension Model {
    /// Returns the entity of an object with the properties of all its sub-entities; nil if there is none with the name.
    func wholeEntity(_ name: String) -> Entity? { entity(named: name).map { entities[$0.number] } }
}
