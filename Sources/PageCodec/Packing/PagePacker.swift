import StoreInterface
import StoreModel

/// A packer of raw pages, one after another, with one dictionary. Not `Sendable`: it has up to some MB of working memory.
public final class PagePacker {
    /// The number of the dictionary in packed pages; 0 without a dictionary.
    public let dictionaryNumber: UInt32
    // Right because `init` creates it, `deinit` frees it, and only the one owner uses it.
    private let compressor: OpaquePointer
    // Right for the same reason as the compressor.
    private let compression: OpaquePointer?
    private var buffer: [UInt8] = []

    /// Creates a packer.
    /// - Parameters:
    ///   - dictionary: The dictionary; nil to pack without a dictionary.
    ///   - number: The dictionary's number, from 1 on, which is written to the pages.
    ///   - level: The zstd level, 1 to 22.
    public init(dictionary: PageDictionary?, number: UInt32, level: Int) throws(PageError) {
        dictionaryNumber = dictionary == nil ? 0 : number
        compressor = try ZstdCall.makeCompressor()
        guard let dictionary else {
            compression = nil
            do throws(PageError) { try ZstdCall.configure(compressor, level: level) } catch {
                ZstdCall.free(compressor: compressor)
                throw error
            }
            return
        }
        let prepared: Result<OpaquePointer, PageError> = dictionary.bytes.withUnsafeBytes { bytes in
            do throws(PageError) {
                return .success(try ZstdCall.makeCompression(bytes, level: level))
            } catch {
                return .failure(error)
            }
        }
        do throws(PageError) {
            let made = try prepared.get()
            compression = made
            try ZstdCall.configure(compressor, level: level)
            try ZstdCall.use(made, in: compressor)
        } catch {
            if case .success(let made) = prepared { ZstdCall.free(compression: made) }
            ZstdCall.free(compressor: compressor)
            throw error
        }
    }

    deinit {
        ZstdCall.free(compressor: compressor)
        if let compression { ZstdCall.free(compression: compression) }
    }

    /// Packs one raw page, whatever the gain. 10 µs to 1 ms per page of 4 KB, depending on the level.
    ///
    /// - Parameters:
    ///   - page: The raw page.
    ///   - place: See ``PageLayout/place(_:)``.
    /// - Returns: The packed page, or nil if the page is already packed or too large to be packed.
    /// - Throws: ``PageError`` for bytes whose header or checksum is not that of a page, because damage must not be packed.
    public func pack(_ page: UnsafeRawBufferPointer, place: PageLocation? = nil) throws(PageError) -> [UInt8]? {
        guard !PackedPage.isPacked(page), page.count <= PageFormat.maximumUnpackedByteCount else { return nil }
        guard let base = page.baseAddress, page.count >= PageFormat.headerSize else {
            throw PageError(offset: page.count, field: "page", reason: "ends inside its header")
        }
        try ObjectPage.checkStart(base, count: page.count, flags: 0, format: PageLocation.formatVersion(place))
        guard PageHash.page(page, place) == base.number(UInt64.self, at: PageFormat.checksumOffset) else {
            throw PageError(offset: PageFormat.checksumOffset, field: "checksum", reason: "does not fit the page's bytes")
        }
        let rest = UnsafeRawBufferPointer(rebasing: page[PageFormat.packedStart...])
        let room = PageFormat.headerSize + ZstdCall.bound(rest.count)
        if buffer.count < room { buffer = [UInt8](repeating: 0, count: room) }
        let outcome: Result<Int, PageError> = buffer.withUnsafeMutableBytes { buffer in
            do throws(PageError) {
                let frame = UnsafeMutableRawBufferPointer(rebasing: buffer[PageFormat.headerSize...])
                return .success(PageFormat.headerSize + (try ZstdCall.compress(compressor, rest, into: frame)))
            } catch {
                return .failure(error)
            }
        }
        let count = try outcome.get()
        buffer.withUnsafeMutableBytes { buffer in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: page[..<PageFormat.packedStart]))
            guard let target = buffer.baseAddress else { return }
            target.put(PageFormat.packedFlag, at: PageFormat.flagsOffset)
            target.put(UInt32(count), at: PageFormat.byteCountOffset)
            target.put(UInt32(page.count), at: PageFormat.unpackedByteCountOffset)
            target.put(dictionaryNumber, at: PageFormat.dictionaryNumberOffset)
        }
        return Array(buffer[..<count])
    }
}
