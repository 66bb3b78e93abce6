import Datasets
import StoreInterface

/// The expected values of records that are generated from a seed. The records are generated again, one at a time, so that they
/// need not be kept in memory.
struct ExpectedRecords: Sendable {
    /// The checksum of all values after the updates.
    private(set) var checksum = Checksum()
    /// The number of records that satisfy the scan's condition.
    private(set) var matching = 0
    /// The sum of the counts of the picked rows, each counted as often as it was picked.
    private(set) var pickedSum = 0

    /// - Parameters:
    ///   - picks: The rows whose counts were read.
    ///   - updates: The rows whose amounts became the number of the update, in this order.
    init(_ count: Int, seed: UInt64, picks: [Int], updates: some Sequence<Int>) {
        var times: [Int: Int] = [:]
        for row in picks { times[row, default: 0] += 1 }
        var amounts: [Int: Double] = [:]
        for (number, row) in updates.enumerated() { amounts[row] = Double(number) }
        var random = SeededNumbers(seed: seed)
        for row in 0..<count {
            var values = RecordData.values(&random)
            if case .int(let number) = values[0], case .int(let kind) = values[1] {
                if number >= RecordData.leastCount, kind == RecordData.kind { matching += 1 }
                pickedSum += Int(number) * (times[row] ?? 0)
            }
            if let amount = amounts[row] { values[RecordData.amount] = .double(amount) }
            for (column, value) in values.enumerated() { checksum.add(row, column: column, value: value) }
        }
    }
}
