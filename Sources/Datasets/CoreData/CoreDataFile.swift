import SQLiteStore
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads a store of Core Data or SwiftData.
///
/// Each root entity becomes an entity. Its sub-entities are in the same table, so objects get an attribute `entityName` if there are
/// any. Names and types come from the model in the file. Without it they come from the tables: names in lowercase, and relationships
/// from the indexes that Core Data creates for them.
struct CoreDataFile {
    /// An entity of the file, by its number there.
    private struct Entity {
        var name: String
        /// The number of the entity that it inherits from; 0 for none.
        var parent: Int64
    }

    /// The table of a root entity.
    private struct Root {
        var number: Int64
        var table: SQLiteTable
        /// The names of the entity and its sub-entities in the model.
        var names: Set<String>
        var hasChildren: Bool
        var cells: [[Value]]
        /// The row of each primary key.
        var rows: [Value: Int32]

        func values(_ column: String) -> [Value]? {
            table.columns.firstIndex { $0.name == column }.map { cells[$0] }
        }
    }

    private let database: DatabaseReader
    private let name: String
    private let tables: [SQLiteTable]
    private var entities: [Int64: Entity] = [:]
    private var model: CoreDataModel?
    private var indexes: Set<String> = []
    private var roots: [Root] = []
    private var names = PropertyNames(tableCount: 0)
    private var result: Dataset

    /// Entities from this number on are records of Core Data itself: the history.
    private static let firstInternalEntity: Int64 = 16_000

    static func isCoreData(_ tables: [SQLiteTable]) -> Bool {
        let names = Set(tables.map(\.name))
        return names.contains("Z_PRIMARYKEY") && names.contains("Z_METADATA")
    }

    init(_ database: DatabaseReader, _ tables: [SQLiteTable], name: String) throws {
        self.database = database
        self.tables = tables
        self.name = name
        result = Dataset(name: name, tables: [])
        var entities: [Int64: Entity] = [:]
        try database.forEachRow("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT") { row in
            entities[row.integer(0)] = Entity(name: row.text(1), parent: row.integer(2))
        }
        self.entities = entities
        if tables.contains(where: { $0.name == "Z_MODELCACHE" }) {
            var cache: Data?
            try database.forEachRow("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1") { row in
                if case .data(let data) = row.value(0) { cache = data }
            }
            model = cache.flatMap { CoreDataModel(cache: $0) }
        }
        var indexes: Set<String> = []
        try database.forEachRow("SELECT name FROM sqlite_master WHERE type = 'index'") { indexes.insert($0.text(0)) }
        self.indexes = indexes
    }

    mutating func dataset() throws -> Dataset {
        result.notes.append(
            model == nil
                ? "a Core Data store without a readable model: names and types are those of its tables"
                : "a Core Data store, with its model")
        try readRoots()
        guard !roots.isEmpty else { throw DatasetError("\(name): a Core Data store without entities") }
        names = PropertyNames(tableCount: roots.count)
        for number in roots.indices { addTable(number) }
        let references = roots.indices.map { nameReferences($0) }
        // Before references, whose inverses have made-up names if there is no model.
        for table in tables where table.name.hasPrefix("Z_") { try addLink(table) }
        for number in roots.indices { addReferences(references[number], number, references) }
        return result
    }

    // MARK: Entities

    private mutating func readRoots() throws {
        for (number, entity) in entities.sorted(by: { $0.key < $1.key }) where root(of: number) == number {
            guard number < Self.firstInternalEntity,
                let table = tables.first(where: { $0.name == "Z" + entity.name.uppercased() })
            else { continue }
            let family = entities.filter { root(of: $0.key) == number }
            let cells = try table.values(in: database, order: "Z_PK")
            let keys = table.columns.firstIndex { $0.name == "Z_PK" }.map { cells[$0] } ?? []
            roots.append(
                Root(
                    number: number, table: table, names: Set(family.map { model?.name(ofEntity: $1.name) ?? $1.name }),
                    hasChildren: family.count > 1, cells: cells,
                    rows: Dictionary(keys.enumerated().map { ($1, Int32($0)) }, uniquingKeysWith: { first, _ in first })))
        }
    }

    /// Returns the entity at the end of the chain of inheritance. The numbers of a file may form a circle.
    private func root(of number: Int64) -> Int64 {
        var number = number
        for _ in 0..<entities.count {
            guard let parent = entities[number]?.parent, parent != 0, entities[parent] != nil else { return number }
            number = parent
        }
        return number
    }

    /// Returns the position of the table that contains an entity's objects.
    private func table(ofEntity number: Int64) -> Int? {
        let wanted = root(of: number)
        return roots.firstIndex { $0.number == wanted }
    }

    private func table(ofEntity name: String) -> Int? { roots.firstIndex { $0.names.contains(name) } }

    private func entityName(_ number: Int64) -> String {
        let name = entities[number]?.name ?? "entity \(number)"
        return model?.name(ofEntity: name) ?? name
    }

    private mutating func addTable(_ number: Int) {
        let root = roots[number]
        var table = Table(
            name: entityName(root.number), attributes: [], rowCount: root.cells.first?.count ?? 0)
        if root.hasChildren, let kinds = root.values("Z_ENT") {
            let values = kinds.map { kind -> Value in
                guard case .int(let entity) = kind else { return .string(table.name) }
                return .string(entityName(entity))
            }
            table.attributes.append(
                TableAttribute(name: names.take("entityName", in: number), type: .string, isOptional: false, values: values))
        }
        for (position, column) in root.table.columns.enumerated() where !Self.isInternal(column.name) {
            guard destination(of: column, in: root) == nil else { continue }
            table.attributes.append(attribute(column, root.cells[position], number))
        }
        let types = table.attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
        result.notes.append("\(table.name): \(table.rowCount) rows: \(types.joined(separator: ", "))")
        result.tables.append(table)
    }

    /// Whether a column is not a property: keys, versions, and the entity numbers beside references (`Z4_BOOK`).
    private static func isInternal(_ column: String) -> Bool {
        if column.hasPrefix("Z_FOK_") { return false }
        guard column.hasPrefix("Z"), !column.hasPrefix("Z_") else { return true }
        let rest = column.dropFirst().drop { $0.isASCII && $0.isNumber }
        return rest.hasPrefix("_") && rest.count < column.count - 1
    }

    // MARK: Attributes

    private mutating func attribute(_ column: SQLiteTable.Column, _ values: [Value], _ number: Int) -> TableAttribute {
        let root = roots[number]
        // The position of an object in an ordered relationship, beside the object's reference.
        if column.name.hasPrefix("Z_FOK_") {
            let relationship = String(column.name.dropFirst("Z_FOK_".count))
            let owner = model?.property(column: relationship, of: root.names)?.name ?? relationship.lowercased()
            return SQLiteFileReader.attribute(names.take(owner + "Order", in: number), column.declaredType, values)
        }
        let plain = String(column.name.dropFirst())
        let property = model?.property(column: plain, of: root.names)
        let name = names.take(property?.name ?? plain.lowercased(), in: number)
        var type: Int?
        if case .attribute(let found)? = property?.kind { type = found }
        var attribute = Self.converted(name, type, column.declaredType, values)
        if let property, property.isOptional || property.entity != result.tables.last?.name,
            root.hasChildren || property.isOptional
        {
            attribute.isOptional = true
        }
        return attribute
    }

    /// Converts values to the type that Core Data's number of a type means. Falls back to the type of the values.
    private static func converted(_ name: String, _ type: Int?, _ declared: String, _ values: [Value]) -> TableAttribute {
        func made(_ type: ColumnType, _ convert: (Value) -> Value?) -> TableAttribute? {
            var converted: [Value] = []
            for value in values {
                guard let value = value.isNull ? .null : convert(value) else { return nil }
                converted.append(value)
            }
            return TableAttribute(name: name, type: type, isOptional: values.contains(.null), values: converted)
        }
        func number(_ value: Value) -> Value? {
            switch value {
            case .int(let number): .double(Double(number))
            case .double: value
            default: nil
            }
        }
        let hasValues = values.contains { !$0.isNull }
        let found: TableAttribute? =
            switch (type, declared) {
            case (100, _): made(.int16) { ColumnType.int16.accepts($0, isOptional: false) ? $0 : nil }
            case (200, _): made(.int32) { ColumnType.int32.accepts($0, isOptional: false) ? $0 : nil }
            case (300, _): made(.int64) { ColumnType.int64.accepts($0, isOptional: false) ? $0 : nil }
            case (400, _), (500, _), (600, _): made(.double, number)
            case (700, _), (1200, _): made(.string) { if case .string = $0 { $0 } else { nil } }
            case (800, _): made(.bool) { if case .int(let flag) = $0 { .bool(flag != 0) } else { nil } }
            case (900, _), (nil, "TIMESTAMP"): made(.date, number)
            case (1000, _), (1800, _): made(.data) { if case .data = $0 { $0 } else { nil } }
            case (1100, _): made(.uuid, uuid)
            case (nil, "BLOB") where hasValues: made(.uuid, uuid)
            default: nil
            }
        return found ?? SQLiteFileReader.attribute(name, declared, values)
    }

    private static func uuid(_ value: Value) -> Value? {
        guard case .data(let data) = value, data.count == 16 else { return nil }
        return data.withUnsafeBytes { .uuid(UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
    }

    // MARK: Relationships

    /// Returns the position of the table that a column refers to; nil for an attribute.
    private func destination(of column: SQLiteTable.Column, in root: Root) -> Int? {
        guard column.declaredType == "INTEGER", !column.name.hasPrefix("Z_") else { return nil }
        let plain = String(column.name.dropFirst())
        if let property = model?.property(column: plain, of: root.names) {
            guard case .toOne(let destination, _) = property.kind else { return nil }
            return table(ofEntity: destination)
        }
        // The number of the destination is part of the name of the column beside it: `Z4_BOOK` beside `ZBOOK`.
        for other in root.table.columns where other.name.hasSuffix("_" + plain) && Self.isInternal(other.name) {
            let digits = other.name.dropFirst().prefix { $0.isASCII && $0.isNumber }
            if other.name.count == digits.count + plain.count + 2, let number = Int64(digits), let found = table(ofEntity: number)
            {
                return found
            }
        }
        guard indexes.contains("\(root.table.name)_\(column.name)_INDEX") else { return nil }
        return destinationByValues(plain, root.values(column.name) ?? [])
    }

    /// Returns the table whose keys contain all values of an indexed column, if its name occurs in the column's or if it is the only
    /// one.
    private func destinationByValues(_ column: String, _ values: [Value]) -> Int? {
        let keys = Set(values.filter { !$0.isNull })
        let candidates = roots.indices.filter { number in keys.allSatisfy { roots[number].rows[$0] != nil } }
        let named = candidates.filter { number in roots[number].names.contains { column.hasSuffix($0.uppercased()) } }
        if named.count == 1 { return named[0] }
        return candidates.count == 1 && !keys.isEmpty ? candidates[0] : nil
    }

    /// A column that is a to-one relationship.
    private struct Reference {
        /// The position of the column.
        var position: Int
        var destination: Int
        /// The name in the data set.
        var name: String
        /// The names of the relationship and its inverse in the model.
        var modelName: String?
        var modelInverse: String?
    }

    private mutating func nameReferences(_ number: Int) -> [Reference] {
        let root = roots[number]
        return root.table.columns.enumerated().compactMap { position, column in
            guard !Self.isInternal(column.name), let destination = destination(of: column, in: root) else { return nil }
            let plain = String(column.name.dropFirst())
            let property = model?.property(column: plain, of: root.names)
            var reference = Reference(
                position: position, destination: destination,
                name: names.take(property?.name ?? plain.lowercased(), in: number), modelName: property?.name)
            if case .toOne(_, let inverse)? = property?.kind { reference.modelInverse = inverse }
            return reference
        }
    }

    /// - Parameter all: The references of every table, among which are the inverses of one-to-one relationships.
    private mutating func addReferences(_ references: [Reference], _ number: Int, _ all: [[Reference]]) {
        for reference in references {
            var lost = 0
            let rows = rows(roots[number].cells[reference.position], in: reference.destination, &lost)
            let back = all[reference.destination].first { other in
                other.destination == number && other.modelName != nil && other.modelName == reference.modelInverse
            }
            let inverse = reference.modelInverse ?? PropertyNames.plural(ofTable: result.tables[number].name)
            result.tables[number].references.append(
                TableReference(
                    name: reference.name, inverse: back?.name ?? names.take(inverse, in: reference.destination),
                    destination: reference.destination, rows: rows))
            note("\(result.tables[number].name).\(reference.name) refers to \(result.tables[reference.destination].name)", lost)
        }
    }

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

    /// Adds a many-to-many relationship from its table: `Z_1TAGS` has the columns `Z_1NOTES` and `Z_4TAGS`, or `REFLEXIVE` for the
    /// second one if both ends are of one entity. A column contains keys of the entity with the number in its name.
    private mutating func addLink(_ table: SQLiteTable) throws {
        let columns = table.columns.enumerated().filter { !$1.name.hasPrefix("Z_FOK_") }
        guard columns.count == 2, let owner = Self.end(table.name) else { return }
        let ends = columns.map { Self.end($0.element.name) ?? (columns.count == 2 ? owner : nil) }
        guard let first = ends[0], let second = ends[1], let source = self.table(ofEntity: first.entity),
            let destination = self.table(ofEntity: second.entity)
        else { return }
        let cells = try table.values(in: database)
        var lost = 0
        let sources = rows(cells[columns[0].offset], in: source, &lost)
        let destinations = rows(cells[columns[1].offset], in: destination, &lost)
        let pairs = zip(sources, destinations).compactMap { source, destination in
            source < 0 || destination < 0 ? nil : Link.Pair(source: source, destination: destination)
        }
        // The column with the keys of an entity is named after the relationship that leads to the entity.
        let forward = spelled(second.name, in: source)
        let backward = spelled(first.name, in: destination)
        result.links.append(
            Link(
                name: names.take(forward, in: source), inverse: names.take(backward, in: destination), source: source,
                destination: destination, pairs: pairs))
        note(
            "\(table.name): \(pairs.count) links between \(result.tables[source].name) and \(result.tables[destination].name)"
                + (table.columns.count > 2 ? ", without their order" : ""), lost)
    }

    private func spelled(_ name: String, in table: Int) -> String {
        model?.property(column: name, of: roots[table].names)?.name ?? name.lowercased()
    }

    /// Splits `Z_4TAGS` into the number of an entity and the name of a relationship.
    private static func end(_ name: String) -> (entity: Int64, name: String)? {
        guard name.hasPrefix("Z_") else { return nil }
        let digits = name.dropFirst(2).prefix { $0.isASCII && $0.isNumber }
        guard let entity = Int64(digits), digits.count + 2 < name.count else { return nil }
        return (entity, String(name.dropFirst(2 + digits.count)))
    }
}
