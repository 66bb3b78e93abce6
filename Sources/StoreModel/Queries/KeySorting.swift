extension [ObjectKey] {
    /// Sorts ascending, by the few bits in which keys of one query differ. Takes some nanoseconds per key, where `sort()`
    /// takes 30 and more.
    package mutating func sortKeys() {
        let (differing, isSorted) = withUnsafeBufferPointer { keys in
            var (inAll, inAny, last) = (UInt64.max, UInt64.min, ObjectKey(rawValue: 0))
            var isSorted = true
            for key in keys {
                inAll &= key.rawValue
                inAny |= key.rawValue
                isSorted = isSorted && last <= key
                last = key
            }
            return (inAll ^ inAny, isSorted)
        }
        if isSorted { return }
        let low = differing.trailingZeroBitCount
        let digits = KeyDigits(
            shift: low, bitCount: UInt64.bitWidth - differing.leadingZeroBitCount - low, width: count < 1024 ? 6 : 8)
        // A pass costs about as much as two comparisons per key. For few keys that are far apart, comparisons are cheaper.
        let comparisons = count * (Int.bitWidth - count.leadingZeroBitCount)
        guard digits.passes * (1 << digits.width + 2 * count) < 2 * comparisons else { return sort() }
        withUnsafeMutableBufferPointer { keys in
            withUnsafeTemporaryAllocation(of: ObjectKey.self, capacity: keys.count) { other in
                other.initialize(repeating: 0)
                digits.sort(keys, by: other)
            }
        }
    }
}

extension [ObjectKey] {
    /// Creates the keys of several arrays, ascending and each once.
    ///
    /// Keys that lie close together, such as those of an import, take one or two nanoseconds each, whatever their order.
    package init(uniting arrays: [[ObjectKey]]) {
        var (count, first, last) = (0, UInt64.max, UInt64.min)
        for keys in arrays {
            count += keys.count
            for key in keys { (first, last) = (Swift.min(first, key.rawValue), Swift.max(last, key.rawValue)) }
        }
        let firstPage = ObjectKey(rawValue: first).page.rawValue
        // One mask per page, as far as the masks take less memory than the keys.
        guard count > 0, ObjectKey(rawValue: last).page.rawValue - firstPage < UInt64(count) else {
            self = Array(arrays.joined())
            sortKeys()
            var known: ObjectKey?
            removeAll { key in
                defer { known = key }
                return key == known
            }
            return
        }
        var masks = [UInt64](repeating: 0, count: Int(ObjectKey(rawValue: last).page.rawValue - firstPage) + 1)
        for keys in arrays {
            for key in keys { masks[Int(key.page.rawValue - firstPage)] |= 1 << UInt64(key.slot) }
        }
        self = []
        reserveCapacity(masks.reduce(0) { $0 + $1.nonzeroBitCount })
        for (index, mask) in masks.enumerated() where mask != 0 {
            let page = PageNumber(rawValue: firstPage + UInt64(index))
            for slot in SlotIterator(mask) { append(PageAddress.key(page: page, slot: slot)) }
        }
    }
}

/// A radix sort, lowest digit first.
private struct KeyDigits {
    /// The lowest bit in which keys differ.
    var shift: Int
    var bitCount: Int
    /// The number of bits per digit.
    var width: Int

    var passes: Int { (bitCount + width - 1) / width }

    // Safe because both buffers have the same count, and each key's position in the other buffer is counted before it is
    // written.
    func sort(_ keys: UnsafeMutableBufferPointer<ObjectKey>, by other: UnsafeMutableBufferPointer<ObjectKey>) {
        var (from, to) = (keys, other)
        withUnsafeTemporaryAllocation(of: Int.self, capacity: 1 << width) { places in
            for pass in 0..<passes {
                let shift = UInt64(shift + pass * width)
                let mask = UInt64(1 << width - 1)
                places.initialize(repeating: 0)
                for key in from { places[Int(key.rawValue &>> shift & mask)] += 1 }
                var next = 0
                for digit in places.indices { (places[digit], next) = (next, next + places[digit]) }
                for key in from {
                    let digit = Int(key.rawValue &>> shift & mask)
                    to[places[digit]] = key
                    places[digit] += 1
                }
                swap(&from, &to)
            }
        }
        if passes & 1 == 1 { _ = keys.update(from: other) }
    }
}
