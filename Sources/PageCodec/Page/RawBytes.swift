extension UnsafeRawPointer {
    /// Reads a little-endian number at any address.
    @inline(__always)
    func number<T: FixedWidthInteger>(_ type: T.Type, at offset: Int) -> T {
        T(littleEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    // The same for the types of most fields. Programs that are not optimized call these, and need not look the type up for each number.

    @inline(__always)
    func number(_: UInt16.Type, at offset: Int) -> UInt16 {
        UInt16(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    @inline(__always)
    func number(_: UInt32.Type, at offset: Int) -> UInt32 {
        UInt32(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    @inline(__always)
    func number(_: UInt64.Type, at offset: Int) -> UInt64 {
        UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Reads a number of 0, 1, 2, 4 or 8 bytes, extended with zeros.
    @inline(__always)
    func unsigned(width: Int, at offset: Int) -> UInt64 {
        switch width {
        case 0: 0
        case 1: UInt64(load(fromByteOffset: offset, as: UInt8.self))
        case 2: UInt64(number(UInt16.self, at: offset))
        case 4: UInt64(number(UInt32.self, at: offset))
        default: number(UInt64.self, at: offset)
        }
    }

    /// Reads a number of 0, 1, 2, 4 or 8 bytes, extended with its sign.
    @inline(__always)
    func signed(width: Int, at offset: Int) -> Int64 {
        switch width {
        case 0: 0
        case 1: Int64(load(fromByteOffset: offset, as: Int8.self))
        case 2: Int64(number(Int16.self, at: offset))
        case 4: Int64(number(Int32.self, at: offset))
        default: number(Int64.self, at: offset)
        }
    }
}

extension UnsafeMutableRawPointer {
    @inline(__always)
    func put<T: FixedWidthInteger>(_ value: T, at offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self)
    }

    /// Writes the low bytes of consecutive 64-bit cells as an array.
    @inline(__always)
    func putArray(_ cells: UnsafePointer<UInt64>, count: Int, width: Int, at offset: Int) {
        switch width {
        case 0: break
        case 1: putCells(cells, count: count, as: UInt8.self, at: offset)
        case 2: putCells(cells, count: count, as: UInt16.self, at: offset)
        case 4: putCells(cells, count: count, as: UInt32.self, at: offset)
        default: putCells(cells, count: count, as: UInt64.self, at: offset)
        }
    }

    @inline(__always)
    private func putCells<T: FixedWidthInteger>(_ cells: UnsafePointer<UInt64>, count: Int, as type: T.Type, at offset: Int) {
        for i in 0..<count {
            put(T(truncatingIfNeeded: cells[i]), at: offset + i * MemoryLayout<T>.size)
        }
    }
}

/// Returns the narrowest of 0, 1, 2, 4 and 8 bytes that contains all bits of a number.
@inline(__always)
func narrowWidth(_ bits: UInt64) -> Int {
    switch 64 - bits.leadingZeroBitCount {
    case 0: 0
    case 1...8: 1
    case 9...16: 2
    case 17...32: 4
    default: 8
    }
}

extension UnsafeRawBufferPointer {
    /// Whether all bytes are ASCII. Checks eight bytes at a time.
    @inline(__always)
    var isASCII: Bool {
        guard let base = baseAddress else { return true }
        var bits: UInt64 = 0
        var i = 0
        while i &+ 8 <= count {
            bits |= base.loadUnaligned(fromByteOffset: i, as: UInt64.self)
            i &+= 8
        }
        while i < count {
            bits |= UInt64(base.load(fromByteOffset: i, as: UInt8.self))
            i &+= 1
        }
        return bits & 0x8080_8080_8080_8080 == 0
    }
}

extension String {
    /// Creates a string, or returns nil for bytes that are not UTF-8. Several times faster than `String(validating:as:)`.
    @inline(__always)
    init?(checkedUTF8 bytes: UnsafeRawBufferPointer) {
        self.init(decoding: bytes, as: UTF8.self)
        // Decoding repairs invalid bytes, so the text then has other bytes.
        guard bytes.isASCII || utf8.elementsEqual(bytes) else { return nil }
    }
}
