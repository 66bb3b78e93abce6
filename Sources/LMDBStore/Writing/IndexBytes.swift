internal import Platform

/// The order of index keys in LMDB: byte by byte, a prefix first.
enum IndexBytes {
    @inline(__always)
    static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        let count = min(a.count, b.count)
        if count > 0, let left = a.baseAddress, let right = b.baseAddress {
            let order = compareBytes(left, right, count: count)
            if order != 0 { return order }
        }
        return a.count - b.count
    }

    static func order(_ a: UnsafeRawBufferPointer, _ b: [UInt8]) -> Int { b.withUnsafeBytes { order(a, $0) } }

    static func order(_ a: [UInt8], _ b: [UInt8]) -> Int { a.withUnsafeBytes { order($0, b) } }
}
