import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Dataset {
    /// Reads a SQLite file, a CSV file or a folder of CSV files. Throws ``DatasetError``, whose message is one line with the input and
    /// the reason.
    ///
    /// - Parameters:
    ///   - path: The file or folder. A file is a CSV file if its name ends in `.csv` or `.tsv`, or if the options have a delimiter.
    ///   - options: The user's choices.
    public static func read(_ path: String, options: DatasetOptions = DatasetOptions()) throws -> Dataset {
        var isFolder = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw DatasetError("\(path): no such file or folder")
        }
        if isFolder || CSVFile.hasEnding(path) || options.delimiter != nil {
            do { return try CSVFolder.read(path, options: options) } catch let error as StoreError {
                throw DatasetError(error.message)
            }
        }
        try options.checkIsNotCSV(path)
        return try SQLiteFile.read(path, options: options)
    }
}
