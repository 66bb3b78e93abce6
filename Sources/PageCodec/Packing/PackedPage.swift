import StoreInterface
import StoreModel

/// A page compressed with zstd, as stored in a file. Its occupied slots are known without unpacking it.
///
/// A borrowed view, like ``ObjectPage``.
public struct PackedPage {
    /// The number of leading bytes that distinguish two packed or raw pages, checksum included.
    public static var headerByteCount: Int { PageFormat.headerSize }

    /// The slots that have an object. Do not trust it before the page has been unpacked: the checksum is that of the raw
    /// page.
    public let presence: UInt64
    /// The number of the schema that wrote the page.
    public let schemaNumber: UInt32
    /// The least generation of the objects in the page.
    public let baseGeneration: Generation
    /// The checksum of the unpacked page.
    public let checksum: UInt64
    /// The number of the entity's dictionary that the page was packed with; 0 for none.
    public let dictionaryNumber: UInt32
    /// The size of the unpacked page: 48 bytes to 16 MiB, and never more than the packed bytes can contain.
    public let unpackedByteCount: Int
    // Right because the creator keeps the bytes alive and unchanged as long as the view is used.
    private let bytes: UnsafeRawBufferPointer
    private let place: PageLocation?

    /// Returns whether the header of the bytes marks a packed page. Reads only the flags.
    @inlinable
    public static func isPacked(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes.count >= 8 else { return false }
        // `PageFormat.flagsOffset` and `.packedFlag`, as literals so that other modules can inline this function.
        return UInt16(littleEndian: base.loadUnaligned(fromByteOffset: 6, as: UInt16.self)) & 1 != 0
    }

    /// Returns the number of a packed page's bytes that are stored outside the passed bytes, which are its first bytes.
    /// Returns 0 for bytes that are not the beginning of a packed page.
    public static func missingByteCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let base = bytes.baseAddress, bytes.count >= PageFormat.headerSize, isPacked(bytes) else { return 0 }
        return max(0, Int(base.number(UInt32.self, at: PageFormat.byteCountOffset)) - bytes.count)
    }

    /// Returns the slots that have an object, from the first bytes of a packed page.
    public static func presence(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> UInt64 {
        guard let base = bytes.baseAddress, bytes.count >= PageFormat.headerSize else {
            throw PageError(offset: bytes.count, field: "packed page", reason: "ends inside its header")
        }
        return base.number(UInt64.self, at: PageFormat.presenceOffset)
    }

    /// Creates a view after checking the header and the frame's own information. Some tens of nanoseconds.
    /// - Parameters:
    ///   - bytes: The packed page. They must stay valid as long as the view.
    ///   - place: See ``PageLayout/place(_:)``.
    /// - Throws: ``PageError`` for bytes that are not a packed page.
    public init(_ bytes: UnsafeRawBufferPointer, place: PageLocation? = nil) throws(PageError) {
        guard let base = bytes.baseAddress, bytes.count > PageFormat.headerSize else {
            throw PageError(offset: bytes.count, field: "packed page", reason: "ends inside its header")
        }
        try ObjectPage.checkStart(
            base, count: bytes.count, flags: PageFormat.packedFlag, format: PageLocation.formatVersion(place))
        self.bytes = bytes
        self.place = place
        checksum = base.number(UInt64.self, at: PageFormat.checksumOffset)
        schemaNumber = base.number(UInt32.self, at: PageFormat.schemaNumberOffset)
        presence = base.number(UInt64.self, at: PageFormat.presenceOffset)
        baseGeneration = Generation(rawValue: base.number(UInt64.self, at: PageFormat.baseGenerationOffset))
        dictionaryNumber = base.number(UInt32.self, at: PageFormat.dictionaryNumberOffset)
        unpackedByteCount = Int(base.number(UInt32.self, at: PageFormat.unpackedByteCountOffset))
        guard presence != 0 else {
            throw PageError(offset: PageFormat.presenceOffset, field: "presence", reason: "is empty")
        }
        let frame = UnsafeRawBufferPointer(rebasing: bytes[PageFormat.headerSize...])
        guard unpackedByteCount >= PageFormat.headerSize, unpackedByteCount <= Self.most(frame.count) else {
            throw PageError(
                offset: PageFormat.unpackedByteCountOffset, field: "unpacked byte count",
                reason: "\(unpackedByteCount) is more than \(frame.count) packed bytes can hold, or less than a page has")
        }
        guard let size = ZstdCall.contentSize(frame), size == UInt64(unpackedByteCount - PageFormat.packedStart) else {
            throw PageError(
                offset: PageFormat.headerSize, field: "packed bytes",
                reason: "are not a frame of \(unpackedByteCount - PageFormat.packedStart) bytes")
        }
    }

    /// Returns the maximum content of a frame: a block has at least four bytes and contains at most 128 KiB.
    private static func most(_ frameByteCount: Int) -> Int {
        min(PageFormat.maximumUnpackedByteCount, PageFormat.packedStart + (frameByteCount / 4 + 1) << 17)
    }

    /// Writes the unpacked page and verifies its checksum. About 1 ns per byte.
    ///
    /// Precondition: the target has ``unpackedByteCount`` bytes.
    /// - Parameters:
    ///   - target: The room for the page.
    ///   - dictionary: The dictionary with ``dictionaryNumber``; nil for 0.
    /// - Throws: ``PageError`` for damaged bytes and for another dictionary. The content of the target is then undefined.
    public func unpack(into target: UnsafeMutableRawBufferPointer, dictionary: PageDictionary?) throws(PageError) {
        guard let base = target.baseAddress, target.count == unpackedByteCount else {
            throw PageError(
                field: "packed page", reason: "needs room for \(unpackedByteCount) bytes and is given \(target.count)")
        }
        let start = PageFormat.packedStart
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<start]))
        base.put(UInt16(0), at: PageFormat.flagsOffset)
        base.put(UInt32(unpackedByteCount), at: PageFormat.byteCountOffset)
        let decompressor = try DecompressorPool.take()
        defer { DecompressorPool.give(decompressor) }
        let count = try ZstdCall.decompress(
            decompressor.pointer, UnsafeRawBufferPointer(rebasing: bytes[PageFormat.headerSize...]),
            into: UnsafeMutableRawBufferPointer(rebasing: target[start...]), dictionary: dictionary?.decompression)
        guard count == unpackedByteCount - start, PageHash.page(UnsafeRawBufferPointer(target), place) == checksum else {
            throw PageError(
                offset: PageFormat.checksumOffset, field: "checksum", reason: "does not fit the page that the packed bytes give")
        }
    }

    /// Unpacks the page into new memory; see ``unpack(into:dictionary:)``.
    public func unpacked(_ dictionary: PageDictionary?) throws(PageError) -> [UInt8] {
        var failure: PageError?
        let bytes = [UInt8](unsafeUninitializedCapacity: unpackedByteCount) { target, count in
            do throws(PageError) {
                let room = UnsafeMutableRawBufferPointer(start: target.baseAddress, count: unpackedByteCount)
                try unpack(into: room, dictionary: dictionary)
                count = unpackedByteCount
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
