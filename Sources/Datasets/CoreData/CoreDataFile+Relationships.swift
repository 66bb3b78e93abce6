import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel

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
    /// The positions in the lists of the destinations, if the file has them.
    var positions: ValueColumn?
    var deleteRule = DeleteRule.nullify
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

    /// Returns the tables whose keys contain all of some values.
    private func tables(withKeys values: ValueColumn) -> [Int] {
        let keys = Set(values.filter { !$0.isNull })
        return keys.isEmpty ? [] : roots.indices.filter { number in keys.allSatisfy { roots[number].rows[$0] != nil } }
    }

    /// Returns a note for a column of numbers that are keys of several entities, so that it may be a relationship to any of them; nil for
    /// other columns. Core Data creates an index for a relationship, but may also create one for an attribute.
    func noteOfUnknownDestination(_ position: Int, in root: CoreDataRoot) -> String? {
        let column = root.table.columns[position]
        guard root.columns[position].property == nil, column.declaredType == "INTEGER",
            indexes.contains("\(root.table.name)_\(column.name)_INDEX")
        else { return nil }
        let names = tables(withKeys: root.cells[position]).map { roots[$0].family.members[0].name }
        guard names.count > 1 else { return nil }
        return
            "\(root.table.name).\(column.name) may be a relationship, because it has an index. Its numbers are primary keys of "
            + "\(names.joined(separator: " and of ")), and only the model says of which. They stay numbers"
    }

    /// Returns the table whose keys contain all values of an indexed column, if its name occurs in the column's or if it is the only
    /// one.
    private func destinationByValues(_ column: String, _ values: ValueColumn) -> Int? {
        let candidates = tables(withKeys: values)
        let named = candidates.filter { number in
            roots[number].family.members.contains { column.hasSuffix($0.name.uppercased()) }
        }
        if named.count == 1 { return named[0] }
        return candidates.count == 1 ? candidates[0] : nil
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
            reference.deleteRule = known.property?.deleteRule ?? .nullify
            reference.positions = root.values(CoreDataColumn.positionPrefix + column.name.dropFirst())
            return reference
        }
    }

    /// Notes the columns of positions that are beside no reference.
    mutating func notePositionsOfNothing(in number: Int) {
        let root = roots[number]
        for column in root.table.columns where column.name.hasPrefix(CoreDataColumn.positionPrefix) {
            let reference = "Z" + column.name.dropFirst(CoreDataColumn.positionPrefix.count)
            let position = root.table.columns.firstIndex { $0.name == reference }
            if position.flatMap({ destination(of: $0, in: root) }) != nil { continue }
            result.notes.append(
                "\(root.table.name).\(column.name) is left out: it has positions, but \(reference) is no relationship")
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
            var text = "\(entityName(number, reference.owner)).\(reference.name) refers to \(entityName(destination))"
            let declared = reference.modelInverse.flatMap { declaration($0.uppercased(), of: destination) }?.property
            made.deleteRule = reference.deleteRule
            made.inverseDeleteRule = back?.deleteRule ?? declared?.deleteRule ?? .nullify
            if back == nil {
                made.ranks = ranks(
                    owners: reference.rows, members: Array(0..<Int32(reference.rows.count)),
                    positions: reference.positions.map(Array.init), declared: declared,
                    of: "\(entityName(destination)).\(made.inverse)", note: &text)
            }
            result.tables[number].references.append(made)
            note(text, reference.lost)
        }
    }

    /// Adds the unique constraints and indexes of the root entities.
    mutating func addIndexes(to number: Int) {
        guard let model else { return }
        for (position, member) in roots[number].family.members.enumerated() {
            let found = model.constraints(ofEntity: member.storedName)
            for (names, isUnique) in found.unique.map({ ($0, true) }) + found.indexed.map({ ($0, false) }) {
                let table = result.tables[number]
                let isKnown = names.allSatisfy { name in
                    table.attributes.contains { $0.name == name && $0.owners == [0] }
                        || table.references.contains { $0.name == name && $0.owner == 0 }
                }
                guard position == 0, isKnown else {
                    let isHeld = table.indexes.contains { $0.properties == names && (!isUnique || $0.kind == .unique) }
                    if !isHeld, !isInherited(names, isUnique: isUnique, by: position, in: roots[number].family, model) {
                        result.notes.append(
                            "\(member.name): \(isUnique ? "the unique constraint" : "the index") over \(names.joined(separator: ", ")) is left out"
                        )
                    }
                    continue
                }
                result.tables[number].addIndex(names, isUnique: isUnique, notes: &result.notes)
            }
        }
    }

    /// Returns whether an ancestor has a unique constraint or an index, too. Archives repeat those of the superentity.
    private func isInherited(
        _ names: [String], isUnique: Bool, by member: Int, in family: CoreDataEntities.Family, _ model: CoreDataModel
    ) -> Bool {
        family.members.indices.contains { other in
            guard other != member, family.inherits(member, from: other) else { return false }
            let found = model.constraints(ofEntity: family.members[other].storedName)
            return (isUnique ? found.unique : found.unique + found.indexed).contains(names)
        }
    }

    private func entityName(_ table: Int, _ member: Int) -> String { roots[table].family.members[member].name }
    func entityName(_ place: (family: Int, member: Int)) -> String { entityName(place.family, place.member) }

    mutating func note(_ text: String, _ lost: Int) {
        result.lostReferences += lost
        result.notes.append(text + (lost == 0 ? "" : "; \(lost) references to nothing became null"))
    }

    func rows(_ keys: ValueColumn, in table: Int, _ lost: inout Int) -> [Int32] {
        keys.map { key in
            if key.isNull { return TableReference.nobody }
            if let row = roots[table].rows[key] { return row }
            lost += 1
            return TableReference.nobody
        }
    }

    /// Returns the entity, or an ancestor of it to which the objects in all these rows belong.
    func member(_ place: (family: Int, member: Int), including rows: [Int32]) -> Int {
        roots[place.family].family.ancestor(of: place.member, including: roots[place.family].kinds(of: rows))
    }
}

extension CoreDataEntities.Family {
    fileprivate func areRelated(_ member: Int, _ other: Int) -> Bool {
        inherits(member, from: other) || inherits(other, from: member)
    }
}
