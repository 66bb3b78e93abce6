import StoreInterface

/// A page under zstd, as it lies in a file: which objects it has can be told without unpacking it.
///
/// A borrowed view, as ``ObjectPage`` is.
public struct PackedPage {
    /// What tells two packed or raw pages apart, checksum included, lies in the first so many bytes.
    public static var headerByteCount: Int { PageFormat.headerSize }

    /// Which slots hold an object. Not to be trusted before the page has been unpacked: the checksum is that of the raw page.
    public let presence: UInt64
    /// The number of the schema that wrote the page.
    public let schemaNumber: UInt32
    /// The least generation of the present objects.
    public let baseGeneration: Generation
    /// Of the page before it was packed.
    public let checksum: UInt64
    /// Which of its entity's dictionaries the page was packed with; 0: none.
    public let dictionaryNumber: UInt32
    /// Of the page before it was packed: 48 bytes to 16 MiB, and never more than the packed bytes can hold.
    public let unpackedByteCount: Int
    // Right because the maker keeps the bytes alive and unchanged as long as the view is used.
    private let bytes: UnsafeRawBufferPointer
    private let place: PagePlace?

    /// Whether bytes claim to be a packed page. One look at the flags.
    @inlinable
    public static func isPacked(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes.count >= 8 else { return false }
        // `PageFormat.flagsOffset` and `.packedFlag`, as numbers so that other modules can inline this.
        return UInt16(littleEndian: base.loadUnaligned(fromByteOffset: 6, as: UInt16.self)) & 1 != 0
    }

    /// How many bytes of a packed page lie elsewhere, when these are its first ones: its byte count counts them too. 0 for bytes
    /// that are no beginning of a packed page.
    public static func missingByteCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let base = bytes.baseAddress, bytes.count >= PageFormat.headerSize, isPacked(bytes) else { return 0 }
        return max(0, Int(base.number(UInt32.self, at: PageFormat.byteCountOffset)) - bytes.count)
    }

    /// Which slots hold an object, from the first bytes of a packed page.
    public static func presence(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> UInt64 {
        guard let base = bytes.baseAddress, bytes.count >= PageFormat.headerSize else {
            throw PageError(offset: bytes.count, field: "packed page", reason: "ends inside its header")
        }
        return base.number(UInt64.self, at: PageFormat.presenceOffset)
    }

    /// Looks at the header and at what the frame says of itself. Some tens of nanoseconds.
    /// - Parameter place: see ``PageLayout/place(_:)``.
    /// - Throws: ``PageError`` for bytes that are not a packed page.
    public init(_ bytes: UnsafeRawBufferPointer, place: PagePlace? = nil) throws(PageError) {
        guard let base = bytes.baseAddress, bytes.count > PageFormat.headerSize else {
            throw PageError(offset: bytes.count, field: "packed page", reason: "ends inside its header")
        }
        try ObjectPage.checkStart(base, count: bytes.count, flags: PageFormat.packedFlag, format: PagePlace.formatVersion(place))
        self.bytes = bytes
        self.place = place
        checksum = base.number(UInt64.self, at: PageFormat.checksumOffset)
        schemaNumber = base.number(UInt32.self, at: PageFormat.schemaNumberOffset)
        presence = base.number(UInt64.self, at: PageFormat.presenceOffset)
        baseGeneration = base.number(UInt64.self, at: PageFormat.baseGenerationOffset)
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

    /// What a frame can hold: a block has at least four bytes and gives at most 128 KiB.
    private static func most(_ frameByteCount: Int) -> Int {
        min(PageFormat.maximumUnpackedByteCount, PageFormat.packedStart + (frameByteCount / 4 + 1) << 17)
    }

    /// Writes the page as it was before it was packed, checked against its checksum. About 1 ns a byte.
    ///
    /// Precondition: the target has ``unpackedByteCount`` bytes.
    /// - Parameter dictionary: the one of ``dictionaryNumber``; nil for 0.
    /// - Throws: ``PageError`` for damaged bytes and for another dictionary; what the target holds then has no meaning.
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

    /// As ``unpack(into:dictionary:)``, into new memory.
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
