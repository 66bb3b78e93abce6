import StoreInterface
import StoreModel

/// A comparison of a column with a constant. It is a class, so that using it for each page does not count references to its
/// parts.
final class ColumnComparison: Sendable {
    let column: ColumnIndex
    let comparison: StorePredicate.Comparison
    let value: Value
    private let onNull: Bool
    /// The bytes of a string (UTF-8), data or UUID constant.
    private let bytes: [UInt8]

    init(column: ColumnIndex, comparison: StorePredicate.Comparison, value: Value) {
        self.column = column
        self.comparison = comparison
        self.value = value
        onNull = StorePredicate.compare(.null, comparison, to: value)
        bytes =
            switch value {
            case .string(let text): Array(text.utf8)
            case .data(let data): Array(data)
            case .uuid(let uuid): withUnsafeBytes(of: uuid.uuid) { Array($0) }
            default: []
            }
    }

    func mask(_ page: ObjectPage, _ candidates: UInt64) throws(PageError) -> UInt64 {
        if column.rawValue < page.columnCount { return try mask(page, section: page.section(column), among: candidates) }
        if let section = page.olderSection(column) { return try mask(page, section: section, among: candidates) }
        return try page.olderMask(column, among: candidates) { StorePredicate.compare($0, comparison, to: value) }
    }

    @inline(__always)
    private func mask(
        _ page: ObjectPage, section: ObjectPage.Section, among candidates: UInt64
    ) throws(PageError) -> UInt64 {
        let nulls = onNull ? section.nulls & candidates : 0
        let rest = candidates & ~section.nulls
        guard rest != 0 else { return nulls }
        switch (section.code, value) {
        case (.bool, _):
            let bits = page.base.number(UInt64.self, at: section.array)
            let whenTrue = StorePredicate.compare(.bool(true), comparison, to: value) ? bits : 0
            let whenFalse = StorePredicate.compare(.bool(false), comparison, to: value) ? ~bits : 0
            return nulls | rest & (whenTrue | whenFalse)
        case (.int8, .int(let number)), (.int16, .int(let number)), (.int32, .int(let number)), (.int64, .int(let number)):
            return nulls | rest & signed(page, section: section, constant: number)
        case (.uint8, .int(let number)), (.uint16, .int(let number)), (.uint32, .int(let number)):
            return nulls | rest & small(page, section: section, constant: number)
        case (.uint64, .uint(let number)):
            return nulls | rest & unsigned(page, section: section, constant: number)
        case (.reference, .reference(let key)):
            return nulls | rest & unsigned(page, section: section, constant: key.rawValue)
        case (.double, .double(let number)), (.date, .double(let number)):
            return nulls | rest & doubles(page, section: section, constant: number)
        case (.float, .double(let number)):
            return nulls | rest & floats(page, section: section, constant: number)
        case (.string, .string), (.data, .data):
            return nulls | (try heap(page, section: section, among: rest))
        case (.uuid, .uuid) where section.width != 0:
            return nulls | uuids(page, section: section, among: rest)
        case (_, .null):
            // All values that are not null compare with null in the same way, so that a large value need not be read.
            return nulls | (StorePredicate.compare(.bool(true), comparison, to: .null) ? rest : 0)
        default:
            return nulls | (try any(page, rest))
        }
    }

    /// Compares with the reference implementation, for rarely compared pairs of types.
    private func any(_ page: ObjectPage, _ candidates: UInt64) throws(PageError) -> UInt64 {
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) where StorePredicate.compare(try page.value(slot, column), comparison, to: value) {
            result |= 1 << UInt64(slot)
        }
        return result
    }

    private func signed(_ page: ObjectPage, section: ObjectPage.Section, constant: Int64) -> UInt64 {
        let cells = page.base + section.array
        switch section.width {
        case 0: return scan(1, against: constant) { _ in Int64(0) } == 0 ? 0 : ~0
        case 1: return scan(narrow: page.capacity, constant) { cells.load(fromByteOffset: $0, as: Int8.self) }
        case 2: return scan(narrow: page.capacity, constant) { cells.number(Int16.self, at: $0 &* 2) }
        case 4: return scan(narrow: page.capacity, constant) { cells.number(Int32.self, at: $0 &* 4) }
        default: return scan(page.capacity, against: constant) { cells.number(Int64.self, at: $0 &* 8) }
        }
    }

    private func small(_ page: ObjectPage, section: ObjectPage.Section, constant: Int64) -> UInt64 {
        let cells = page.base + section.array
        switch section.width {
        case 0: return scan(1, against: constant) { _ in Int64(0) } == 0 ? 0 : ~0
        case 1: return scan(narrow: page.capacity, constant) { cells.load(fromByteOffset: $0, as: UInt8.self) }
        case 2: return scan(narrow: page.capacity, constant) { cells.number(UInt16.self, at: $0 &* 2) }
        default: return scan(narrow: page.capacity, constant) { cells.number(UInt32.self, at: $0 &* 4) }
        }
    }

    private func unsigned(_ page: ObjectPage, section: ObjectPage.Section, constant: UInt64) -> UInt64 {
        let cells = page.base + section.array
        switch section.width {
        case 0: return scan(1, against: constant) { _ in UInt64(0) } == 0 ? 0 : ~0
        case 1: return scan(narrow: page.capacity, constant) { cells.load(fromByteOffset: $0, as: UInt8.self) }
        case 2: return scan(narrow: page.capacity, constant) { cells.number(UInt16.self, at: $0 &* 2) }
        case 4: return scan(narrow: page.capacity, constant) { cells.number(UInt32.self, at: $0 &* 4) }
        default: return scan(page.capacity, against: constant) { cells.number(UInt64.self, at: $0 &* 8) }
        }
    }

    private func doubles(_ page: ObjectPage, section: ObjectPage.Section, constant: Double) -> UInt64 {
        let cells = page.base + section.array
        if section.width == 0 { return scan(1, against: constant) { _ in 0.0 } == 0 ? 0 : ~0 }
        return scan(page.capacity, against: constant) { Double(bitPattern: cells.number(UInt64.self, at: $0 &* 8)) }
    }

    private func floats(_ page: ObjectPage, section: ObjectPage.Section, constant: Double) -> UInt64 {
        let cells = page.base + section.array
        if section.width == 0 { return scan(1, against: constant) { _ in 0.0 } == 0 ? 0 : ~0 }
        return scan(page.capacity, against: constant) { Double(Float(bitPattern: cells.number(UInt32.self, at: $0 &* 4))) }
    }

    /// Compares cells at their own width, so that a vector contains many of them.
    @inline(__always)
    private func scan<T: FixedWidthInteger, C: FixedWidthInteger>(narrow count: Int, _ constant: C, _ cell: (Int) -> T) -> UInt64
    {
        if let constant = T(exactly: constant) { return scan(count, against: constant, cell) }
        // The constant is outside the cells' range, so all cells compare with it in the same way.
        let isBelow = constant > C(truncatingIfNeeded: T.max)
        switch comparison {
        case .equal: return 0
        case .notEqual: return ~0
        case .less, .lessOrEqual: return isBelow ? ~0 : 0
        case .greater, .greaterOrEqual: return isBelow ? 0 : ~0
        }
    }

    /// Compares every slot below the capacity without branches. For doubles the result equals `StorePredicate.compare`: NaN
    /// is unequal to everything and has no order.
    @inline(__always)
    private func scan<T: Comparable>(_ count: Int, against constant: T, _ cell: (Int) -> T) -> UInt64 {
        switch comparison {
        case .equal: gatherBits(count) { cell($0) == constant }
        case .notEqual: gatherBits(count) { cell($0) != constant }
        case .less: gatherBits(count) { cell($0) < constant }
        case .lessOrEqual: gatherBits(count) { cell($0) <= constant }
        case .greater: gatherBits(count) { cell($0) > constant }
        case .greaterOrEqual: gatherBits(count) { cell($0) >= constant }
        }
    }

    @inline(__always)
    private func gatherBits(_ count: Int, _ test: (Int) -> Bool) -> UInt64 {
        if count == 1 { return test(0) ? 1 : 0 }
        // A capacity is a multiple of eight, and eight tests without a branch are one vector step.
        var result: UInt64 = 0
        var slot = 0
        while slot < count {
            var bits: UInt64 = 0
            for lane in 0..<8 { bits |= (test(slot &+ lane) ? 1 : 0) << UInt64(lane) }
            result |= bits << UInt64(slot)
            slot &+= 8
        }
        return result
    }

    private func heap(_ page: ObjectPage, section: ObjectPage.Section, among candidates: UInt64) throws(PageError) -> UInt64 {
        var result: UInt64 = 0
        let isEquality = comparison == .equal || comparison == .notEqual
        for slot in SlotIterator(candidates & section.outside)
        where holds(try largeOrder(page, section: section, slot: slot, isEquality: isEquality)) {
            result |= 1 << UInt64(slot)
        }
        for slot in SlotIterator(candidates & ~section.outside) {
            let span = try page.span(slot, in: section)
            let order = isEquality && span.count != bytes.count ? 1 : Self.order(span, bytes)
            if holds(order) { result |= 1 << UInt64(slot) }
        }
        return result
    }

    /// Returns the order of an out-of-line value. It is read only as far as it agrees with the constant. For equality, it is
    /// read only if byte count and hash agree.
    @inline(never)
    private func largeOrder(
        _ page: ObjectPage, section: ObjectPage.Section, slot: Int, isEquality: Bool
    ) throws(PageError) -> Int {
        let record = try page.record(slot, in: section)
        if isEquality, record.byteCount != bytes.count || record.hash != bytes.withUnsafeBytes(LargeValueHash.of) { return 1 }
        var order = 0
        var seen = 0
        try page.largeSource().eachChunk(of: record) { (chunk) throws(PageError) in
            let count = min(chunk.count, bytes.count - seen)
            order = bytes.withUnsafeBytes {
                Self.order(
                    UnsafeRawBufferPointer(rebasing: chunk[..<count]), UnsafeRawBufferPointer(rebasing: $0[seen..<(seen + count)])
                )
            }
            seen += count
            return order == 0 && seen < bytes.count
        }
        return order != 0 ? order : record.byteCount - bytes.count
    }

    private func uuids(_ page: ObjectPage, section: ObjectPage.Section, among candidates: UInt64) -> UInt64 {
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) {
            let cell = UnsafeRawBufferPointer(start: page.base + section.array + slot * 16, count: 16)
            if holds(Self.order(cell, bytes)) { result |= 1 << UInt64(slot) }
        }
        return result
    }

    @inline(__always)
    private func holds(_ order: Int) -> Bool {
        switch comparison {
        case .equal: order == 0
        case .notEqual: order != 0
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        case .greaterOrEqual: order >= 0
        }
    }

    @inline(__always)
    private static func order(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Int {
        b.withUnsafeBytes { order(a, $0) }
    }

    @inline(__always)
    private static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let common = min(a.count, b.count)
        var i = 0
        while i &+ 8 <= common {
            // The first byte becomes the highest, so that words order as their bytes do.
            let x = UInt64(bigEndian: a.loadUnaligned(fromByteOffset: i, as: UInt64.self))
            let y = UInt64(bigEndian: b.loadUnaligned(fromByteOffset: i, as: UInt64.self))
            if x != y { return x < y ? -1 : 1 }
            i &+= 8
        }
        while i < common {
            if a[i] != b[i] { return a[i] < b[i] ? -1 : 1 }
            i &+= 1
        }
        return a.count - b.count
    }
}
