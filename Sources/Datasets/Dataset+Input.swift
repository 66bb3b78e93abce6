#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Dataset {
    /// Reads a SQLite file or a folder of CSV files. Throws ``DatasetError``, whose message is one line with the input and the
    /// reason.
    ///
    /// - Parameters:
    ///   - path: The file or folder.
    ///   - nullWords: The texts that mean null in CSV files, besides the empty text. nil means the usual ones.
    ///   - leavesOutMissingFiles: Whether values of a Core Data store whose files are missing become null. Otherwise they are an error.
    public static func read(
        _ path: String, nullWords: Set<String>? = nil, leavesOutMissingFiles: Bool = false
    ) throws -> Dataset {
        var isFolder = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw DatasetError("\(path): no such file or folder")
        }
        if isFolder { return try CSVFolder.read(path, nullWords: nullWords ?? CSVFolder.usualNullWords) }
        if nullWords != nil {
            throw DatasetError("\(path): is no folder of CSV files, so it has no words for null; leave out --null-words")
        }
        return try SQLiteFile.read(path, leavesOutMissingFiles: leavesOutMissingFiles)
    }
}
