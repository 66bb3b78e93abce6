import SQLiteStore
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads a store of Core Data or SwiftData.
///
/// Each root entity becomes a table, and its sub-entities become entities that inherit from it. Names, types and the declaring entities
/// come from the model in the file. Without it they come from the tables: names in lowercase, relationships from the indexes that Core
/// Data creates for them, and all properties belong to root entities.
struct CoreDataFile {
    let database: DatabaseReader
    let name: String
    let tables: [SQLiteTable]
    let model: CoreDataModel?
    let indexes: Set<String>
    let external: ExternalData
    /// Whether values whose files are missing become null.
    let leavesOutMissingFiles: Bool
    let scratch: ScratchSpace?
    private(set) var entities: CoreDataEntities
    private(set) var roots: [CoreDataRoot] = []
    var names = PropertyNames(tableCount: 0)
    var result: Dataset

    static func isCoreData(_ tables: [SQLiteTable]) -> Bool {
        let names = Set(tables.map(\.name))
        return names.contains("Z_PRIMARYKEY") && names.contains("Z_METADATA")
    }

    init(
        _ database: DatabaseReader, _ tables: [SQLiteTable], path: String, name: String, leavesOutMissingFiles: Bool,
        scratch: ScratchSpace?
    ) throws {
        self.database = database
        external = ExternalData(store: path)
        self.leavesOutMissingFiles = leavesOutMissingFiles
        self.scratch = scratch
        self.tables = tables
        self.name = name
        result = Dataset(name: name, tables: [])
        var model: CoreDataModel?
        if tables.contains(where: { $0.name == "Z_MODELCACHE" }) {
            var cache: Data?
            try database.forEachRow("SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1") { row in
                if case .data(let data) = row.value(0) { cache = data }
            }
            model = cache.flatMap { CoreDataModel(cache: $0) }
        }
        self.model = model
        var rows: [CoreDataEntities.Row] = []
        try database.forEachRow("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT") { row in
            rows.append(.init(number: row.integer(0), name: row.text(1), parent: row.integer(2)))
        }
        let tableNames = Set(tables.map(\.name))
        entities = try CoreDataEntities(rows, model, file: name) { tableNames.contains("Z" + $0.uppercased()) }
        var indexes: Set<String> = []
        try database.forEachRow("SELECT name FROM sqlite_master WHERE type = 'index'") { indexes.insert($0.text(0)) }
        self.indexes = indexes
    }

    mutating func dataset() throws -> Dataset {
        result.notes.append(
            model == nil
                ? "a Core Data store without a readable model: names and types are those of its tables"
                : "a Core Data store, with its model")
        result.notes += entities.notes
        for family in entities.families { try addRoot(family) }
        guard !roots.isEmpty else { throw DatasetError("\(name): a Core Data store without entities") }
        names = PropertyNames(tableCount: roots.count)
        for number in roots.indices { try addTable(number) }
        let references = roots.indices.map { nameReferences($0) }
        // Before references, whose inverses have made-up names if there is no model.
        for table in tables where table.name.hasPrefix("Z_") { try addLink(table) }
        for number in roots.indices {
            addReferences(references[number], number: number, all: references)
            notePositionsOfNothing(in: number)
        }
        for number in roots.indices { addIndexes(to: number) }
        return result
    }

    // MARK: Entities

    private mutating func addRoot(_ family: CoreDataEntities.Family) throws {
        let head = family.members[0]
        guard let table = tables.first(where: { $0.name == "Z" + head.storedName.uppercased() }) else { return }
        let content = try table.content(in: database, order: "Z_PK", scratch: scratch)
        result.notes += table.columns.indices.compactMap { content.note(table, $0) }
        let cells = content.columns
        var unknown = 0
        let numbers = Dictionary(uniqueKeysWithValues: family.members.enumerated().map { ($1.number, $0) })
        let kinds = table.columns.firstIndex { $0.name == "Z_ENT" }.map { cells[$0] } ?? []
        let root = CoreDataRoot(
            family: family, table: table, cells: cells,
            kinds: kinds.map { kind in
                if case .int(let number) = kind, let member = numbers[number] { return member }
                unknown += 1
                return 0
            }, declarations: model?.declarations(in: family) ?? [:])
        roots.append(root)
        if unknown > 0 {
            result.notes.append("\(unknown) objects of \(head.name) have an unknown entity in Z_ENT; they became \(head.name)")
        }
    }

    private mutating func addTable(_ number: Int) throws {
        let root = roots[number]
        let members = root.family.members
        var table = Table(name: members[0].name, attributes: [], rowCount: root.rowCount)
        let used = Set(root.kinds)
        for (position, member) in members.enumerated() where member.isAbstract && used.contains(position) {
            result.notes.append("\(member.name) is abstract in the model, but has objects; it became an entity that is not")
        }
        table.isAbstract = members[0].isAbstract && !used.contains(0) && members.count > 1
        table.subentities = members.enumerated().dropFirst().map { position, member in
            TableSubentity(
                name: member.name, superentity: member.parent ?? 0, isAbstract: member.isAbstract && !used.contains(position))
        }
        if members.count > 1 { table.kinds = root.kinds.map { Int32($0) } }
        result.tables.append(table)
        try addAttributes(to: number)
        let attributes = result.tables[number].attributes
        let types = attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
        result.notes.append("\(table.name): \(table.rowCount) rows: \(types.joined(separator: ", "))")
        guard members.count > 1 else { return }
        let counts = Dictionary(root.kinds.map { ($0, 1) }, uniquingKeysWith: +)
        let list = members.enumerated().dropFirst().map { "\(counts[$0] ?? 0) \($1.name)" }
        result.notes.append("\(table.name) has subentities, as classes: \(list.joined(separator: ", "))")
        if root.declarations.isEmpty {
            result.notes.append(
                "which properties the subentities of \(table.name) declare is not known without a model: \(table.name) has all of them"
            )
        }
    }

    // MARK: Names

    /// Returns a name for a property. In a hierarchy, in which each name occurs once, a second one ends with its entity.
    mutating func take(_ wanted: String, of member: Int, in table: Int) -> String {
        let members = roots[table].family.members
        guard members.count > 1, !wanted.isEmpty, !names.isFree(wanted, in: table) else { return names.take(wanted, in: table) }
        let name = names.take("\(wanted)Of\(members[member].name)", in: table)
        result.notes.append(
            "\(members[member].name).\(wanted) is named \(name): another property of the hierarchy of \(members[0].name) has its name"
        )
        return name
    }
}

/// The table of a root entity, which has the objects of its sub-entities too.
struct CoreDataRoot {
    let family: CoreDataEntities.Family
    let table: SQLiteTable
    let cells: [ValueColumn]
    /// The row of each primary key.
    let rows: [Value: Int32]
    /// The entity of each row, as a position in the family.
    let kinds: [Int]
    /// The properties in the model by their names in capitals; empty without a model.
    let declarations: [String: [CoreDataDeclaration]]
    /// The properties in the columns.
    private(set) var columns: [CoreDataColumn] = []

    init(
        family: CoreDataEntities.Family, table: SQLiteTable, cells: [ValueColumn], kinds: [Int],
        declarations: [String: [CoreDataDeclaration]]
    ) {
        self.family = family
        self.table = table
        self.cells = cells
        let keys = table.columns.firstIndex { $0.name == "Z_PK" }.map { cells[$0] } ?? []
        rows = Dictionary(keys.enumerated().map { ($1, Int32($0)) }, uniquingKeysWith: { first, _ in first })
        self.kinds = kinds.isEmpty ? Array(repeating: 0, count: cells.first?.count ?? 0) : kinds
        self.declarations = declarations
        columns = assignedColumns()
    }

    var rowCount: Int { cells.first?.count ?? 0 }

    /// Returns the primary key of a row as text.
    func key(of row: Int) -> String {
        if case .int(let key)? = values("Z_PK")?[row] { "\(key)" } else { "in row \(row + 1)" }
    }

    func values(_ column: String) -> ValueColumn? { table.columns.firstIndex { $0.name == column }.map { cells[$0] } }

    /// Returns the entities of the objects in these rows.
    func kinds(of rows: some Sequence<Int32>) -> Set<Int> { Set(rows.lazy.filter { $0 >= 0 }.map { kinds[Int($0)] }) }

    /// Returns whether an object in a row is one of these entities.
    func isKind(_ row: Int, of owners: [Int]) -> Bool {
        owners.contains(0) || owners.contains { family.inherits(kinds[row], from: $0) }
    }
}
