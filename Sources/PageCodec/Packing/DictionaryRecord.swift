/// A dictionary in the form stored in a file. `Docs/Internals/FileFormat.md` describes its bytes.
public struct DictionaryRecord: Sendable {
    private static let version: UInt64 = 1
    static let headerSize = 24

    /// The number of the entity's pages when the dictionary was trained.
    public let pageCount: Int
    private let bytes: [UInt8]

    /// Creates a record from the bytes of a dictionary.
    public init(_ dictionary: [UInt8], pageCount: Int) {
        self.pageCount = pageCount
        bytes = dictionary
    }

    /// Reads a record.
    /// - Throws: ``PageError`` for bytes that are not a record, or are damaged.
    public init(_ record: UnsafeRawBufferPointer) throws(PageError) {
        guard let base = record.baseAddress, record.count > Self.headerSize else {
            throw PageError(offset: record.count, field: "dictionary", reason: "ends inside its header")
        }
        let version = base.number(UInt64.self, at: 0)
        guard version == Self.version else {
            throw PageError(field: "dictionary", reason: "has the unknown format \(version)")
        }
        guard Self.checksum(record) == base.number(UInt64.self, at: 8) else {
            throw PageError(offset: 8, field: "dictionary", reason: "does not fit its checksum")
        }
        pageCount = Int(clamping: base.number(UInt64.self, at: 16))
        bytes = Array(record[Self.headerSize...])
    }

    /// Returns the bytes for a file.
    public func encoded() -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(Self.headerSize + bytes.count)
        result.putWord(Self.version)
        result.putWord(0)
        result.putWord(UInt64(clamping: pageCount))
        result.append(contentsOf: bytes)
        let checksum = result.withUnsafeBytes { Self.checksum($0) }
        result.withUnsafeMutableBytes { $0.baseAddress?.put(checksum, at: 8) }
        return result
    }

    /// Returns the dictionary for use. Copies the bytes.
    public func dictionary() throws(PageError) -> PageDictionary { try PageDictionary(bytes) }

    /// Returns the checksum of all bytes from 16 on.
    static func checksum(_ record: UnsafeRawBufferPointer) -> UInt64 {
        PageHash.hash(UnsafeRawBufferPointer(rebasing: record[16...]), seed: version)
    }
}
