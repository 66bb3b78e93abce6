/// A dictionary for the pages of one entity, ready for reading. Any number of threads may use one; 2 bytes of memory a byte.
///
/// `@unchecked Sendable` is right because all it has is immutable: zstd only reads what it prepared.
public final class PageDictionary: @unchecked Sendable {
    /// Dictionaries are not larger: 1 MiB.
    public static var maximumByteCount: Int { PageFormat.maximumDictionaryByteCount }

    public let bytes: [UInt8]
    // Right because it is made in `init` and freed in `deinit`, and every user holds the dictionary.
    let decompression: OpaquePointer

    /// Copies the bytes; some 100 µs. Any bytes are a dictionary: those that do not look like a trained one serve as text to refer to.
    /// - Throws: ``PageError`` for bytes that zstd refuses, none, and too many.
    public init(_ bytes: [UInt8]) throws(PageError) {
        guard !bytes.isEmpty, bytes.count <= Self.maximumByteCount else {
            throw PageError(field: "dictionary", reason: "has \(bytes.count) bytes, not 1 to \(Self.maximumByteCount)")
        }
        self.bytes = bytes
        let made: Result<OpaquePointer, PageError> = bytes.withUnsafeBytes { bytes in
            do throws(PageError) { return .success(try ZstdCall.makeDecompression(bytes)) } catch { return .failure(error) }
        }
        decompression = try made.get()
    }

    deinit { ZstdCall.free(decompression: decompression) }
}

/// Gathers pages and makes a dictionary of what they have in common.
public struct DictionaryTraining {
    private var samples: [UInt8] = []
    private var sizes: [Int] = []

    public init() {}

    /// The bytes gathered so far.
    public var byteCount: Int { samples.count }

    /// Copies what would be packed of a raw page; other bytes, and pages too large to be packed, are left out.
    public mutating func add(_ page: UnsafeRawBufferPointer) {
        guard page.count > PageFormat.headerSize, page.count <= PageFormat.maximumUnpackedByteCount, !PackedPage.isPacked(page)
        else { return }
        samples.append(contentsOf: page[PageFormat.packedStart...])
        sizes.append(page.count - PageFormat.packedStart)
    }

    /// Blocking: about a second for 10 MB of samples.
    /// - Parameter level: of zstd, that pages will be packed with.
    /// - Returns: nil when the samples are too few for a dictionary to pay.
    public func dictionary(maximumByteCount: Int, level: Int) -> [UInt8]? {
        let limit = min(maximumByteCount, PageFormat.maximumDictionaryByteCount)
        guard sizes.count >= 8, limit >= 256 else { return nil }
        var bytes = [UInt8](repeating: 0, count: limit)
        guard let count = ZstdCall.train(samples, sizes, into: &bytes), count > 0, count <= limit else { return nil }
        let trained = bytes[..<count]
        var finished = [UInt8](repeating: 0, count: limit)
        guard let header = ZstdCall.headerSize(trained), header < count,
            let finishedCount = ZstdCall.finish(trained[header...], samples, sizes, level: level, into: &finished),
            finishedCount <= limit
        else { return Array(trained) }
        return Array(finished[..<finishedCount])
    }
}
