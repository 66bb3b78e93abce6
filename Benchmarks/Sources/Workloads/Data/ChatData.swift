import Datasets
import StoreInterface

/// The data of the chat workload: groups, and messages that each refer to a group, in the order of their groups.
public enum ChatData {
    public static let groups = 50
    public static let messages = 100

    /// Generates random groups and messages.
    public static func make(objects: Int = groups * messages, seed: UInt64) -> Dataset {
        var random = SeededNumbers(seed: seed)
        let each = max(1, objects / groups)
        let count = each * groups
        let names = (0..<groups).map { _ in Value.string(random.title(words: 2...3)) }
        let texts = (0..<count).map { _ in Value.string(random.title(words: 3...12)) }
        let dates = (0..<count).map { Value.double(800_000_000 + Double($0 % each) * 30 + Double(random.below(30))) }
        let group = TableReference(
            name: "group", inverse: "messages", destination: 0, rows: (0..<count).map { Int32($0 / each) })
        return Dataset(
            name: "chat",
            tables: [
                Table(name: "Group", attributes: [attribute("name", type: .string, values: names)], rowCount: groups),
                Table(
                    name: "Message",
                    attributes: [attribute("text", type: .string, values: texts), attribute("sent", type: .date, values: dates)],
                    references: [group], rowCount: count),
            ])
    }

    /// Uses the largest table that refers to another table as messages. Selects the 50 rows with the most referrers, and 100
    /// referrers of each. Throws ``DatasetError`` if no table refers to another.
    public static func make(from dataset: Dataset) throws -> Dataset {
        guard
            let number = dataset.tables.indices.filter({
                !dataset.tables[$0].references.isEmpty && !dataset.tables[$0].attributes.isEmpty
            })
            .max(by: { dataset.tables[$0].rowCount < dataset.tables[$1].rowCount })
        else { throw DatasetError("\(dataset.name): no table refers to another, so there are no groups for a chat") }
        let table = dataset.tables[number]
        let reference = table.references[0]
        var referrers: [Int32: [Int]] = [:]
        for (row, group) in reference.rows.enumerated() where group >= 0 { referrers[group, default: []].append(row) }
        let chosen = referrers.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(groups)
        let rows = chosen.flatMap { $0.value.prefix(messages) }
        let groupOfRow = chosen.enumerated().flatMap { index, group in
            Array(repeating: Int32(index), count: min(messages, group.value.count))
        }
        let far = dataset.tables[reference.destination]
        let groupName = far.name == table.name ? far.name + "Group" : far.name
        return Dataset(
            name: "\(table.name) by \(reference.name) of \(dataset.name)",
            tables: [
                Table(
                    name: groupName, attributes: far.attributes.map { picked($0, chosen.map { Int($0.key) }) },
                    rowCount: chosen.count),
                Table(
                    name: table.name, attributes: table.attributes.map { picked($0, rows) },
                    references: [
                        TableReference(name: reference.name, inverse: reference.inverse, destination: 0, rows: groupOfRow)
                    ], rowCount: rows.count),
            ])
    }

    private static func attribute(_ name: String, type: ColumnType, values: [Value]) -> TableAttribute {
        TableAttribute(name: name, type: type, isOptional: false, values: values)
    }

    private static func picked(_ attribute: TableAttribute, _ rows: [Int]) -> TableAttribute {
        TableAttribute(
            name: attribute.name, type: attribute.type, isOptional: attribute.isOptional,
            values: rows.map { attribute.values[$0] })
    }
}
