#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The process's address space.
package enum AddressSpace {
    /// `MAP_FAILED`, which some modules of the C library lack.
    static var failed: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: -1) }

    /// Returns whether the address space has room for another map of this size.
    package static func hasSpace(for byteCount: Int) -> Bool {
        let map = mmap(nil, byteCount, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0)
        guard let map, map != failed else { return false }
        munmap(map, byteCount)
        return true
    }

    /// `munmap`
    package static func unmap(_ map: UnsafeMutableRawPointer, byteCount: Int) { munmap(map, byteCount) }
}

/// `memcmp`: compares bytes as unsigned numbers. Returns a negative number, 0 or a positive number.
@inlinable @inline(__always)
public func compareBytes(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, count: Int) -> Int {
    Int(memcmp(left, right, count))
}
