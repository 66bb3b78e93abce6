#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The cells of one CSV file, by column. A cell that is empty or a null word is null, unless it is quoted.
struct CSVFile {
    /// The file's name without its extension.
    var name: String
    var columns: [String]
    var cells: [[String?]]
    var rowCount: Int

    /// - Parameter nullWords: The texts that mean null, besides the empty text.
    init(path: String, nullWords: Set<String> = CSVFolder.usualNullWords) throws {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        guard let data = FileManager.default.contents(atPath: path) else {
            throw DatasetError("\(path): cannot be read; check that it exists and may be read")
        }
        try self.init(Array(data), file: file, nullWords: nullWords)
    }

    /// - Parameters:
    ///   - file: The file name for errors, with its extension.
    ///   - nullWords: The texts that mean null, besides the empty text.
    init(_ bytes: [UInt8], file: String, nullWords: Set<String> = CSVFolder.usualNullWords) throws {
        var parser = CSVParser(bytes, file: file)
        name = file.hasSuffix(".csv") ? String(file.dropLast(4)) : file
        guard let header = try parser.next() else {
            throw DatasetError("\(file):1: column 1: no header; the first line must name the columns")
        }
        columns = header.fields.map(\.text)
        for (index, column) in columns.enumerated() {
            if column.isEmpty { throw DatasetError("\(file):1: column \(index + 1): a column without a name") }
            if columns[..<index].contains(where: { $0.lowercased() == column.lowercased() }) {
                throw DatasetError("\(file):1: column \(index + 1): the name \(column) is taken by an earlier column")
            }
        }
        cells = Array(repeating: [], count: columns.count)
        rowCount = 0
        while let record = try parser.next() {
            guard record.fields.count == columns.count else {
                throw DatasetError(
                    "\(file):\(record.line): column \(min(record.fields.count, columns.count) + 1): "
                        + "\(record.fields.count) fields, but the header names \(columns.count)")
            }
            for (column, field) in record.fields.enumerated() {
                let isNull = !field.wasQuoted && (field.text.isEmpty || nullWords.contains(field.text))
                cells[column].append(isNull ? nil : field.text)
            }
            rowCount += 1
        }
    }
}
