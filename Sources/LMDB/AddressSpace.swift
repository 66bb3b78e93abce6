internal import CLMDB
internal import Platform

/// Where maps lie.
enum AddressSpace {
    /// Whether a map of so many bytes would find room beside those that there are.
    static func hasRoom(for byteCount: Int) -> Bool {
        let map = mmap(nil, byteCount, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0)
        guard let map, map != MAP_FAILED else { return false }
        munmap(map, byteCount)
        return true
    }
}

extension Environment {
    /// What LMDB takes when it is told to adopt the size that another process has given the file.
    func sizeInFile() throws(LMDBError) -> Int {
        max(try MetaPages.mapSize(try fileDescriptor(), pageSize: pageSize), 1)
    }
}
