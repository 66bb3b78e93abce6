import SQLiteStore
import StoreInterface
import StoreModel

/// Reads any SQLite file. A table becomes an entity, a row an object, and a foreign key a to-one relationship. A table becomes
/// a many-to-many relationship if its primary key is exactly two foreign keys, it has no other columns, and no table refers to it.
///
/// Foreign keys of several columns stay attributes. Types come from the declarations and are checked against the values. Virtual tables,
/// views, and tables with more columns than an entity can have are left out. Notes say so.
public enum SQLiteFile {
    /// Reads a file. Throws ``DatasetError`` if it is not a SQLite file, or if a value of a Core Data store is in a file that is missing.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - options: The user's choices.
    public static func read(_ path: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        do {
            let database = try DatabaseReader(path: path)
            let name = path.split(separator: "/").last.map(String.init) ?? path
            return try database.reading {
                let catalog = try SQLiteCatalog(database)
                if CoreDataFile.isCoreData(catalog.tables) {
                    try options.checkIsForCoreData(path)
                    var file = try CoreDataFile(
                        database, catalog.tables, path: path, name: name,
                        leavesOutMissingFiles: options.leavesOutMissingFiles, scratch: options.scratch)
                    return try file.dataset()
                }
                var reader = try SQLiteFileReader(database, catalog, name: name, options: options)
                return try reader.dataset()
            }
        } catch let error as StoreError {
            throw DatasetError(error.message)
        }
    }
}

extension SQLiteFile {
    /// Returns whether a database has a table. Leaves the file and its folder as they are.
    /// - Throws: ``DatasetError`` if the file cannot be read.
    public static func hasTable(_ table: String, in path: String) throws -> Bool {
        do {
            let database = try DatabaseReader(path: path)
            return try database.reading {
                var isFound = false
                try database.forEachRow("SELECT name FROM sqlite_master WHERE type = 'table'") { row in
                    if row.text(0) == table { isFound = true }
                }
                return isFound
            }
        } catch let error as StoreError {
            throw DatasetError(error.message)
        }
    }
}

/// Makes a data set of the tables of a file.
struct SQLiteFileReader {
    private let database: DatabaseReader
    private let options: DatasetOptions
    private let entities: [SQLiteTable]
    /// The tables that become many-to-many relationships.
    private let joins: [SQLiteTable]
    private var references: SQLiteReferences
    private var names: PropertyNames
    private var result: Dataset
    /// The names of the properties of each table by their columns in lowercase.
    private var properties: [[String: String]]

    init(_ database: DatabaseReader, _ catalog: SQLiteCatalog, name: String, options: DatasetOptions) throws {
        self.database = database
        self.options = options
        result = Dataset(name: name, tables: [], notes: catalog.notes)
        let included = try options.included(catalog.tables.map(\.name), of: name)
        var tables: [SQLiteTable] = []
        for table in catalog.tables where included.contains(table.name) {
            if table.columns.count > EntitySchema.maximumColumns {
                result.notes.append(
                    "the table \(table.name) is left out: it has \(table.columns.count) columns, and an entity at most "
                        + "\(EntitySchema.maximumColumns)")
            } else {
                tables.append(table)
            }
        }
        joins = options.makesReferences ? SQLiteReferences.joins(among: tables) : []
        let joinNames = Set(joins.map(\.name))
        entities = tables.filter { !joinNames.contains($0.name) }
        guard !entities.isEmpty else { throw DatasetError("\(name): a SQLite file without tables that can be imported") }
        references = try SQLiteReferences(entities, in: database, scratch: options.scratch)
        names = PropertyNames(tableCount: entities.count)
        properties = entities.map { _ in [:] }
    }

    mutating func dataset() throws -> Dataset {
        var found = try entities.indices.map { try options.makesReferences ? references.references(of: $0) : [] }
        for number in entities.indices { try addTable(number, found[number]) }
        for number in entities.indices {
            for reference in found[number] { add(reference, number: number) }
        }
        for join in joins { try addLink(join) }
        // After all other names, which do not depend on values that are lost.
        for number in entities.indices {
            for reference in found[number] where reference.lost > 0 { try addKeys(reference, number: number) }
            found[number] = []
        }
        for number in entities.indices { addIndexes(number) }
        return result
    }

    // MARK: Attributes

    private mutating func addTable(_ number: Int, _ found: [SQLiteReferences.Reference]) throws {
        let table = entities[number]
        result.tables.append(Table(name: table.name, attributes: [], rowCount: references.contents[number].rowCount))
        var notes: [String] = []
        for column in table.columns.indices where !found.contains(where: { $0.column == column }) {
            try addAttribute(column, number: number, notes: &notes)
        }
        let made = result.tables[number]
        let types = made.attributes.map { "\($0.name) \($0.type.rawValue)\($0.isOptional ? "?" : "")" }
        result.notes.append("\(table.name): \(made.rowCount) rows: \(types.joined(separator: ", "))")
        result.notes += notes
        for keys in table.compositeKeys {
            result.notes.append(
                "\(table.name): the foreign key (\(keys.map(\.column).joined(separator: ", "))) to \(keys[0].table) has several columns, "
                    + "which stay attributes")
        }
        guard options.makesReferences else { return }
        for key in table.foreignKeys {
            guard let column = table.column(named: key.column), !found.contains(where: { $0.column == column }) else { continue }
            result.notes.append(
                "\(table.name).\(key.column) stays an attribute: \(key.table) is no entity with one key that it could refer to")
        }
    }

    private mutating func addAttribute(_ column: Int, number: Int, notes: inout [String]) throws {
        let table = entities[number]
        let content = references.contents[number]
        let description = table.columns[column]
        let values = content.columns[column]
        var attribute = try SQLiteTypes.attribute(
            names.take(description.name, in: number), declared: description.declaredType, values: values)
        let isKey = description.keyPosition > 0 || description.isNotNull
        attribute.isOptional = !isKey || values.contains(.null)
        if let text = description.defaultText, let value = SQLiteTypes.literal(text, attribute.type) {
            attribute.defaultValue = value
        }
        properties[number][description.name.lowercased()] = attribute.name
        result.tables[number].attributes.append(attribute)
        if let note = content.note(table, column) {
            notes.append(note)
        } else if let note = SQLiteTypes.note(attribute, values) {
            notes.append("\(table.name).\(description.name): \(note)")
        }
    }

    /// Keeps the column of a reference, because some of its keys are those of no row.
    private mutating func addKeys(_ reference: SQLiteReferences.Reference, number: Int) throws {
        var notes: [String] = []
        // The index belongs to the reference.
        let property = properties[number][entities[number].columns[reference.column].name.lowercased()]
        try addAttribute(reference.column, number: number, notes: &notes)
        let column = entities[number].columns[reference.column].name
        let attribute = result.tables[number].attributes.count - 1
        result.notes.append(
            "\(entities[number].name).\(column) is kept as \(result.tables[number].attributes[attribute].name), with all keys")
        result.notes += notes
        properties[number][column.lowercased()] = property
    }

    // MARK: Relationships

    private mutating func add(_ reference: SQLiteReferences.Reference, number: Int) {
        let table = entities[number]
        let column = table.columns[reference.column].name
        var made = TableReference(
            name: names.take(PropertyNames.relationship(forColumn: column), in: number),
            inverse: names.take(PropertyNames.plural(ofTable: table.name), in: reference.destination.table),
            destination: reference.destination.table, rows: reference.rows)
        switch reference.onDelete {
        case "CASCADE": made.inverseDeleteRule = .cascade
        case "RESTRICT": made.inverseDeleteRule = .deny
        default: break
        }
        properties[number][column.lowercased()] = made.name
        result.tables[number].references.append(made)
        result.lostReferences += reference.lost
        result.notes.append(
            "\(table.name).\(column) refers to \(entities[reference.destination.table].name)"
                + (reference.lost == 0 ? "" : "; \(reference.lost) references to nothing became null"))
    }

    /// Adds the rows of a join table as pairs.
    private mutating func addLink(_ join: SQLiteTable) throws {
        let ends = try references.ends(of: join)
        let (source, destination) = (ends[0].table, ends[1].table)
        var known: Set<Link.Pair> = []
        let pairs = zip(ends[0].rows, ends[1].rows).compactMap { source, destination -> Link.Pair? in
            let pair = Link.Pair(source: source, destination: destination)
            return source >= 0 && destination >= 0 && known.insert(pair).inserted ? pair : nil
        }
        let lost = ends[0].rows.count - pairs.count
        result.lostReferences += lost
        result.links.append(
            Link(
                name: names.take(PropertyNames.plural(ofTable: entities[destination].name), in: source),
                inverse: names.take(PropertyNames.plural(ofTable: entities[source].name), in: destination),
                source: source, destination: destination, pairs: pairs))
        result.notes.append(
            "\(join.name): \(pairs.count) links between \(entities[source].name) and \(entities[destination].name)"
                + (lost == 0 ? "" : "; \(lost) rows that refer to nothing, or to what another row refers to, are left out"))
    }

    // MARK: Indexes

    private mutating func addIndexes(_ number: Int) {
        for index in entities[number].indexes {
            let names = index.columns.compactMap { properties[number][$0.lowercased()] }
            guard names.count == index.columns.count else { continue }
            result.tables[number].addIndex(names, isUnique: index.isUnique, notes: &result.notes)
        }
    }
}
