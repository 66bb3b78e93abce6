internal import CLMDB

extension MDB_val {
    /// Right because LMDB does not write through keys, and values are copied before a call returns.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }

    @inline(__always)
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: mv_data, count: mv_size) }

    /// A 64-bit number as the machine writes it; 0 when the value has another size.
    @inline(__always)
    var number: UInt64 {
        guard mv_size == 8, let data = mv_data else { return 0 }
        return data.loadUnaligned(as: UInt64.self)
    }
}

/// Calls `body` with a number as key or value bytes.
@inline(__always)
func withNumber<R, E: Error>(_ number: UInt64, _ body: (inout MDB_val) throws(E) -> R) throws(E) -> R {
    var number = number
    return try withUnsafeMutablePointer(to: &number) { (pointer) throws(E) -> R in
        var value = MDB_val(mv_size: 8, mv_data: UnsafeMutableRawPointer(pointer))
        return try body(&value)
    }
}
