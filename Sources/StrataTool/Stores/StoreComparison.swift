import ObjectGraph
import StoreInterface

/// Compares two stores object by object. Entities, columns, links and lists are matched by name.
struct StoreComparison {
    private let old: Side
    private let new: Side

    /// One of the stores.
    private struct Side {
        let model: Model
        let snapshot: any StoreSnapshot

        init(_ path: String) async throws {
            let kind = try FileKind(ofFile: path)
            let stored = try await kind.storedModel(path)
            let description = kind.description(path, .reading)
            model = InverseNames.model(over: stored, pairs: OrderPairs(description, stored.storeSchema))
            snapshot = try description.open(stored.storeSchema).snapshot()
        }

        /// Returns the keys of an entity's objects, ascending.
        func keys(_ entity: Entity?) throws -> [ObjectKey] {
            guard let entity else { return [] }
            return try snapshot.keys(StoreQuery(entity: entity.number))
        }

        /// Returns the members of an ordered relationship in their order.
        func list(_ relationship: Relationship, of entity: Entity, _ key: ObjectKey) throws -> [ObjectKey] {
            guard case .toMany(let relation) = relationship.kind else { return [] }
            let members = try snapshot.related(relation, to: key)
            var positions: [ObjectKey: Value] = [:]
            if case .referrers(let entity, let column) = relation {
                guard let position = snapshot.schema.entities[entity].position(in: column) else { return members }
                for member in members { positions[member] = try snapshot.value(entity, key: member, column: position) }
            } else {
                let columns = (owner: 0, member: 1, position: 2)
                let order = snapshot.schema.entities.firstIndex {
                    $0.orderedRelationship == relationship.name && $0.columns[columns.owner].destination == entity.number
                }
                guard let order else { return members }
                for place in try snapshot.related(.referrers(entity: order, column: columns.owner), to: key) {
                    guard let member = try snapshot.value(order, key: place, column: columns.member)?.referenceKey else {
                        continue
                    }
                    positions[member] = try snapshot.value(order, key: place, column: columns.position)
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
            return schema.columns.indices.filter { !schema.isPosition($0) }.map { schema.columns[$0].name }
        }
    }

    init(_ old: String, _ new: String) async throws {
        self.old = try await Side(old)
        self.new = try await Side(new)
    }

    func differences() throws -> [Difference] {
        let names = old.model.entities.map(\.name)
        return try (names + new.model.entities.map(\.name).filter { !names.contains($0) }).flatMap(differences)
    }

    private func differences(_ name: String) throws -> [Difference] {
        let (first, second) = (old.model.entity(named: name), new.model.entity(named: name))
        let before = try old.keys(first)
        let after = try new.keys(second)
        let links = relations(first, second)
        let lists = orderedRelationships(first, second)
        var found: [Difference] = []
        var (i, j) = (0, 0)
        while i < before.count || j < after.count {
            if j == after.count || i < before.count && before[i] < after[j] {
                found.append(Difference(kind: .delete, entity: name, key: before[i]))
                i += 1
            } else if i == before.count || after[j] < before[i] {
                found.append(Difference(kind: .insert, entity: name, key: after[j]))
                j += 1
            } else {
                if let first, let second {
                    let properties =
                        try properties(before[i], first: first, second: second)
                        + links.compactMap { try $0.property(before[i], before: old, after: new) }
                        + lists.compactMap { try reordering(of: before[i], $0) }
                    if !properties.isEmpty {
                        found.append(Difference(kind: .update, entity: name, key: before[i], properties: properties))
                    }
                }
                i += 1
                j += 1
            }
        }
        return found
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
                values: (
                    one.map { ValueText.shown($0.value, $0.type) } ?? "nil",
                    other.map { ValueText.shown($0.value, $0.type) } ?? "nil"
                ))
        }
    }

    /// An ordered relationship in both stores.
    private typealias ListPair = (old: (Relationship, of: Entity), new: (Relationship, of: Entity))

    private func orderedRelationships(_ first: Entity?, _ second: Entity?) -> [ListPair] {
        guard let first, let second else { return [] }
        return first.relationships.filter(\.isOrdered).compactMap { one in
            let other = second.relationships.first { $0.isOrdered && $0.name == one.name }
            return other.map { ((one, first), ($0, second)) }
        }
    }

    /// Returns a list whose common members are in another order.
    private func reordering(of key: ObjectKey, _ list: ListPair) throws -> Difference.Property? {
        let before = try old.list(list.old.0, of: list.old.of, key)
        let after = try new.list(list.new.0, of: list.new.of, key)
        if before == after { return nil }
        let (was, remains) = (Set(before), Set(after))
        if before.filter(remains.contains) == after.filter(was.contains) { return nil }
        return Difference.Property(
            name: list.new.0.name, values: ("\(before.count) objects", "\(after.count) objects in another order"))
    }

    /// A link that both stores have, from the entity that is its source.
    private struct LinkPair {
        var name: String
        var old: Relation
        var new: Relation

        func property(_ key: ObjectKey, before: Side, after: Side) throws -> Difference.Property? {
            let one = try before.snapshot.related(old, to: key)
            let other = try after.snapshot.related(new, to: key)
            if one == other { return nil }
            return Difference.Property(name: name, values: ("\(one.count) objects", "\(other.count) objects"))
        }
    }

    private func relations(_ first: Entity?, _ second: Entity?) -> [LinkPair] {
        guard let first, let second else { return [] }
        let others = new.model.storeSchema.links
        return old.model.storeSchema.links.enumerated().compactMap { number, link in
            guard link.source == first.number,
                let other = others.firstIndex(where: { $0.name == link.name && $0.source == second.number })
            else { return nil }
            return LinkPair(
                name: SchemaText.property(ofLink: number, old.model.storeSchema),
                old: .link(number, .forward, destination: link.destination),
                new: .link(other, .forward, destination: others[other].destination))
        }
    }
}
