#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// The objects of one page, read in place.
///
/// A borrowed view: its creator keeps the bytes alive and unchanged as long as it is used. Creating a view costs some tens of
/// nanoseconds with ``Check/header``. No call allocates more than the value that it returns, except for out-of-line values,
/// whose chunks are unpacked.
public struct ObjectPage {
    /// The checks before the bytes are trusted.
    public enum Check: Sendable {
        /// Checks magic, sizes and section bounds, so that later reads are memory safe. They may still throw.
        case header
        /// Also verifies the checksum. For pages that a merge copies from, so that damage does not get a fresh checksum.
        case checksum
        /// Also checks every offset and every string of the page, so that later reads throw only for out-of-line values.
        case full
    }

    // Invariants after `init`: every section of the directory is inside the bytes, sections ascend and do not overlap, and
    // every present slot is below the capacity. The pointer is right because the creator keeps the bytes alive.
    let base: UnsafeRawPointer
    let byteCount: Int
    let capacity: Int
    /// The number of the layout's columns that the page has in place: all of them, or none if the page must be translated.
    let columnCount: Int
    /// The number of the page's own columns.
    let storedCount: Int
    /// The page's own columns.
    var storedColumns: Range<ColumnIndex> { 0..<ColumnIndex(rawValue: storedCount) }
    /// The translation of a page of an older schema. Right because the layout keeps it alive, and the creator of the page
    /// keeps the layout alive.
    let translation: Unmanaged<PageTranslation>?
    let generations: Int
    let generationWidth: Int
    let baseGeneration: Generation
    /// The source of out-of-line values; nil if none of them will be read.
    let large: LargeValues?

    /// The slots that have an object.
    public let presence: UInt64
    /// The number of the schema that wrote the page.
    public let schemaNumber: UInt32

    /// The bytes of the page, valid as long as the bytes that the view was created from.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: byteCount) }

    /// Creates a view.
    /// - Parameters:
    ///   - bytes: The page. They must stay valid as long as the view.
    ///   - layout: The layout of the entity's pages.
    ///   - number: The page's number, which only its checksum needs.
    ///   - check: How much of the page is checked now.
    ///   - large: The source of out-of-line values. Without it, reading such a value throws.
    /// - Throws: ``PageError`` for bytes that are not a page of this layout.
    public init(
        _ bytes: UnsafeRawBufferPointer, layout: PageLayout, number: PageNumber = 0, check: Check, large: LargeValues? = nil
    ) throws(PageError) {
        guard let base = bytes.baseAddress, bytes.count >= PageFormat.headerSize else {
            throw PageError(offset: bytes.count, field: "page", reason: "ends inside its header")
        }
        try Self.checkStart(base, count: bytes.count, flags: 0, format: layout.formatVersion)
        self.base = base
        self.large = large
        byteCount = bytes.count
        schemaNumber = base.number(UInt32.self, at: PageFormat.schemaNumberOffset)
        presence = base.number(UInt64.self, at: PageFormat.presenceOffset)
        baseGeneration = Generation(rawValue: base.number(UInt64.self, at: PageFormat.baseGenerationOffset))
        generations = Int(base.number(UInt32.self, at: PageFormat.generationsOffset))
        generationWidth = Int(base.number(UInt8.self, at: PageFormat.generationWidthOffset))
        capacity = Int(base.number(UInt8.self, at: PageFormat.capacityOffset))
        storedCount = Int(base.number(UInt16.self, at: PageFormat.columnCountOffset))
        if schemaNumber == layout.schemaNumber {
            translation = nil
            columnCount = storedCount
            try checkSections(layout.columns, layout)
        } else {
            let older = try layout.translation(schemaNumber)
            translation = older.isIdentity ? nil : Unmanaged.passUnretained(older)
            columnCount = older.isIdentity ? storedCount : 0
            try checkSections(older.columns, layout)
        }
        if check != .header { try checkChecksum(layout.place(number)) }
        if check == .full { try checkContents() }
    }

    /// Returns the save that last wrote the object in a slot.
    public func version(_ slot: Int) throws(PageError) -> Generation {
        guard slot >= 0, slot < capacity else { throw absent(slot) }
        let delta = base.unsigned(width: generationWidth, at: generations + slot * generationWidth)
        return Generation(rawValue: baseGeneration.rawValue &+ delta)
    }

    /// Decodes one value with the page's own schema. Precondition: the slot is present, and the layout has the column.
    public func value(_ slot: Int, _ column: ColumnIndex) throws(PageError) -> Value {
        guard slot >= 0, slot < capacity else { throw absent(slot) }
        guard column.rawValue < columnCount else { return try olderValue(slot, column) }
        let section = section(column)
        if section.nulls >> UInt64(slot) & 1 != 0 { return .null }
        return try value(slot, in: section)
    }

    /// Returns the bytes of a column of data in the page. Returns nil if the page does not have them in one piece: for null, an out-of-line
    /// value, and a column that an older schema wrote. Precondition as for ``value(_:_:)``.
    public func dataInPlace(_ slot: Int, _ column: ColumnIndex) throws(PageError) -> UnsafeRawBufferPointer? {
        guard slot >= 0, slot < capacity else { throw absent(slot) }
        guard column.rawValue < columnCount else { return nil }
        let section = section(column)
        guard section.code == .data, (section.nulls | section.outside) >> UInt64(slot) & 1 == 0 else { return nil }
        return try span(slot, in: section)
    }

    /// Returns whether a value is null, without decoding it. Precondition as for ``value(_:_:)``.
    public func isNull(_ slot: Int, _ column: ColumnIndex) throws(PageError) -> Bool {
        guard slot >= 0, slot < capacity else { throw absent(slot) }
        guard column.rawValue < columnCount else { return try olderValue(slot, column).isNull }
        return section(column).nulls >> UInt64(slot) & 1 != 0
    }

    private func absent(_ slot: Int) -> PageError {
        PageError(offset: PageFormat.presenceOffset, field: "presence", reason: "slot \(slot) holds no object")
    }

    /// One column of the page.
    struct Section {
        var code: ColumnCode
        var width: Int
        var nulls: UInt64
        /// The slots of strings or data that have a record instead of a value.
        var outside: UInt64
        /// The offset of the array.
        var array: Int
        /// The offset of the next section.
        var end: Int
    }

    /// Returns the section of a column.
    /// - Parameter column: The page's own column, one of ``storedColumns``.
    @inline(__always)
    func section(_ column: ColumnIndex) -> Section {
        let entry = PageFormat.headerSize + column.rawValue * PageFormat.entrySize
        var start = Int(base.number(UInt32.self, at: entry))
        let end =
            column.rawValue + 1 < storedCount ? Int(base.number(UInt32.self, at: entry + PageFormat.entrySize)) : generations
        var nulls: UInt64 = 0
        var outside: UInt64 = 0
        let flags = base.load(fromByteOffset: entry + PageFormat.entryFlagsOffset, as: UInt8.self)
        if flags & PageFormat.nullWordFlag != 0 {
            nulls = base.number(UInt64.self, at: start)
            start += 8
        }
        if flags & PageFormat.outsideWordFlag != 0 {
            outside = base.number(UInt64.self, at: start)
            start += 8
        }
        let code = base.load(fromByteOffset: entry + PageFormat.entryTypeOffset, as: UInt8.self)
        return Section(
            // The check of the directory has verified that the code is known.
            code: ColumnCode(rawValue: code).unsafelyUnwrapped,
            width: Int(base.load(fromByteOffset: entry + PageFormat.entryWidthOffset, as: UInt8.self)),
            nulls: nulls, outside: outside, array: start, end: end)
    }

    /// Returns whether one of the page's own columns has a null word.
    func hasNullWord(_ column: ColumnIndex) -> Bool {
        let flags = PageFormat.headerSize + column.rawValue * PageFormat.entrySize + PageFormat.entryFlagsOffset
        return base.load(fromByteOffset: flags, as: UInt8.self) & PageFormat.nullWordFlag != 0
    }

    @inline(__always)
    func value(_ slot: Int, in section: Section) throws(PageError) -> Value {
        let width = section.width
        let cell = section.array + slot * width
        switch section.code {
        case .bool:
            return .bool(base.number(UInt64.self, at: section.array) >> UInt64(slot) & 1 != 0)
        case .int8, .int16, .int32, .int64:
            return .int(base.signed(width: width, at: cell))
        case .uint8, .uint16, .uint32:
            return .int(Int64(truncatingIfNeeded: base.unsigned(width: width, at: cell)))
        case .uint64:
            return .uint(base.unsigned(width: width, at: cell))
        case .reference:
            return .reference(ObjectKey(rawValue: base.unsigned(width: width, at: cell)))
        case .float:
            return .double(Double(Float(bitPattern: UInt32(truncatingIfNeeded: base.unsigned(width: width, at: cell)))))
        case .double, .date:
            return .double(Double(bitPattern: base.unsigned(width: width, at: cell)))
        case .uuid:
            return .uuid(width == 0 ? UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) : uuid(at: cell))
        case .string:
            if section.outside >> UInt64(slot) & 1 != 0 { return .string(try largeString(slot, in: section)) }
            let span = try span(slot, in: section)
            guard let text = String(checkedUTF8: span) else {
                throw PageError(offset: cell, field: "string", reason: "is not UTF-8")
            }
            return .string(text)
        case .data:
            if section.outside >> UInt64(slot) & 1 != 0 { return .data(try largeData(slot, in: section)) }
            return .data(Data(try span(slot, in: section)))
        }
    }

    private func uuid(at offset: Int) -> UUID {
        UUID(uuid: base.loadUnaligned(fromByteOffset: offset, as: uuid_t.self))
    }

    /// Returns the bytes of a string or data value, or of the record of an out-of-line value, after checking the section's
    /// bounds. Precondition: a heap section, and a slot below the capacity.
    @inline(__always)
    func span(_ slot: Int, in section: Section) throws(PageError) -> UnsafeRawBufferPointer {
        let width = section.width
        let heap = section.array + width * (capacity + 1)
        let start = Int(base.unsigned(width: width, at: section.array + slot * width))
        let end = Int(base.unsigned(width: width, at: section.array + (slot + 1) * width))
        guard start <= end, end <= section.end - heap else {
            throw PageError(offset: section.array + slot * width, field: "heap offsets", reason: "point outside their section")
        }
        return UnsafeRawBufferPointer(start: base + heap + start, count: end - start)
    }
}
