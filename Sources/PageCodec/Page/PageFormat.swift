import StoreInterface
import StoreModel

/// Offsets and numbers of the object page. `Docs/Internals/FileFormat.md` describes their meaning. All numbers are
/// little-endian.
enum PageFormat {
    /// "STPG" when read as bytes.
    static let magic: UInt32 = 0x4750_5453
    /// The version of pages whose checksum does not cover their place; see ``PageLocation``.
    static let version: UInt16 = 1
    /// The flag of a packed page, whose bytes from ``packedStart`` on are compressed.
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

    // A packed page has the same header up to `packedStart`. Its checksum is that of the unpacked page; its byte count is its
    // own. Then follow two numbers and, from `headerSize` on, one zstd frame of all bytes from `packedStart` on.
    static let packedStart = 40
    static let unpackedByteCountOffset = 40
    static let dictionaryNumberOffset = 44
    /// The maximum size of a page to pack. It limits the memory that a packed page makes a reader allocate.
    static let maximumUnpackedByteCount = 1 << 24
    /// The maximum size of a dictionary.
    static let maximumDictionaryByteCount = 1 << 20

    /// The size of a directory entry: section offset (4 bytes), type, width, flags, zero.
    static let entrySize = 8
    static let entryTypeOffset = 4
    static let entryWidthOffset = 5
    static let entryFlagsOffset = 6
    static let entryReservedOffset = 7
    /// The section begins with a word whose bits are the slots that are null.
    static let nullWordFlag: UInt8 = 1
    /// For strings and data, a further word follows the null word, if any. Its bits are the slots that have a record of an
    /// out-of-line value.
    static let outsideWordFlag: UInt8 = 2

    static let maximumByteCount = Int(UInt32.max) - 1024

    @inline(__always) static func aligned(_ offset: Int) -> Int { (offset + 7) & ~7 }
}

/// The type of a column in the directory of a page. The raw values are part of the format.
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

    /// The arrangement of a type's cells in a section.
    enum Shape {
        /// One bit per slot.
        case bits
        /// Arrays of 0, 1, 2, 4 or 8 bytes per slot, extended with the sign or with zeros.
        case signed, unsigned
        /// Arrays of the full width, or of no width if all cells are zero.
        case real
        /// 16 bytes per slot, or none if all cells are zero.
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

    /// The size of a cell at full width in bytes; for strings and data, the size of an offset.
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

    /// A mask of the widths 0, 1, 2, 4 and 8.
    static let numberWidths: UInt32 = 0b1_0001_0111

    /// A mask of the widths that cells of the type may have.
    var allowedWidths: UInt32 {
        switch shape {
        case .bits: 1 << 8
        case .real, .uuid: 1 | 1 << UInt32(naturalWidth)
        case .signed, .unsigned, .heap: Self.numberWidths & (1 << UInt32(naturalWidth + 1) - 1)
        }
    }
}

/// The directory entry of one column in a page.
struct DirectoryEntry {
    var start: Int
    var type: UInt8
    var width: Int
    var flags: UInt8
    var reserved: UInt8

    /// Reads an entry from its eight bytes.
    @inline(__always)
    init(_ word: UInt64) {
        start = Int(word & 0xFFFF_FFFF)
        type = UInt8(truncatingIfNeeded: word >> 32)
        width = Int(word >> 40 & 0xFF)
        flags = UInt8(truncatingIfNeeded: word >> 48)
        reserved = UInt8(truncatingIfNeeded: word >> 56)
    }

    /// Returns the bits of some fields of an entry.
    static func bits(type: UInt8, flags: UInt8, reserved: UInt8) -> UInt64 {
        UInt64(type) << 32 | UInt64(flags) << 48 | UInt64(reserved) << 56
    }
}
