/// A dictionary for the pages of one entity, ready for reading. Any number of threads may use it. It takes 2 bytes of memory
/// per byte.
///
/// `@unchecked Sendable` is right because all its content is immutable: zstd only reads what it prepared.
public final class PageDictionary: @unchecked Sendable {
    /// The maximum size of a dictionary: 1 MiB.
    public static var maximumByteCount: Int { PageFormat.maximumDictionaryByteCount }

    /// The bytes that the dictionary was created from.
    public let bytes: [UInt8]
    // Right because `init` creates it, `deinit` frees it, and every user keeps the dictionary alive.
    let decompression: OpaquePointer

    /// Creates a dictionary. Copies the bytes; takes some 100 µs. Any bytes are a dictionary: bytes that are not a trained
    /// dictionary serve as reference text.
    /// - Throws: ``PageError`` for no bytes, for too many, and for bytes that zstd refuses.
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

/// A trainer that gathers pages and creates a dictionary of their common content.
public struct DictionaryTraining {
    private var samples: [UInt8] = []
    private var sizes: [Int] = []

    /// Creates a trainer without samples.
    public init() {}

    /// The number of bytes gathered so far.
    public var byteCount: Int { samples.count }

    /// Copies the compressible part of a raw page. Ignores other bytes, and pages too large to be packed.
    public mutating func add(_ page: UnsafeRawBufferPointer) {
        guard page.count > PageFormat.headerSize, page.count <= PageFormat.maximumUnpackedByteCount, !PackedPage.isPacked(page)
        else { return }
        samples.append(contentsOf: page[PageFormat.packedStart...])
        sizes.append(page.count - PageFormat.packedStart)
    }

    /// Trains a dictionary. Blocks: about a second for 10 MB of samples.
    /// - Parameters:
    ///   - maximumByteCount: The maximum size of the dictionary in bytes.
    ///   - level: The zstd level with which pages will be packed.
    /// - Returns: The dictionary, or nil if there are too few samples for a dictionary to pay.
    public func dictionary(maximumByteCount: Int, level: Int) -> [UInt8]? {
        let limit = min(maximumByteCount, PageFormat.maximumDictionaryByteCount)
        guard sizes.count >= 8, limit >= 256 else { return nil }
        var bytes = [UInt8](repeating: 0, count: limit)
        guard let count = ZstdCall.train(samples, sizes, into: &bytes), count > 0, count <= limit else { return nil }
        let trained = bytes[..<count]
        var finished = [UInt8](repeating: 0, count: limit)
        guard let header = ZstdCall.headerSize(trained), header < count,
            let finishedCount = ZstdCall.finish(
                trained[header...], samples: samples, sizes: sizes, level: level, into: &finished),
            finishedCount <= limit
        else { return Array(trained) }
        return Array(finished[..<finishedCount])
    }
}
