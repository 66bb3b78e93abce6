import StoreInterface
import StoreModel

extension ObjectPage {
    /// Returns the number of objects of a mask with a value in a column. O(1), except for pages of an older schema.
    public func valueCount(_ column: ColumnIndex, of mask: UInt64) throws(PageError) -> Int {
        guard column.rawValue < columnCount else {
            var count = 0
            for slot in SlotIterator(mask) where !(try value(slot, column).isNull) { count += 1 }
            return count
        }
        return (mask & ~section(column).nulls).nonzeroBitCount
    }

    /// Adds the numbers of a column, for the objects of a mask, without decoding each value: about 1 ns per object.
    ///
    /// Precondition: the objects are present. Columns that are not numeric add nothing.
    public func addTotals(
        _ column: ColumnIndex, of mask: UInt64, to state: inout AggregateState, _ aggregate: StoreAggregate
    ) throws(PageError) {
        // Reads a page of an older schema value by value.
        guard column.rawValue < columnCount else {
            for slot in SlotIterator(mask) { state.add(try value(slot, column), to: aggregate) }
            return
        }
        let section = section(column)
        let present = mask & ~section.nulls
        guard present != 0 else { return }
        let width = section.width
        switch section.code {
        case .int8, .int16, .int32, .int64:
            addIntegers(present, to: &state, aggregate, make: { .int($0) }) {
                base.signed(width: width, at: section.array + $0 * width)
            }
        case .uint8, .uint16, .uint32:
            addIntegers(present, to: &state, aggregate, make: { .int($0) }) {
                Int64(truncatingIfNeeded: base.unsigned(width: width, at: section.array + $0 * width))
            }
        case .uint64:
            addIntegers(present, to: &state, aggregate, make: { .uint($0) }) {
                base.unsigned(width: width, at: section.array + $0 * width)
            }
        case .double, .date:
            addDoubles(present, to: &state, aggregate) {
                Double(bitPattern: base.unsigned(width: width, at: section.array + $0 * width))
            }
        case .float:
            addDoubles(present, to: &state, aggregate) {
                Double(Float(bitPattern: UInt32(truncatingIfNeeded: base.unsigned(width: width, at: section.array + $0 * width))))
            }
        default: return
        }
    }

    @inline(__always)
    private func addIntegers<T: FixedWidthInteger>(
        _ present: UInt64, to state: inout AggregateState, _ aggregate: StoreAggregate, make: (T) -> Value, cell: (Int) -> T
    ) {
        switch aggregate {
        case .count, .countValues: state.count += present.nonzeroBitCount
        case .sum, .average:
            // Sums half words, so that sixty-four numbers of any size cannot overflow.
            var low: UInt64 = 0
            var high: Int64 = 0
            for slot in SlotIterator(present) {
                let number = cell(slot)
                low &+= UInt64(truncatingIfNeeded: number) & 0xFFFF_FFFF
                high &+= Int64(truncatingIfNeeded: number >> 32)
            }
            state.count += present.nonzeroBitCount
            state.integers += Int128(high) << 32 + Int128(low)
        case .minimum, .maximum:
            var best = cell(present.trailingZeroBitCount)
            let wantsLeast = if case .minimum = aggregate { true } else { false }
            for slot in SlotIterator(present & (present &- 1)) {
                let number = cell(slot)
                best = wantsLeast ? min(best, number) : max(best, number)
            }
            state.add(make(best), to: aggregate)
        }
    }

    @inline(__always)
    private func addDoubles(
        _ present: UInt64, to state: inout AggregateState, _ aggregate: StoreAggregate, cell: (Int) -> Double
    ) {
        switch aggregate {
        case .count, .countValues: state.count += present.nonzeroBitCount
        case .sum, .average:
            for slot in SlotIterator(present) { state.doubles += cell(slot) }
            state.count += present.nonzeroBitCount
        case .minimum, .maximum:
            for slot in SlotIterator(present) { state.add(.double(cell(slot)), to: aggregate) }
        }
    }
}
