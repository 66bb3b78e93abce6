/// A leaf page of LMDB 0.9 in the map. Reading an entry here takes 1 to 2 ns; a call of LMDB takes 20 ns.
struct LeafPage {
    /// The layout of LMDB's pages and entries, and their flags.
    enum Layout {
        static let headerSize = 16
        static let flagsOffset = 10
        static let lowerOffset = 12
        static let leaf: UInt16 = 2
        static let entryHeaderSize = 8
        static let entryFlagsOffset = 4
        static let keySizeOffset = 6
    }

    // Right because the page is in the map, and the caller keeps the read transaction alive.
    private let bytes: UnsafeRawBufferPointer
    /// The number of entries.
    let count: Int

    /// Creates the page around a key that a cursor of a read transaction returned. Returns nil if it is not a leaf page.
    init?(around key: UnsafeRawBufferPointer, pageSize: Int) {
        guard let address = key.baseAddress else { return nil }
        // Pages are in the map at multiples of their size, a power of two.
        bytes = UnsafeRawBufferPointer(start: address - Int(bitPattern: address) & (pageSize - 1), count: pageSize)
        guard bytes.loadUnaligned(fromByteOffset: Layout.flagsOffset, as: UInt16.self) & Layout.leaf != 0 else { return nil }
        let lower = Int(bytes.loadUnaligned(fromByteOffset: Layout.lowerOffset, as: UInt16.self))
        guard lower >= Layout.headerSize, lower <= pageSize else { return nil }
        count = (lower - Layout.headerSize) / 2
    }

    /// Returns the offset of an entry, or nil if it is outside the page.
    private func place(_ position: Int) -> Int? {
        let place = Int(bytes.loadUnaligned(fromByteOffset: Layout.headerSize + 2 * position, as: UInt16.self))
        guard place + Layout.entryHeaderSize <= bytes.count else { return nil }
        return place
    }

    /// Returns the key of an entry, or nil if it is outside the page, as in a damaged file.
    func key(_ position: Int) -> UnsafeRawBufferPointer? {
        guard let place = place(position) else { return nil }
        let start = place + Layout.entryHeaderSize
        let end = start + Int(bytes.loadUnaligned(fromByteOffset: place + Layout.keySizeOffset, as: UInt16.self))
        return end <= bytes.count ? UnsafeRawBufferPointer(rebasing: bytes[start..<end]) : nil
    }

    /// Returns the only value of an entry as a number. Returns nil if the entry has several values, or a value of another
    /// kind.
    @inline(__always)
    func onlyNumber(_ position: Int) -> UInt64? {
        guard let place = place(position), bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self) == 8,
            bytes.loadUnaligned(fromByteOffset: place + Layout.entryFlagsOffset, as: UInt16.self) == 0
        else { return nil }
        let start =
            place + Layout.entryHeaderSize
            + Int(bytes.loadUnaligned(fromByteOffset: place + Layout.keySizeOffset, as: UInt16.self))
        return start + 8 <= bytes.count ? bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self) : nil
    }

    /// Calls `body` with the values of entries, some at a time, in 8 bytes each. Ends before the first entry that ``onlyNumber(_:)`` has no
    /// number for.
    /// - Returns: The position at which it ended.
    func forEachBlock(_ positions: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
        let most = 64
        // Safe because no more numbers are read than were written.
        return withUnsafeTemporaryAllocation(of: UInt64.self, capacity: most) { numbers in
            var position = positions.lowerBound
            while true {
                var count = 0
                while count < most, position < positions.upperBound, let number = onlyNumber(position) {
                    numbers.initializeElement(at: count, to: number)
                    (count, position) = (count + 1, position + 1)
                }
                if count > 0 { body(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: numbers[..<count]))) }
                if count < most { return position }
            }
        }
    }

    /// Returns the position of the entry whose key is at this address.
    func position(of key: UnsafeRawBufferPointer) -> Int? {
        guard let address = key.baseAddress, let base = bytes.baseAddress else { return nil }
        let place = address - base - Layout.entryHeaderSize
        return (0..<count).first { self.place($0) == place }
    }

    /// Returns the first position from `start` on that satisfies a condition. All keys after it must satisfy the condition as
    /// well.
    func first(from start: Int, where isAfter: (UnsafeRawBufferPointer) -> Bool) -> Int {
        var (low, high) = (start, count)
        while low < high {
            let middle = (low + high) / 2
            if let key = key(middle), !isAfter(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
