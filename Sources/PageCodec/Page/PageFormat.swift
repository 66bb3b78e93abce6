import StoreInterface

/// Offsets and numbers of the object page; `Docs/Internals/FileFormat.md` tells their meaning. All numbers are little-endian.
enum PageFormat {
    /// "STPG" when read as bytes.
    static let magic: UInt32 = 0x4750_5453
    /// Of pages whose checksum does not cover their place: see ``PagePlace``.
    static let version: UInt16 = 1
    /// The bytes of the page from ``packedStart`` on are compressed.
    static let packedFlag: UInt16 = 1

    static let magicOffset = 0
    static let versionOffset = 4
    static let flagsOffset = 6
    static let checksumOffset = 8
    static let byteCountOffset = 16
    static let schemaNumberOffset = 20
    static let presenceOffset = 24
    static let baseGenerationOffset = 32
    static let generationsOffset = 40
    static let generationWidthOffset = 44
    static let capacityOffset = 45
    static let columnCountOffset = 46
    static let headerSize = 48

    // A packed page shares the header up to `packedStart`: its checksum is that of the page before it was packed, its byte count
    // its own. Then follow two numbers and, from `headerSize` on, one zstd frame of all bytes from `packedStart` on.
    static let packedStart = 40
    static let unpackedByteCountOffset = 40
    static let dictionaryNumberOffset = 44
    /// Larger pages stay raw: what a packed page may make a reader allocate is bounded.
    static let maximumUnpackedByteCount = 1 << 24
    /// Dictionaries are not larger.
    static let maximumDictionaryByteCount = 1 << 20

    /// A directory entry: section offset (4 bytes), type, width, flags, zero.
    static let entrySize = 8
    static let entryTypeOffset = 4
    static let entryWidthOffset = 5
    static let entryFlagsOffset = 6
    static let entryReservedOffset = 7
    /// The section begins with a word whose bits say which slots are null.
    static let nullWordFlag: UInt8 = 1
    /// Behind the null word, if there is one, a word of strings or data says which slots have a record of a value that lies elsewhere.
    static let outsideWordFlag: UInt8 = 2

    static let maximumByteCount = Int(UInt32.max) - 1024

    @inline(__always) static func aligned(_ offset: Int) -> Int { (offset + 7) & ~7 }
}

/// The type of a column as it is written in the directory of a page. Raw values are part of the format.
enum ColumnCode: UInt8 {
    case bool = 1
    case int8, int16, int32, int64, uint8, uint16, uint32, uint64
    case float, double, date, string, data, uuid, reference

    init(_ type: ColumnType) {
        self =
            switch type {
            case .bool: .bool
            case .int8: .int8
            case .int16: .int16
            case .int32: .int32
            case .int64: .int64
            case .uint8: .uint8
            case .uint16: .uint16
            case .uint32: .uint32
            case .uint64: .uint64
            case .float: .float
            case .double: .double
            case .date: .date
            case .string: .string
            case .data: .data
            case .uuid: .uuid
            case .reference: .reference
            }
    }

    /// How cells of the type lie in a section.
    enum Shape {
        /// One bit a slot.
        case bits
        /// Arrays of 0, 1, 2, 4 or 8 bytes a slot, extended with the sign or with zeros.
        case signed, unsigned
        /// Arrays of the full width, or of no width when all cells are zero.
        case real
        /// 16 bytes a slot, or none when all cells are zero.
        case uuid
        /// Offsets of 0, 1, 2 or 4 bytes, then the bytes.
        case heap
    }

    var shape: Shape {
        switch self {
        case .bool: .bits
        case .int8, .int16, .int32, .int64: .signed
        case .uint8, .uint16, .uint32, .uint64, .reference: .unsigned
        case .float, .double, .date: .real
        case .uuid: .uuid
        case .string, .data: .heap
        }
    }

    /// The bytes of a cell at full width; of an offset for strings and data.
    var naturalWidth: Int {
        switch self {
        case .bool: 8
        case .int8, .uint8: 1
        case .int16, .uint16: 2
        case .int32, .uint32, .float, .string, .data: 4
        case .int64, .uint64, .double, .date, .reference: 8
        case .uuid: 16
        }
    }

    /// The widths 0, 1, 2, 4 and 8 as bits.
    static let numberWidths: UInt32 = 0b1_0001_0111

    /// The widths that cells of the type may have, as bits.
    var allowedWidths: UInt32 {
        switch shape {
        case .bits: 1 << 8
        case .real, .uuid: 1 | 1 << UInt32(naturalWidth)
        case .signed, .unsigned, .heap: Self.numberWidths & (1 << UInt32(naturalWidth + 1) - 1)
        }
    }
}

/// One column's place in a page.
struct DirectoryEntry {
    var start: Int
    var type: UInt8
    var width: Int
    var flags: UInt8
    var reserved: UInt8

    /// From the entry's eight bytes.
    @inline(__always)
    init(_ word: UInt64) {
        start = Int(word & 0xFFFF_FFFF)
        type = UInt8(truncatingIfNeeded: word >> 32)
        width = Int(word >> 40 & 0xFF)
        flags = UInt8(truncatingIfNeeded: word >> 48)
        reserved = UInt8(truncatingIfNeeded: word >> 56)
    }
}
