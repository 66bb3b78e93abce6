internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

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

    /// The bytes from the beginning of the record on, as far as they are read.
    private var bytes: [UInt8]
    /// The file that the bytes are read from, and the offset of the next ones; nil if all are read.
    private var rest: (input: CSVInput, offset: Int)?
    private let file: String
    private let delimiter: UInt8
    /// The number of bytes that are read from a file at once, at least.
    private var partSize = 0
    private var position = 0
    private var line = 1

    private static let quote = UInt8(ascii: "\"")
    private static let newline = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")

    /// Creates a parser of the content of a file, which begins at the first record.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - file: The file name for errors.
    ///   - delimiter: The ASCII character between fields.
    public init(_ bytes: [UInt8], file: String, delimiter: UInt8 = UInt8(ascii: ",")) {
        self.bytes = bytes
        self.file = file
        self.delimiter = delimiter
        skipByteOrderMark()
    }

    /// Creates a parser that reads a file part by part. Needs memory for the longest record.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - file: The file name for errors.
    ///   - delimiter: The ASCII character between fields.
    /// - Throws: ``DatasetError`` if the file cannot be read.
    public init(path: String, file: String, delimiter: UInt8 = UInt8(ascii: ",")) throws {
        try self.init(path: path, file: file, delimiter: delimiter, partSize: 1 << 18)
    }

    /// - Parameter partSize: The number of bytes that are read at once, at least.
    init(path: String, file: String, delimiter: UInt8 = UInt8(ascii: ","), partSize: Int) throws {
        bytes = []
        self.file = file
        self.delimiter = delimiter
        self.partSize = partSize
        // Reading a device or a pipe might never end.
        guard (try? FileStatus(path))?.isRegularFile == true, let input = CSVInput(path) else {
            throw DatasetError("\(path): cannot be read; check that it exists, is a regular file, and may be read")
        }
        rest = (input, 0)
        while bytes.count < 3, rest != nil { try readPart() }
        skipByteOrderMark()
    }

    private mutating func skipByteOrderMark() {
        // It is not part of the first name.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Reads the next part of the file, and drops the bytes before the position.
    private mutating func readPart() throws {
        guard let (input, offset) = rest else { return }
        bytes.removeFirst(position)
        position = 0
        // A long record is read in few parts, because each is parsed from the beginning of the record.
        let wanted = max(partSize, bytes.count)
        do {
            let part = try input.read(wanted, at: offset)
            bytes += part
            rest = part.isEmpty ? nil : (input, offset + part.count)
        } catch {
            throw DatasetError("\(file):\(line): cannot be read: \(error); check the disk")
        }
    }

    /// Returns the next record, or nil at the end. Skips empty lines. Throws ``DatasetError`` with file, line and column.
    public mutating func next() throws -> Record? {
        while true {
            let (start, firstLine) = (position, line)
            let found = Result { try record() }
            // At the end of the part, the record may go on.
            guard position == bytes.count, rest != nil else { return try found.get() }
            (position, line) = (start, firstLine)
            try readPart()
        }
    }

    private mutating func record() throws -> Record? {
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
        guard let text = String(validating: slice, as: UTF8.self) else {
            throw failure(column, "bytes that are not UTF-8; save the file as UTF-8")
        }
        return text
    }

    func failure(_ column: Int, _ reason: String) -> DatasetError {
        DatasetError("\(file):\(line): column \(column): \(reason)")
    }
}

/// The file of a parser and its copies, which is closed with the last of them.
private final class CSVInput: Sendable {
    private let file: OpenFile

    /// Returns nil if the file cannot be opened.
    init?(_ path: String) {
        guard let file = try? OpenFile(path, access: .read) else { return nil }
        self.file = file
    }

    deinit { file.close() }

    /// Returns bytes from an offset on: as many as are wanted, or fewer at the end of the file.
    func read(_ count: Int, at offset: Int) throws -> [UInt8] {
        try Array(unsafeUninitializedCapacity: count) { buffer, read in
            read = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
    }
}
