import Datasets
import ObjectGraph
import StoreInterface

/// The error of a run whose result is wrong.
public struct VerificationError: Error, Sendable, CustomStringConvertible {
    public var description: String

    package init(_ description: String) { self.description = description }
}

/// Compares every value and every relationship of a reopened container with the imported data set.
struct Verification: Sendable {
    let dataset: Dataset
    let model: DatasetModel
    let ids: [[ObjectID]]

    /// Throws ``VerificationError`` at the first difference.
    func run(_ container: PersistentContainer) async throws {
        for number in dataset.tables.indices {
            let size = 4096
            for start in stride(from: 0, to: max(1, ids[number].count), by: size) {
                // One context per batch, so that checking a large file does not fill the memory.
                let context = await container.newBackgroundContext(name: "verification")
                try await context.perform { context throws -> Void in
                    if start == 0 { try checkCount(number, context) }
                    try checkObjects(number, rows: start..<min(ids[number].count, start + size), in: context)
                }
            }
        }
        let context = await container.newBackgroundContext(name: "verification")
        try await context.perform { context throws -> Void in
            for (number, table) in dataset.tables.enumerated() {
                for reference in table.references { try checkInverse(reference, number: number, in: context) }
            }
            for link in dataset.links { try check(link, context) }
        }
    }

    private func checkCount(_ number: Int, _ context: ManagedObjectContext) throws {
        let table = dataset.tables[number]
        let count = try context.count(EntityFetchRequest(table.name))
        guard count == table.rowCount, ids[number].count == table.rowCount else {
            throw VerificationError("\(table.name): \(count) objects in the store, \(table.rowCount) rows imported")
        }
    }

    private func checkObjects(_ number: Int, rows: Range<Int>, in context: ManagedObjectContext) throws {
        let table = dataset.tables[number]
        let attributes = model.entities[number].attributes
        for row in rows {
            let object = context.object(with: ids[number][row])
            for (attribute, column) in zip(attributes, table.attributes) where object[attribute: attribute] != column.values[row]
            {
                throw VerificationError(
                    "\(table.name).\(column.name), row \(row): \(object[attribute: attribute]) in the store, "
                        + "\(column.values[row]) imported")
            }
            for reference in table.references {
                let expected = reference.rows[row]
                let value: Value = expected < 0 ? .null : .reference(ids[reference.destination][Int(expected)].key)
                guard object[reference.name] == value else {
                    throw VerificationError(
                        "\(table.name).\(reference.name), row \(row): \(object[reference.name]) in the store, \(value) imported")
                }
            }
        }
    }

    private func checkInverse(_ reference: TableReference, number: Int, in context: ManagedObjectContext) throws {
        var expected: [Int32: [ObjectKey]] = [:]
        for (row, destination) in reference.rows.enumerated() where destination >= 0 {
            expected[destination, default: []].append(ids[number][row].key)
        }
        // In a one-to-one relationship, the inverse is a reference too.
        let isToOne = dataset.tables[reference.destination].references.contains { $0.name == reference.inverse }
        for row in ids[reference.destination].indices {
            let object = context.object(with: ids[reference.destination][row])
            let found =
                isToOne
                ? [object.relatedObject(reference.inverse)].compactMap(\.self) : object.relatedObjects(reference.inverse)
            guard found.map(\.objectID.key).sorted() == (expected[Int32(row)] ?? []).sorted() else {
                throw VerificationError(
                    "\(dataset.tables[reference.destination].name).\(reference.inverse), row \(row): \(found.count) objects in the "
                        + "store, \(expected[Int32(row)]?.count ?? 0) imported")
            }
        }
    }

    private func check(_ link: Link, _ context: ManagedObjectContext) throws {
        try checkEnd(
            link.name, table: link.source, far: link.destination,
            partners: Dictionary(grouping: link.pairs, by: \.source).mapValues { $0.map(\.destination) }, in: context)
        try checkEnd(
            link.inverse, table: link.destination, far: link.source,
            partners: Dictionary(grouping: link.pairs, by: \.destination).mapValues { $0.map(\.source) }, in: context)
    }

    private func checkEnd(
        _ name: String, table: Int, far: Int, partners: [Int32: [Int32]], in context: ManagedObjectContext
    ) throws {
        for row in ids[table].indices {
            let found = context.object(with: ids[table][row]).relatedObjects(name).map(\.objectID.key).sorted()
            guard found == (partners[Int32(row)] ?? []).map({ ids[far][Int($0)].key }).sorted() else {
                throw VerificationError("\(dataset.tables[table].name).\(name), row \(row): other partners than were imported")
            }
        }
    }
}
