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
    /// A text or null per cell.
    var cells: [ValueColumn]
    var rowCount: Int
    /// The number of bytes of the longest text of each column.
    private(set) var longest: [Int]

    /// Remarks about the header, one line each.
    var notes: [String] = []

    /// The endings of the names of CSV files.
    static let endings = [".csv", ".tsv"]

    static func hasEnding(_ path: String) -> Bool { endings.contains(where: path.lowercased().hasSuffix) }

    /// Reads a file from the disk.
    init(path: String, options: DatasetOptions = DatasetOptions()) throws {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let parser = try CSVParser(path: path, file: file, delimiter: Self.delimiter(of: file, options))
        try self.init(parser, file: file, options: options)
    }

    /// - Parameter file: The file name for errors, with its extension.
    init(_ bytes: [UInt8], file: String, options: DatasetOptions = DatasetOptions()) throws {
        let parser = CSVParser(bytes, file: file, delimiter: try Self.delimiter(of: file, options))
        try self.init(parser, file: file, options: options)
    }

    private init(_ parser: CSVParser, file: String, options: DatasetOptions) throws {
        var parser = parser
        let nullWords = options.nullWords ?? CSVFolder.usualNullWords
        name = Self.hasEnding(file) ? String(file.dropLast(4)) : file
        guard let header = try parser.next() else {
            throw DatasetError("\(file):1: column 1: no header; the first line must name the columns")
        }
        columns = []
        let texts = header.fields.map(\.text)
        var taken = Set(texts.map { $0.lowercased() })
        var earlier: Set<String> = []
        for (index, text) in texts.enumerated() {
            if !text.isEmpty, !earlier.insert(text.lowercased()).inserted {
                throw DatasetError("\(file):1: column \(index + 1): the name \(text) is taken by an earlier column")
            }
            columns.append(text)
            guard text.isEmpty else { continue }
            // The column of row names that R and pandas write.
            var made = "column\(index + 1)"
            while !taken.insert(made).inserted { made += "_" }
            columns[index] = made
            notes.append("\(name): the column \(index + 1) has no name in the header and is named \(made)")
        }
        if texts.count == 1, options.delimiter == nil, let other = ";\t|".first(where: { texts[0].contains($0) }) {
            let shown = other == "\t" ? "a tab" : "'\(other)'"
            notes.append(
                "\(name): the header has one column, \(texts[0]). If its names are separated by \(shown), choose that with --delimiter"
            )
        }
        var builders = columns.indices.map { ValueColumnBuilder($0 < ScratchSpace.maximumFiles ? options.scratch : nil) }
        longest = columns.map { _ in 0 }
        rowCount = 0
        while let record = try parser.next() {
            try Task.checkCancellation()
            guard record.fields.count == columns.count else {
                throw DatasetError(
                    "\(file):\(record.line): column \(min(record.fields.count, columns.count) + 1): "
                        + "\(record.fields.count) fields, but the header names \(columns.count); "
                        + (record.fields.count > columns.count
                            ? "quote fields that contain the delimiter" : "add the missing fields"))
            }
            for (column, field) in record.fields.enumerated() {
                let isNull = !field.wasQuoted && (field.text.isEmpty || nullWords.contains(field.text))
                try builders[column].append(isNull ? .null : .string(field.text))
                if !isNull { longest[column] = max(longest[column], field.text.utf8.count) }
            }
            rowCount += 1
        }
        cells = try builders.indices.map { try builders[$0].finish() }
    }

    /// Whether a column may have keys, or refer to keys: it has no long text.
    func mayBeKey(_ column: Int) -> Bool { longest[column] <= 256 }

    private static func delimiter(of file: String, _ options: DatasetOptions) throws -> UInt8 {
        guard let chosen = options.delimiter else { return UInt8(ascii: file.lowercased().hasSuffix(".tsv") ? "\t" : ",") }
        guard let byte = chosen.asciiValue, byte != UInt8(ascii: "\""), byte != 10, byte != 13 else {
            throw DatasetError(
                "\(file): \(chosen) cannot be the delimiter; use an ASCII character that is no quote and no line end")
        }
        return byte
    }
}
