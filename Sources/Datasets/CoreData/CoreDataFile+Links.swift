import SQLiteStore
import StoreInterface
import StoreModel

/// The table of a many-to-many relationship: `Z_1TAGS` has the columns `Z_1NOTES` and `Z_4TAGS`, or `REFLEXIVE` for the second one if both ends
/// are of one entity. A column contains keys of the entity with the number in its name, and is named after the relationship that leads to
/// them. `Z_FOK_4TAGS` contains the positions of tags in the list of a note.
private struct CoreDataLink {
    /// A column of keys.
    struct End {
        var entity: Int64
        /// The name of the relationship in capitals.
        var name: String
        var keys: ValueColumn
        /// The positions of the objects in the lists of those at the other end; nil if the table has none.
        var positions: ValueColumn?
    }

    let ends: [End]

    /// Returns nil for a table that is no many-to-many relationship.
    init?(_ table: SQLiteTable, _ cells: [ValueColumn]) {
        let columns = table.columns.indices.filter { !table.columns[$0].name.hasPrefix(CoreDataColumn.positionPrefix) }
        guard columns.count == 2, let owner = Self.split(table.name) else { return nil }
        ends = columns.map { column in
            let name = table.columns[column].name
            let (entity, relationship) = Self.split(name) ?? owner
            let ordered = CoreDataColumn.positionPrefix + (name.hasPrefix("Z_") ? name.dropFirst(2) : name[...])
            return End(
                entity: entity, name: relationship, keys: cells[column],
                positions: table.columns.firstIndex { $0.name == ordered }.map { cells[$0] })
        }
    }

    /// Splits `Z_4TAGS` into the number of an entity and the name of a relationship.
    private static func split(_ name: String) -> (entity: Int64, name: String)? {
        guard name.hasPrefix("Z_") else { return nil }
        let digits = name.dropFirst(2).prefix { $0.isASCII && $0.isNumber }
        guard let entity = Int64(digits), digits.count + 2 < name.count else { return nil }
        return (entity, String(name.dropFirst(2 + digits.count)))
    }
}

extension CoreDataFile {
    /// Adds a many-to-many relationship from its table. Ignores other tables.
    mutating func addLink(_ table: SQLiteTable) throws {
        guard let found = CoreDataLink(table, try table.values(in: database, scratch: scratch)) else { return }
        let (first, second) = (found.ends[0], found.ends[1])
        guard var source = entities.place(of: first.entity), var destination = entities.place(of: second.entity) else {
            let count = first.keys.count
            if count > 0 { result.notes.append("\(table.name): \(count) links of unknown entities are left out") }
            return
        }
        var lost = 0
        let sources = rows(first.keys, in: source.family, &lost)
        let destinations = rows(second.keys, in: destination.family, &lost)
        var known: Set<Link.Pair> = []
        // The table's primary key allows each pair once, but a damaged table may have it twice.
        let linked = sources.indices.filter { row in
            sources[row] >= 0 && destinations[row] >= 0
                && known.insert(Link.Pair(source: sources[row], destination: destinations[row])).inserted
        }
        let pairs = linked.map { Link.Pair(source: sources[$0], destination: destinations[$0]) }
        let forward = declaration(second.name, of: source)
        let backward = declaration(first.name, of: destination)
        source.member = member((source.family, forward?.member ?? source.member), including: pairs.map(\.source))
        destination.member = member(
            (destination.family, backward?.member ?? destination.member), including: pairs.map(\.destination))
        var link = Link(
            name: take(forward?.property.name ?? second.name.lowercased(), of: source.member, in: source.family),
            inverse: take(backward?.property.name ?? first.name.lowercased(), of: destination.member, in: destination.family),
            source: source.family, destination: destination.family, pairs: pairs)
        (link.sourceMember, link.destinationMember) = (source.member, destination.member)
        link.deleteRule = forward?.property.deleteRule ?? .nullify
        link.inverseDeleteRule = backward?.property.deleteRule ?? .nullify
        var text = "\(table.name): \(pairs.count) links between \(entityName(source)) and \(entityName(destination))"
        link.ranks = ranks(
            owners: pairs.map(\.source), members: pairs.map(\.destination),
            positions: second.positions.map { cells in linked.map { cells[$0] } },
            declared: forward?.property, of: "\(entityName(source)).\(link.name)", note: &text)
        link.inverseRanks = ranks(
            owners: pairs.map(\.destination), members: pairs.map(\.source),
            positions: first.positions.map { cells in linked.map { cells[$0] } },
            declared: backward?.property, of: "\(entityName(destination)).\(link.inverse)", note: &text)
        result.links.append(link)
        note(text, lost)
    }

    /// Returns the numbers of members in their lists; nil if neither the file nor the model orders the relationship.
    /// - Parameters:
    ///   - property: The relationship in the model, which may be unknown.
    ///   - name: The name of the relationship, for the note.
    ///   - note: Gets a part about the order.
    func ranks(
        owners: [Int32], members: [Int32], positions: [Value]?, declared property: CoreDataModel.Property?, of name: String,
        note: inout String
    ) -> [Int32]? {
        guard positions != nil || property?.isOrdered == true else { return nil }
        note += ", in the order of \(name)"
        if positions == nil { note += " (of the primary keys, because there are no positions)" }
        return ListRanks.ranks(owners: owners, members: members, positions: positions)
    }

    /// Returns the declaration of a relationship by an entity, one that it inherits from, or one that inherits from it.
    func declaration(_ name: String, of place: (family: Int, member: Int)) -> CoreDataDeclaration? {
        let root = roots[place.family]
        let all = (root.declarations[name] ?? []).filter { !$0.property.isAttribute }
        return all.first { root.family.inherits(place.member, from: $0.member) }
            ?? all.first { root.family.inherits($0.member, from: place.member) } ?? all.first
    }
}
