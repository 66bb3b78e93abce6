import Foundation
import StoreInterface
import StoreModel

/// Migrates a file to a changed schema, in the transaction that opens it (S163).
///
/// Tables whose columns differ are created anew and filled from the old tables. The other tables stay, and the indexes are
/// adapted. This takes O(rows of the changed entities), because SQLite's `ALTER TABLE` can neither make a column optional nor
/// change its type.
struct SQLiteMigration {
    private let connection: SQLiteConnection
    private let old: SQLiteLayout
    private let new: SQLiteLayout
    private let evolution: SchemaEvolution
    private let path: String
    /// The prefix of object ids in errors.
    private let name: String
    /// The temporary names of the old tables, per entity and then per link, while the new tables are filled. No other table
    /// has such a name.
    private let aside: [String]

    /// Migrates a file from the schema `stored` to the schema of `layout`, through the schemas between them.
    ///
    /// Called inside the transaction that opens the file. Does nothing if the file already has the schema of `layout`.
    /// - Throws: `StoreError` `.schemaTooNew`, `.schemaMismatch`. The caller rolls back.
    static func run(
        _ connection: SQLiteConnection, from stored: StoreSchema, to layout: SQLiteLayout, path: String, name: String
    ) throws {
        let wanted = layout.schema.withoutHints
        let recorded = try SQLiteFile.recorded(stored, in: connection)
        let way = try SchemaPath(from: recorded, to: layout.schema, path: path)
        let isChanged = stored != wanted || !way.steps.isEmpty
        let isRecorded = way.inverses == recorded.inverses && way.destinations == recorded.destinations
        guard isChanged || !isRecorded else { return }
        try SQLiteLossCount(connection: connection, layout: SQLiteLayout(stored)).check(way.losses, path: path)
        try SQLiteFile.write(way.inverses, connection)
        try SQLiteFile.write(way.destinations, connection)
        let isContradicted = !way.losses.isEmpty || recorded.destinations?.isWidened(by: way.destinations) == true
        if isContradicted { try SQLiteFile.countPairing(connection) }
        // Stores that have the file open compare this number to notice a migration, which need not change a table.
        if isChanged || isContradicted {
            try connection.run("PRAGMA schema_version = \((connection.integer("PRAGMA schema_version") ?? 0) + 1)")
        }
        guard isChanged else { return }
        var current = stored
        for (number, step) in way.steps.enumerated() {
            let schema = step.schema.withoutHints
            try SQLiteMigration(
                connection, from: current, to: SQLiteLayout(step.schema), step.evolution, path: path, name: name
            ).run(isLast: number == way.steps.count - 1)
            try SQLiteFile.write(schema, after: current, connection)
            current = schema
        }
        if current != wanted { try SQLiteFile.write(wanted, after: current, connection) }
        try SQLiteFile.write(ExchangedNames(of: layout.schema), connection)
    }

    private init(
        _ connection: SQLiteConnection, from old: StoreSchema, to new: SQLiteLayout, _ evolution: SchemaEvolution, path: String,
        name: String
    ) throws {
        self.connection = connection
        self.old = SQLiteLayout(old)
        self.new = new
        self.evolution = evolution
        self.path = path
        self.name = name
        let found = try connection.texts("SELECT name FROM sqlite_master")
        var taken = Set((found + (new.tables + new.links).map(SQLiteLayout.unquoted)).map { $0.lowercased() })
        aside = (0..<(self.old.tables + self.old.links).count).map { number in
            SQLiteLayout.quoted(SQLiteLayout.unique("strata_old_\(number)", &taken))
        }
    }

    /// - Parameter isLast: Whether the step leads to the model. A constraint that a later step takes back refuses nothing.
    private func run(isLast: Bool) throws {
        // Otherwise renaming a table would change the foreign keys that refer to it.
        try connection.run("PRAGMA legacy_alter_table = ON")
        defer { try? connection.run("PRAGMA legacy_alter_table = OFF") }
        let kept = keptTables()
        let foreign = try SQLiteForeignParts(connection, of: recreatedTables(kept), from: old, to: new, path: path)
        try dropIndexes(kept)
        try moveTables(kept)
        try fillEntities(kept)
        try fillLinks(kept)
        for (number, table) in (old.tables + old.links).enumerated() where !kept.contains(table) {
            try connection.runScript("DROP TABLE \(aside[number])")
        }
        let known = try Set(connection.texts("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
        for text in new.indexes where !known.contains(text) { try connection.runScript(text) }
        try foreign.restoreIndexes()
        if isLast { try checkUnique() }
        try moveKeys()
        try moveHistory()
    }

    /// Drops the indexes of the old schema that the new one lacks. The indexes of another program stay.
    private func dropIndexes(_ kept: Set<String>) throws {
        let own = Set(old.indexes)
        let wanted = Set(new.indexes)
        let found = try connection.texts("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
        let names = try connection.texts("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
        for (name, text) in zip(names, found) where own.contains(text) {
            // A kept table keeps the indexes that the new schema has too.
            if wanted.contains(text), kept.contains(where: { text.contains(" ON \($0) (") }) { continue }
            try connection.runScript("DROP INDEX \(SQLiteLayout.quoted(name))")
        }
    }

    /// Returns the quoted names of the tables that keep their name, columns and objects.
    private func keptTables() -> Set<String> {
        var kept: Set<String> = []
        let before = old.entityTables
        for (number, text) in new.entityTables.enumerated(as: EntityIndex.self) {
            let change = evolution.entities[number]
            guard let source = change.source, before[source] == text,
                change.columns.enumerated(as: ColumnIndex.self).allSatisfy({ $1.source == $0 && $1.fill == nil })
            else { continue }
            kept.insert(new.tables[number])
        }
        let linksBefore = old.linkTables
        for (number, text) in new.linkTables.enumerated(as: LinkIndex.self) {
            if let change = evolution.links[number], !change.isReversed, linksBefore[change.source] == text {
                kept.insert(new.links[number])
            }
        }
        return kept
    }

    /// Returns the tables whose objects or pairs move to a new table.
    private func recreatedTables(_ kept: Set<String>) -> [SQLiteForeignParts.Table] {
        var tables: [SQLiteForeignParts.Table] = []
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            guard let source = change.source, !kept.contains(new.tables[number]) else { continue }
            let columns = ["id", "version"].map(SQLiteLayout.quoted) + old.columns[source]
            tables.append(.init(old: old.tables[source], new: new.tables[number], columns: columns))
        }
        for (number, change) in evolution.links.enumerated(as: LinkIndex.self) {
            guard let change, !kept.contains(new.links[number]) else { continue }
            let columns = ["source", "destination"].map(SQLiteLayout.quoted)
            tables.append(.init(old: old.links[change.source], new: new.links[number], columns: columns))
        }
        return tables
    }

    /// Renames the old tables and creates the new ones.
    private func moveTables(_ kept: Set<String>) throws {
        for (number, table) in (old.tables + old.links).enumerated() where !kept.contains(table) {
            try connection.runScript("ALTER TABLE \(table) RENAME TO \(aside[number])")
        }
        for (table, text) in zip(new.tables + new.links, new.entityTables + new.linkTables) where !kept.contains(table) {
            try connection.runScript(text)
        }
    }

    private func fillEntities(_ kept: Set<String>) throws {
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            guard let source = change.source, !kept.contains(new.tables[number]) else { continue }
            var values: [Value] = []
            let terms = zip(change.columns, new.schema.entities[number].columns).map { column, definition -> String in
                if let fill = column.fill { values.append(definition.type == .float ? fill.asFloat : fill) }
                switch (column.source, column.fill) {
                case (let place?, nil): return old.columns[source][place]
                case (let place?, _): return "COALESCE(\(old.columns[source][place]), ?)"
                case (nil, nil): return "NULL"
                case (nil, _): return "?"
                }
            }
            let statement = try connection.statement(
                "INSERT INTO \(new.tables[number]) (\((["id", "version"] + new.columns[number]).joined(separator: ", "))) "
                    + "SELECT \((["id", "version"] + terms).joined(separator: ", ")) FROM \(aside[source.rawValue])")
            statement.bind(values)
            try statement.run()
        }
    }

    private func fillLinks(_ kept: Set<String>) throws {
        for (number, change) in evolution.links.enumerated(as: LinkIndex.self) {
            guard let change, !kept.contains(new.links[number]) else { continue }
            let ends = change.isReversed ? "destination, source" : "source, destination"
            try connection.runScript(
                "INSERT INTO \(new.links[number]) (source, destination) "
                    + "SELECT \(ends) FROM \(aside[old.tables.count + change.source.rawValue])")
        }
    }

    /// Checks that no two objects have the same value of a unique attribute or index. Neither nulls nor NaN ever conflict.
    private func checkUnique() throws {
        for (number, entity) in new.schema.entities.enumerated(as: EntityIndex.self)
        where evolution.entities[number].source != nil {
            let single = entity.columnIndices.filter { entity.columns[$0].index == .unique }.map { [$0] }
            for columns in single + entity.indexes.filter({ $0.kind == .unique }).map(\.columns) {
                let names = columns.map { new.columns[number][$0] }
                var conditions = columns.map { column in
                    // NaN is stored as text, and equals nothing.
                    entity.columns[column].type.isFloating
                        ? "typeof(\(new.columns[number][column])) = 'real'" : "\(new.columns[number][column]) IS NOT NULL"
                }
                if let types = entity.types(having: columns), let column = entity.typeColumn {
                    let list = types.sorted().map(String.init).joined(separator: ", ")
                    conditions.append("\(new.columns[number][column]) IN (\(list))")
                }
                let terms = names.joined(separator: ", ")
                let statement = try connection.statement(
                    "SELECT MIN(id), MAX(id), \(terms) FROM \(new.tables[number]) WHERE \(conditions.joined(separator: " AND ")) "
                        + "GROUP BY \(terms) HAVING COUNT(*) > 1 LIMIT 1")
                defer { statement.reset() }
                guard try statement.step() else { continue }
                let values = columns.enumerated().map { place, column in
                    statement.value(place + 2, entity.columns[column].type) ?? statement.storedValue(place + 2)
                }
                throw StoreError.duplicate(
                    values, of: columns, entity: number, in: new.schema,
                    keys: [ObjectKey(stored: statement.integer(0)), ObjectKey(stored: statement.integer(1))], store: name,
                    path: path)
            }
        }
    }

    /// Moves the counters of leased keys, which are stored by the entity's position.
    private func moveKeys() throws {
        let next = try old.schema.entityIndices.map { entity in
            try connection.integer("SELECT next FROM strata_keys WHERE entity = ?", [.int(Int64(entity.rawValue))])
        }
        try connection.runScript("DELETE FROM strata_keys")
        try connection.removeMeta(SQLiteFreeKeys.prefix)
        for (number, change) in evolution.entities.enumerated(as: EntityIndex.self) {
            let first = change.source.flatMap { next[$0] } ?? Int64(PageAddress.slots)
            try connection.runScript("INSERT INTO strata_keys (entity, next) VALUES (\(number), \(first))")
        }
    }
}

// MARK: The history

extension SQLiteMigration {
    /// Rewrites the history if positions change, because it names entities, columns and links by position. O(saves in the history).
    /// A row that cannot be decoded stays, and ``SQLiteStore/verify()`` reports it.
    private func moveHistory() throws {
        let isInPlace =
            zip(old.schema.entityIndices, evolution.entities).allSatisfy { number, change in
                change.source == number
                    && zip(old.schema.entities[number].columnIndices, change.columns).allSatisfy { $1.source == $0 }
            } && zip(old.schema.linkIndices, evolution.links).allSatisfy { $1?.source == $0 && $1?.isReversed == false }
            && new.tables.count >= old.tables.count && new.links.count >= old.links.count
            && old.schema.entityIndices.allSatisfy { new.columns[$0].count >= old.columns[$0].count }
        guard !isInPlace else { return }
        let generations = try connection.texts("SELECT generation FROM strata_history")
        let entities = Dictionary(
            evolution.entities.indices(as: EntityIndex.self).compactMap { number in
                evolution.entities[number].source.map { ($0, number) }
            },
            uniquingKeysWith: { first, _ in first })
        for generation in generations {
            let save = Value.int(Int64(generation) ?? 0)
            guard
                let text = try connection.texts("SELECT changes FROM strata_history WHERE generation = ?", [save]).first,
                let changes = try? HistoryText.changes(text, path)
            else { continue }
            let moved = changes.translated { entity in
                entities[entity].map { ($0, positions(of: old.schema.entities[entity], in: evolution.entities[$0])) }
            } link: { link in
                let links = evolution.links
                guard let number = links.indices(as: LinkIndex.self).first(where: { links[$0]?.source == link }) else {
                    return nil
                }
                return (number, links[number]?.isReversed ?? false)
            }
            let update = try connection.statement("UPDATE strata_history SET changes = ? WHERE generation = ?")
            update.bind([.string(try HistoryText.text(moved)), save])
            try update.run()
        }
    }

    /// Returns, per column of the old entity, its position in the new one.
    private func positions(of entity: EntitySchema, in change: SchemaEvolution.Entity) -> [ColumnIndex?] {
        entity.columnIndices.map { column in
            change.columns.indices(as: ColumnIndex.self).first { change.columns[$0].source == column }
        }
    }
}

extension Value {
    /// The value, with a double rounded to the precision of a float.
    fileprivate var asFloat: Value {
        if case .double(let number) = self { .double(Double(Float(number))) } else { self }
    }
}
