internal import CLMDB

extension MDB_val {
    /// Creates a value without copying the bytes. Right because LMDB does not write through keys, and copies values before a
    /// call returns.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }

    @inline(__always)
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: mv_data, count: mv_size) }

    /// The value as a 64-bit number in the machine's byte order; 0 if the value has another size.
    @inline(__always)
    var number: UInt64 {
        guard mv_size == 8, let data = mv_data else { return 0 }
        return data.loadUnaligned(as: UInt64.self)
    }
}

/// Calls `body` with a number as the bytes of a key or value.
@inline(__always)
func withNumber<R, E: Error>(_ number: UInt64, _ body: (inout MDB_val) throws(E) -> R) throws(E) -> R {
    var number = number
    return try withUnsafeMutablePointer(to: &number) { (pointer) throws(E) -> R in
        var value = MDB_val(mv_size: 8, mv_data: UnsafeMutableRawPointer(pointer))
        return try body(&value)
    }
}
