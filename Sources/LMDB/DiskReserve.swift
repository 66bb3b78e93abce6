internal import CLMDB

extension Environment {
    /// Has the system set room aside for the file between two places, so that what is written there later cannot meet a full disk.
    /// The file's size stays. Does nothing where the file system has no such service.
    ///
    /// - Throws: ``LMDBError`` `.diskFull`, also when the process may not make a file so large.
    public func setAside(from start: Int, to end: Int) throws(LMDBError) {
        let file = try fileDescriptor()
        try check(.setAside) { strata_set_aside(file, Int64(start), Int64(end)) }
    }
}
