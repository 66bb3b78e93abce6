internal import CLMDB
internal import Platform

/// The process's address space.
enum AddressSpace {
    /// Returns whether the address space has room for another map of this size.
    static func hasRoom(for byteCount: Int) -> Bool {
        let map = mmap(nil, byteCount, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0)
        guard let map, map != MAP_FAILED else { return false }
        munmap(map, byteCount)
        return true
    }
}

extension Environment {
    /// Returns the map size that LMDB uses when it adopts the size set by another process.
    func sizeInFile() throws(LMDBError) -> Int {
        max(try MetaPages.mapSize(try fileDescriptor(), pageSize: pageSize), 1)
    }
}
