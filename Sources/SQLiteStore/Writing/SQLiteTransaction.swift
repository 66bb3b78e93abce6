import Foundation
import StoreInterface
import StoreModel

/// A running write transaction on the writer's connection. The store holds the connection's lock.
final class SQLiteTransaction: StoreTransaction {
    let connection: SQLiteConnection
    let layout: SQLiteLayout
    let path: String
    var generation: Generation
    /// The generations of the layer that is being written.
    private var numbers = CommitNumbers.none

    /// The number of saves that the history keeps.
    static let historyLimit = 10_000

    init(connection: SQLiteConnection, layout: SQLiteLayout, path: String) throws {
        self.connection = connection
        self.layout = layout
        self.path = path
        generation = try connection.newestGeneration()
    }

    func apply(_ layer: Layer, changes: ChangeSet, numbers: CommitNumbers) throws {
        self.numbers = numbers
        for entity in layer.entityIndices {
            guard let rows = layer.entity(entity) else { continue }
            let insert = try connection.statement(layout.insert[entity])
            for number in rows.sortedPageNumbers {
                guard let page = rows.page(number) else { continue }
                for slot in SlotIterator(page.touched) {
                    guard let row = page[slot] else { continue }
                    let key = PageAddress.key(page: number, slot: slot)
                    switch row.kind {
                    case .insert: try self.insert(row, entity: entity, key: key, with: insert)
                    case .update: try update(row, entity: entity, key: key)
                    case .delete: try delete(entity, key)
                    }
                }
            }
        }
        for (link, pairs) in layer.links.enumerated(as: LinkIndex.self) where !pairs.isEmpty { try apply(pairs, link) }
        try record(changes, numbers.generation(of: layer.version))
    }

    // MARK: Objects

    private func insert(_ row: Row, entity: EntityIndex, key: ObjectKey, with statement: SQLiteStatement) throws {
        guard row.set.count == layout.types[entity].count else { return }
        try bind(row, entity: entity, key: key, to: statement)
        if try statement.runInsert() {
            if connection.changedRows == 0 { throw ignored(entity, key) }
            return
        }
        throw StoreError(
            .damaged,
            "\(path): \(layout.schema.entities[entity].name) \(key) cannot be inserted, because another object has its key: the counter "
                + "in strata_keys was turned back. Open the store again, and insert the object again")
    }

    private func bind(_ row: Row, entity: EntityIndex, key: ObjectKey, to statement: SQLiteStatement) throws {
        let columns = layout.schema.entities[entity].columns
        statement.bind(key, 1)
        statement.bind(numbers.generation(of: row.version).stored, 2)
        try row.withValues { _, values in
            for column in columns.indices {
                if !columns[column].accepts(values[column]) {
                    throw refusal(of: values[column], entity, ColumnIndex(rawValue: column))
                }
                statement.bind(columns[column].type.stored(values[column]), column + 3)
            }
        }
    }

    private func update(_ row: Row, entity: EntityIndex, key: ObjectKey) throws {
        let statement = try connection.statement(layout.update(entity, row.set))
        statement.bind(numbers.generation(of: row.version).stored, 1)
        var parameter = 2
        let columns = layout.schema.entities[entity].columns
        try row.withValues { set, values in
            try set.forEach { column in
                let value = values[column.rawValue]
                if !columns[column].accepts(value) { throw refusal(of: value, entity, column) }
                statement.bind(columns[column].type.stored(value), parameter)
                parameter += 1
            }
        }
        statement.bind(key, parameter)
        try statement.run()
        if connection.changedRows == 0 {
            if try exists(entity, key) { throw ignored(entity, key) }
            try insert(row, entity: entity, key: key, with: connection.statement(layout.insert[entity]))
        }
    }

    private func refusal(of value: Value, _ entity: EntityIndex, _ column: ColumnIndex) -> StoreError {
        let definition = layout.schema.entities[entity].columns[column]
        return StoreError(
            .unsupported,
            "\(layout.schema.entities[entity].name).\(definition.name) is \(definition.type.rawValue) and cannot hold \(value)")
    }

    private func delete(_ entity: EntityIndex, _ key: ObjectKey) throws {
        try run("DELETE FROM \(layout.tables[entity]) WHERE id = ?", key.stored)
        if connection.changedRows == 0, try exists(entity, key) { throw ignored(entity, key) }
        for (number, link) in layout.schema.links.enumerated(as: LinkIndex.self) {
            if link.source == entity { try run("DELETE FROM \(layout.links[number]) WHERE source = ?", key.stored) }
            if link.destination == entity { try run("DELETE FROM \(layout.links[number]) WHERE destination = ?", key.stored) }
        }
    }

    func run(_ sql: String, _ numbers: Int64...) throws {
        let statement = try connection.statement(sql)
        for (position, number) in numbers.enumerated() { statement.bind(number, position + 1) }
        try statement.run()
    }

    // MARK: Links

    /// Writes the pairs of a link, except new pairs with an end that does not exist.
    private func apply(_ pairs: LinkLayer, _ link: LinkIndex) throws {
        let ends = layout.schema.links[link]
        let insert = """
            INSERT OR IGNORE INTO \(layout.links[link]) SELECT ?1, ?2
            WHERE EXISTS (SELECT 1 FROM \(layout.tables[ends.source]) WHERE id = ?1)
            AND EXISTS (SELECT 1 FROM \(layout.tables[ends.destination]) WHERE id = ?2)
            """
        let delete = "DELETE FROM \(layout.links[link]) WHERE source = ? AND destination = ?"
        for source in pairs.forward.keys.sorted() {
            for (destination, linked) in pairs.forward[source] ?? [:] {
                try run(linked ? insert : delete, source.stored, destination.stored)
                if connection.changedRows == 0 { try checkPair(link, from: source, to: destination, linked: linked) }
            }
        }
    }
}
