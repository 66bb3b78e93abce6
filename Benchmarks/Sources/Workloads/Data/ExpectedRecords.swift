import Datasets
import StoreInterface

/// What records made from a seed must say in the end. They are made again for it, one at a time, so that nobody has to hold them.
struct ExpectedRecords: Sendable {
    /// Of all values, after the updates.
    private(set) var checksum = Checksum()
    /// How many satisfy the scan's condition.
    private(set) var matching = 0
    /// The sum of the counts of the picked rows, each as often as it was picked.
    private(set) var pickedSum = 0

    /// - Parameters:
    ///   - picks: rows whose counts were read.
    ///   - updates: rows whose amounts became the number of the update, in this order.
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
            for (column, value) in values.enumerated() { checksum.add(row, column, value) }
        }
    }
}
