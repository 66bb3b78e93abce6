#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Dataset {
    /// Reads a SQLite file or a folder of CSV files. Throws ``DatasetError``, whose message is one line with the input and the
    /// reason.
    public static func read(_ path: String) throws -> Dataset {
        var isFolder = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw DatasetError("\(path): no such file or folder")
        }
        return isFolder ? try CSVFolder.read(path) : try SQLiteFile.read(path)
    }
}
