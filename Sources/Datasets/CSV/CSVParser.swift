/// Splits the bytes of a CSV file into records (RFC 4180). Quoted fields may contain delimiters, quotes and line ends.
public struct CSVParser: Sendable {
    /// A line, or several lines if a quoted field contains line ends.
    public struct Record: Sendable {
        /// The line on which the record begins, counted from 1.
        public var line: Int
        /// The fields in their order, at least one.
        public var fields: [Field]
    }

    /// One field of a record.
    public struct Field: Sendable {
        /// The text, without quotes.
        public var text: String
        /// Whether the field was quoted. A quoted field is never null, whatever its text.
        public var wasQuoted: Bool
    }

    private let bytes: [UInt8]
    private let file: String
    private let delimiter: UInt8
    private var position = 0
    private var line = 1

    private static let quote = UInt8(ascii: "\"")
    private static let newline = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    /// Creates a parser that begins at the first record.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - file: The file name for errors.
    ///   - delimiter: The ASCII character between fields.
    public init(_ bytes: [UInt8], file: String, delimiter: UInt8 = UInt8(ascii: ",")) {
        self.bytes = bytes
        self.file = file
        self.delimiter = delimiter
        // A byte order mark is not part of the first name.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Returns the next record, or nil at the end. Skips empty lines. Throws ``DatasetError`` with file, line and column.
    public mutating func next() throws -> Record? {
        while position < bytes.count, bytes[position] == Self.newline || bytes[position] == Self.carriageReturn {
            if bytes[position] == Self.newline { line += 1 }
            position += 1
        }
        guard position < bytes.count else { return nil }
        var record = Record(line: line, fields: [])
        while true {
            record.fields.append(try field(record.fields.count + 1))
            guard position < bytes.count else { return record }
            let end = bytes[position]
            position += 1
            if end == delimiter { continue }
            if end == Self.carriageReturn, position < bytes.count, bytes[position] == Self.newline { position += 1 }
            line += 1
            return record
        }
    }

    /// Reads a field, up to the delimiter, the line end or the end of the file that follows it.
    private mutating func field(_ column: Int) throws -> Field {
        if position < bytes.count, bytes[position] == Self.quote { return try quotedField(column) }
        let start = position
        while position < bytes.count {
            let byte = bytes[position]
            if byte == delimiter || byte == Self.newline || byte == Self.carriageReturn { break }
            if byte == Self.quote { throw failure(column, "a quote inside a field that is not quoted; quote the whole field") }
            position += 1
        }
        return Field(text: try text(bytes[start..<position], column), wasQuoted: false)
    }

    private mutating func quotedField(_ column: Int) throws -> Field {
        let firstLine = line
        position += 1
        var content: [UInt8] = []
        while true {
            guard position < bytes.count else {
                line = firstLine
                throw failure(column, "a quoted field that never ends; close the quote")
            }
            let byte = bytes[position]
            position += 1
            if byte == Self.newline { line += 1 }
            guard byte == Self.quote else {
                content.append(byte)
                continue
            }
            if position < bytes.count, bytes[position] == Self.quote {
                content.append(byte)
                position += 1
                continue
            }
            break
        }
        if position < bytes.count, ![delimiter, Self.newline, Self.carriageReturn].contains(bytes[position]) {
            throw failure(column, "text after a closing quote; double the quotes inside a field")
        }
        return Field(text: try text(content[...], column), wasQuoted: true)
    }

    private func text(_ slice: ArraySlice<UInt8>, _ column: Int) throws -> String {
        guard let text = String(validating: slice, as: UTF8.self) else { throw failure(column, "bytes that are not UTF-8") }
        return text
    }

    func failure(_ column: Int, _ reason: String) -> DatasetError {
        DatasetError("\(file):\(line): column \(column): \(reason)")
    }
}
