import StoreInterface
import StoreModel

/// The condition that a column's value is in a set.
final class ColumnMembership: Sendable {
    let column: ColumnIndex
    private let values: Set<Value>
    /// The comparisons that replace the set for a few constants of one class. They do not build values.
    private let comparisons: [ColumnComparison]
    private let hasNull: Bool

    /// The maximum number of constants for which scans of a page cost less than 64 lookups in the set.
    private static let fewValues = 8

    init(column: ColumnIndex, values: Set<Value>) {
        self.column = column
        self.values = values
        hasNull = values.contains(.null)
        // Doubles are excluded: a member is equal to itself, which NaN is not.
        let plain = values.allSatisfy { if case .double = $0 { false } else { true } }
        comparisons =
            plain && values.count <= Self.fewValues
            ? values.map { ColumnComparison(column: column, comparison: .equal, value: $0) } : []
    }

    func mask(_ page: ObjectPage, _ candidates: UInt64) throws(PageError) -> UInt64 {
        guard column.rawValue < page.columnCount else {
            return try page.olderMask(column, among: candidates) { values.contains($0) }
        }
        if !comparisons.isEmpty, Self.isPlain(page.section(column).code) {
            var rest = candidates
            for comparison in comparisons where rest != 0 && fits(comparison.value, page.section(column).code) {
                rest &= ~(try comparison.mask(page, rest))
            }
            return candidates & ~rest
        }
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) where values.contains(try page.value(slot, column)) {
            result |= 1 << UInt64(slot)
        }
        return result
    }

    private static func isPlain(_ code: ColumnCode) -> Bool {
        switch code {
        case .float, .double, .date: false
        default: true
        }
    }

    /// Returns whether a value has the column's storage class. Membership is equality of values: a constant of another class
    /// is never a member, though it may compare as equal.
    private func fits(_ value: Value, _ code: ColumnCode) -> Bool {
        switch (value, code) {
        case (.null, _), (.bool, .bool), (.uint, .uint64), (.reference, .reference), (.string, .string), (.data, .data),
            (.uuid, .uuid):
            true
        case (.int, .int8), (.int, .int16), (.int, .int32), (.int, .int64), (.int, .uint8), (.int, .uint16), (.int, .uint32): true
        default: false
        }
    }
}
