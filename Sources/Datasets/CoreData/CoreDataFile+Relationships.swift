import SQLiteStore
import StoreInterface

/// A column that is a to-one relationship.
struct CoreDataReference {
    /// The row of the destination of each row.
    var rows: [Int32]
    var owner: Int
    var destination: (family: Int, member: Int)
    /// The name in the data set.
    var name: String
    /// The names of the relationship and its inverse in the model.
    var modelName: String?
    var modelInverse: String?
    var lost: Int
}

extension CoreDataFile {
    /// Returns the table and the entity that a column refers to; nil for an attribute.
    func destination(of position: Int, in root: CoreDataRoot) -> (family: Int, member: Int)? {
        let column = root.table.columns[position]
        guard column.declaredType == "INTEGER", !column.name.hasPrefix("Z_") else { return nil }
        if let property = root.columns[position].property {
            guard case .toOne(let destination, _) = property.kind else { return nil }
            return entities.place(named: destination)
        }
        let plain = String(column.name.dropFirst())
        // The number of the destination is part of the name of the column beside it: `Z4_BOOK` beside `ZBOOK`.
        for other in root.table.columns where other.name.hasSuffix("_" + plain) && CoreDataColumn.isInternal(other.name) {
            let digits = other.name.dropFirst().prefix { $0.isASCII && $0.isNumber }
            if other.name.count == digits.count + plain.count + 2, let number = Int64(digits),
                let found = entities.place(of: number)
            {
                return found
            }
        }
        guard indexes.contains("\(root.table.name)_\(column.name)_INDEX") else { return nil }
        return destinationByValues(plain, root.values(column.name) ?? []).map { ($0, 0) }
    }

    /// Returns the table whose keys contain all values of an indexed column, if its name occurs in the column's or if it is the only
    /// one.
    private func destinationByValues(_ column: String, _ values: [Value]) -> Int? {
        let keys = Set(values.filter { !$0.isNull })
        let candidates = roots.indices.filter { number in keys.allSatisfy { roots[number].rows[$0] != nil } }
        let named = candidates.filter { number in
            roots[number].family.members.contains { column.hasSuffix($0.name.uppercased()) }
        }
        if named.count == 1 { return named[0] }
        return candidates.count == 1 && !keys.isEmpty ? candidates[0] : nil
    }

    mutating func nameReferences(_ number: Int) -> [CoreDataReference] {
        let root = roots[number]
        return root.table.columns.enumerated().compactMap { position, column in
            guard !CoreDataColumn.isInternal(column.name), var destination = destination(of: position, in: root) else {
                return nil
            }
            let known = root.columns[position]
            var lost = 0
            let rows = rows(root.cells[position], in: destination.family, &lost)
            destination.member = member(destination, including: rows)
            let owner = commonOwner(known.owners, kinds: root.kindsWithValues(position), in: root)
            var reference = CoreDataReference(
                rows: rows, owner: owner, destination: destination,
                name: take(known.property?.name ?? column.name.dropFirst().lowercased(), of: owner, in: number),
                modelName: known.property?.name, lost: lost)
            if case .toOne(_, let inverse)? = known.property?.kind { reference.modelInverse = inverse }
            return reference
        }
    }

    /// - Parameter all: The references of every table, among which are the inverses of one-to-one relationships.
    mutating func addReferences(_ references: [CoreDataReference], number: Int, all: [[CoreDataReference]]) {
        for reference in references {
            let destination = reference.destination
            let back = all[destination.family].first { other in
                other.destination.family == number && other.modelName != nil && other.modelName == reference.modelInverse
                    && other.modelInverse == reference.modelName
                    && roots[number].family.areRelated(other.destination.member, reference.owner)
                    && roots[destination.family].family.areRelated(other.owner, destination.member)
            }
            let inverse = reference.modelInverse ?? PropertyNames.plural(ofTable: result.tables[number].members[reference.owner])
            var made = TableReference(
                name: reference.name, inverse: back?.name ?? take(inverse, of: destination.member, in: destination.family),
                destination: destination.family, rows: reference.rows)
            (made.owner, made.destinationMember) = (reference.owner, destination.member)
            result.tables[number].references.append(made)
            note("\(entityName(number, reference.owner)).\(reference.name) refers to \(entityName(destination))", reference.lost)
        }
    }

    private func entityName(_ table: Int, _ member: Int) -> String { roots[table].family.members[member].name }
    private func entityName(_ place: (family: Int, member: Int)) -> String { entityName(place.family, place.member) }

    private mutating func note(_ text: String, _ lost: Int) {
        result.lostReferences += lost
        result.notes.append(text + (lost == 0 ? "" : "; \(lost) references to nothing became null"))
    }

    private func rows(_ keys: [Value], in table: Int, _ lost: inout Int) -> [Int32] {
        keys.map { key in
            if key.isNull { return TableReference.nobody }
            if let row = roots[table].rows[key] { return row }
            lost += 1
            return TableReference.nobody
        }
    }

    /// Returns the entity, or an ancestor of it to which the objects in all these rows belong.
    private func member(_ place: (family: Int, member: Int), including rows: [Int32]) -> Int {
        roots[place.family].family.ancestor(of: place.member, including: roots[place.family].kinds(of: rows))
    }

    // MARK: Links

    /// Adds a many-to-many relationship from its table: `Z_1TAGS` has the columns `Z_1NOTES` and `Z_4TAGS`, or `REFLEXIVE` for the
    /// second one if both ends are of one entity. A column contains keys of the entity with the number in its name.
    mutating func addLink(_ table: SQLiteTable) throws {
        let columns = table.columns.enumerated().filter { !$1.name.hasPrefix("Z_FOK_") }
        guard columns.count == 2, let owner = Self.end(table.name) else { return }
        let ends = columns.map { Self.end($0.element.name) ?? owner }
        let cells = try table.values(in: database)
        guard var source = entities.place(of: ends[0].entity), var destination = entities.place(of: ends[1].entity) else {
            let count = cells.first?.count ?? 0
            if count > 0 { result.notes.append("\(table.name): \(count) links of unknown entities are left out") }
            return
        }
        var lost = 0
        let sources = rows(cells[columns[0].offset], in: source.family, &lost)
        let destinations = rows(cells[columns[1].offset], in: destination.family, &lost)
        let pairs = zip(sources, destinations).compactMap { source, destination in
            source < 0 || destination < 0 ? nil : Link.Pair(source: source, destination: destination)
        }
        // The column with the keys of an entity is named after the relationship that leads to the entity.
        let forward = declaration(ends[1].name, of: source)
        let backward = declaration(ends[0].name, of: destination)
        source.member = member((source.family, forward?.member ?? source.member), including: pairs.map(\.source))
        destination.member = member(
            (destination.family, backward?.member ?? destination.member), including: pairs.map(\.destination))
        var link = Link(
            name: take(forward?.property.name ?? ends[1].name.lowercased(), of: source.member, in: source.family),
            inverse: take(backward?.property.name ?? ends[0].name.lowercased(), of: destination.member, in: destination.family),
            source: source.family, destination: destination.family, pairs: pairs)
        (link.sourceMember, link.destinationMember) = (source.member, destination.member)
        result.links.append(link)
        note(
            "\(table.name): \(pairs.count) links between \(entityName(source)) and \(entityName(destination))"
                + (table.columns.count > 2 ? ", without their order" : ""), lost)
    }

    /// Returns the declaration of a relationship by an entity, one that it inherits from, or one that inherits from it.
    private func declaration(_ name: String, of place: (family: Int, member: Int)) -> CoreDataDeclaration? {
        let root = roots[place.family]
        let all = (root.declarations[name] ?? []).filter { !$0.property.isAttribute }
        return all.first { root.family.inherits(place.member, from: $0.member) }
            ?? all.first { root.family.inherits($0.member, from: place.member) } ?? all.first
    }

    /// Splits `Z_4TAGS` into the number of an entity and the name of a relationship.
    private static func end(_ name: String) -> (entity: Int64, name: String)? {
        guard name.hasPrefix("Z_") else { return nil }
        let digits = name.dropFirst(2).prefix { $0.isASCII && $0.isNumber }
        guard let entity = Int64(digits), digits.count + 2 < name.count else { return nil }
        return (entity, String(name.dropFirst(2 + digits.count)))
    }
}

extension CoreDataEntities.Family {
    fileprivate func areRelated(_ member: Int, _ other: Int) -> Bool {
        inherits(member, from: other) || inherits(other, from: member)
    }
}
