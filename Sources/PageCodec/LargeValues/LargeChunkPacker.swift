internal import Platform

/// Makes chunks, one after another. Has working memory, about 1 MB, and so is kept for the next who writes any.
///
/// `@unchecked Sendable` is right because the pool, or the one who took it from there, owns it alone.
public final class LargeChunkPacker: @unchecked Sendable {
    /// The lowest: most large values are compressed already, or text, which gains nearly as much as on higher ones.
    private static let level = 1

    // Right because it is made in `init`, freed in `deinit` and used by the one owner.
    private let compressor: OpaquePointer
    private let buffer: UnsafeMutableRawBufferPointer

    private init() throws(PageError) {
        let made = try ZstdCall.makeCompressor()
        do throws(PageError) { try ZstdCall.configure(made, level: Self.level) } catch {
            ZstdCall.free(compressor: made)
            throw error
        }
        compressor = made
        let room = ZstdCall.bound(LargeChunk.maximumByteCount)
        buffer = .allocate(byteCount: room, alignment: 8)
    }

    private static let maximumIdle = 2
    private static let idle = Mutex<[LargeChunkPacker]>([])

    public static func take() throws(PageError) -> LargeChunkPacker {
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        return try LargeChunkPacker()
    }

    public static func give(_ packer: LargeChunkPacker) {
        idle.withLock { if $0.count < maximumIdle { $0.append(packer) } }
    }

    deinit {
        ZstdCall.free(compressor: compressor)
        buffer.deallocate()
    }

    /// Divides a value into chunks and writes them in the order of their keys.
    ///
    /// - Returns: what the page has in place of the value.
    public func write(
        _ bytes: UnsafeRawBufferPointer, number: UInt64, packs: (_ raw: Int, _ packed: Int) -> Bool,
        put: (_ key: UInt64, _ byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) throws -> Void
    ) throws -> LargeValueRecord {
        var hash = LargeValueHash()
        let chunks = 0..<LargeChunk.count(byteCount: bytes.count)
        try write(chunks, of: bytes, number: number, hash: &hash, packs: packs, put: put)
        return LargeValueRecord(number: number, byteCount: bytes.count, hash: hash.value)
    }

    /// Writes some chunks of a value, after those before them.
    ///
    /// - Parameters:
    ///   - number: of the value in its entity.
    ///   - hash: of the chunks so far.
    ///   - packs: whether a chunk is packed that takes so many bytes raw, and so many packed, headers included.
    ///   - put: makes room for a chunk with this key and byte count, and calls its last argument with it, once.
    public func write(
        _ chunks: Range<Int>, of bytes: UnsafeRawBufferPointer, number: UInt64, hash: inout LargeValueHash,
        packs: (_ raw: Int, _ packed: Int) -> Bool,
        put: (_ key: UInt64, _ byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) throws -> Void
    ) throws {
        for index in chunks {
            let start = index * LargeChunk.maximumByteCount
            let end = min(start + LargeChunk.maximumByteCount, bytes.count)
            let part = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            hash.add(part)
            let key = LargeChunk.key(number, index)
            let raw = LargeChunk.headerByteCount + part.count
            let packed = try pack(part)
            let isPacked = packs(raw, packed)
            try put(key, isPacked ? packed : raw) { write(isPacked ? .packed(part) : .raw(part), key: key, into: $0) }
        }
    }

    /// What a chunk is going to take, header included, when it is packed; its bytes wait here for ``write(_:key:into:)``.
    /// Precondition: at most ``LargeChunk/maximumByteCount`` bytes.
    private func pack(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> Int {
        LargeChunk.headerByteCount + (try ZstdCall.compress(compressor, bytes, into: buffer))
    }

    /// Which bytes a chunk gets.
    private enum Content {
        case raw(UnsafeRawBufferPointer)
        /// Those packed last, of so many bytes of a value.
        case packed(UnsafeRawBufferPointer)
    }

    /// Fills a chunk. Precondition: the target has as many bytes as ``pack(_:)`` said, or a header more than the raw bytes.
    private func write(_ content: Content, key: UInt64, into target: UnsafeMutableRawBufferPointer) {
        guard let base = target.baseAddress else { return }
        let payload = UnsafeMutableRawBufferPointer(rebasing: target[LargeChunk.headerByteCount...])
        switch content {
        case .raw(let bytes):
            base.put(UInt32(bytes.count), at: LargeChunk.byteCountOffset)
            base.put(LargeChunk.Form.raw.rawValue, at: LargeChunk.formOffset)
            payload.copyMemory(from: bytes)
        case .packed(let bytes):
            base.put(UInt32(bytes.count), at: LargeChunk.byteCountOffset)
            base.put(LargeChunk.Form.packed.rawValue, at: LargeChunk.formOffset)
            payload.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<payload.count]))
        }
        base.put(LargeChunk.checksum(UnsafeRawBufferPointer(target), key: key), at: LargeChunk.checksumOffset)
    }
}
