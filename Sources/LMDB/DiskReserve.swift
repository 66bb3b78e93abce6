internal import CLMDB
internal import Platform

extension Environment {
    /// Reserves disk space for a range of the file, so that later writes to it cannot run out of space. The file's size stays
    /// the same. Does nothing if the file system does not support reservations.
    ///
    /// - Throws: ``LMDBError`` `.diskFull`, also if the process may not make a file so large.
    package func reserve(from start: Int, to end: Int) throws(LMDBError) {
        let file = OpenFile(descriptor: try fileDescriptor())
        try check(.reserve, of: .environment(pointer)) {
            do throws(SystemError) {
                try file.allocate(from: start, to: end)
                return MDB_SUCCESS
            } catch {
                return error.number
            }
        }
    }
}
