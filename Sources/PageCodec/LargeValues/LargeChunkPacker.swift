internal import Platform

/// A writer of chunks, one after another. It has about 1 MB of working memory and is therefore kept for reuse.
///
/// `@unchecked Sendable` is right because one owner uses it: the pool, or the caller that took it from the pool.
public final class LargeChunkPacker: @unchecked Sendable {
    /// The lowest level. Most large values are already compressed, or are text, which gains nearly as much as on higher
    /// levels.
    private static let level = 1

    // Right because `init` creates it, `deinit` frees it, and only the one owner uses it.
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

    /// Takes an idle packer from the pool, or creates one. Return it with ``give(_:)``.
    /// - Throws: ``PageError`` if there is no memory for a new packer.
    public static func take() throws(PageError) -> LargeChunkPacker {
        if let kept = idle.withLock({ $0.popLast() }) { return kept }
        return try LargeChunkPacker()
    }

    /// Returns a packer to the pool, which keeps at most two. The caller must not use it afterwards.
    public static func give(_ packer: LargeChunkPacker) {
        idle.withLock { if $0.count < maximumIdle { $0.append(packer) } }
    }

    deinit {
        ZstdCall.free(compressor: compressor)
        buffer.deallocate()
    }

    /// Divides a value into chunks and writes them in the order of their keys.
    ///
    /// - Returns: The record that the page stores instead of the value.
    public func write(
        _ bytes: UnsafeRawBufferPointer, number: UInt64, packs: (_ raw: Int, _ packed: Int) -> Bool,
        put: (_ key: UInt64, _ byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) throws -> Void
    ) throws -> LargeValueRecord {
        var hash = LargeValueHash()
        let chunks = 0..<LargeChunk.count(byteCount: bytes.count)
        try write(chunks, of: bytes, number: number, hash: &hash, packs: packs, put: put)
        return LargeValueRecord(number: number, byteCount: bytes.count, hash: hash.value)
    }

    /// Writes some chunks of a value, after the earlier chunks.
    ///
    /// - Parameters:
    ///   - chunks: The numbers of the chunks to write.
    ///   - bytes: The whole value.
    ///   - number: The number of the value in its entity.
    ///   - hash: The hash of the chunks so far.
    ///   - packs: Returns whether to pack a chunk, from its raw and its packed size in bytes, headers included.
    ///   - put: Makes room for a chunk with this key and byte count, and calls its last argument with the room, once.
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

    /// Packs a chunk and returns its size, header included. The packed bytes stay in the buffer for ``write(_:key:into:)``.
    /// Precondition: at most ``LargeChunk/maximumByteCount`` bytes.
    private func pack(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> Int {
        LargeChunk.headerByteCount + (try ZstdCall.compress(compressor, bytes, into: buffer))
    }

    /// The bytes for a chunk.
    private enum Content {
        case raw(UnsafeRawBufferPointer)
        /// The bytes packed last. The associated value is the unpacked part of the value.
        case packed(UnsafeRawBufferPointer)
    }

    /// Fills a chunk. Precondition: the target has the size that ``pack(_:)`` returned, or the raw bytes plus a header.
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
