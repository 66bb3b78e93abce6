import Datasets
import StoreInterface

/// The data of `storage`: one entity of seven columns, two of them strings, about 65 bytes per object.
enum RecordData {
    static let entity = "Record"
    /// The condition of the scan. About one object in 20 satisfies both parts.
    static let leastCount: Int64 = 500_000
    static let kind: Int64 = 3
    /// The index of the column that updates change.
    static let amount = 2

    static func make(_ count: Int, seed: UInt64) -> Dataset {
        var random = SeededNumbers(seed: seed)
        func column(_ name: String, type: ColumnType, _ make: (inout SeededNumbers) -> Value) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: false, values: (0..<count).map { _ in make(&random) })
        }
        let attributes = [
            column("count", type: .int32) { .int(Int64($0.below(1_000_000))) },
            column("kind", type: .int16) { .int(Int64($0.below(10))) },
            column("amount", type: .double) { .double(Double($0.below(100_000)) / 100) },
            column("flag", type: .bool) { .bool($0.below(2) == 0) },
            column("date", type: .date) { .double(Double($0.below(1_000_000_000))) },
            column("name", type: .string) { .string($0.word(8...16)) },
            column("note", type: .string) { .string($0.word(14...22)) },
        ]
        return Dataset(name: "records", tables: [Table(name: entity, attributes: attributes, rowCount: count)])
    }

    /// Returns the values of one object, for data that is generated while it is imported.
    static func values(_ random: inout SeededNumbers) -> [Value] {
        [
            .int(Int64(random.below(1_000_000))), .int(Int64(random.below(10))), .double(Double(random.below(100_000)) / 100),
            .bool(random.below(2) == 0), .double(Double(random.below(1_000_000_000))), .string(random.word(8...16)),
            .string(random.word(14...22)),
        ]
    }

    /// Returns the data after updates. `rows` are updated in their order, and each amount becomes the number of the update.
    static func updated(_ dataset: Dataset, _ rows: [Int]) -> Dataset {
        var result = dataset
        for (number, row) in rows.enumerated() { result.tables[0].attributes[amount].values[row] = .double(Double(number)) }
        return result
    }

    /// Returns the number of rows that satisfy the scan's condition.
    static func matching(_ dataset: Dataset) -> Int {
        let table = dataset.tables[0]
        return (0..<table.rowCount).count { row in
            guard case .int(let count) = table.attributes[0].values[row], case .int(let kind) = table.attributes[1].values[row]
            else { return false }
            return count >= leastCount && kind == Self.kind
        }
    }
}
