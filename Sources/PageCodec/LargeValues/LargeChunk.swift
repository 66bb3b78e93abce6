/// A part of a large value in a file: a header of sixteen bytes, then the bytes or a zstd frame of them.
///
/// A borrowed view, like ``ObjectPage``.
public struct LargeChunk {
    /// The number of bytes of the value in each chunk but the last. A raw chunk with its header fills sixteen pages of LMDB
    /// of 4,096 bytes.
    public static let maximumByteCount = (1 << 16) - 16 - headerByteCount
    /// The size of a chunk's header in bytes.
    public static let headerByteCount = 16

    /// The number of low bits of a chunk's key that contain its index. The high bits contain the value's number.
    private static let indexBits: UInt64 = 16
    /// The upper bound of the numbers of values.
    public static let numberLimit: UInt64 = 1 << (64 - indexBits)

    static let byteCountOffset = 0
    static let formOffset = 4
    static let checksumOffset = 8

    /// The encoding of the bytes.
    enum Form: UInt32 {
        case raw = 0
        case packed = 1
    }

    /// The size of the value's part in bytes.
    public let byteCount: Int
    private let form: Form
    // Right because the creator keeps the bytes alive and unchanged as long as the view is used.
    private let payload: UnsafeRawBufferPointer

    /// Returns the key of a chunk: the value's number, then the position in the value. The position must be less than 65,536.
    public static func key(_ number: UInt64, _ index: Int) -> UInt64 { number << indexBits | UInt64(index) }
    /// Returns the number of the value that a chunk's key belongs to.
    public static func number(ofKey key: UInt64) -> UInt64 { key >> indexBits }
    /// Returns the number of chunks of a value of this size.
    public static func count(byteCount: Int) -> Int { (byteCount + maximumByteCount - 1) / maximumByteCount }
    /// Returns the position of a chunk in its value.
    public static func index(ofKey key: UInt64) -> Int { Int(key & (1 << indexBits - 1)) }

    /// Creates a view after checking header and checksum: about 0.08 ns per byte.
    /// - Throws: ``PageError`` for bytes that are not this chunk.
    public init(_ bytes: UnsafeRawBufferPointer, key: UInt64) throws(PageError) {
        guard let base = bytes.baseAddress, bytes.count > Self.headerByteCount else {
            throw Self.error(key, at: bytes.count, reason: "ends inside its header")
        }
        byteCount = Int(base.number(UInt32.self, at: Self.byteCountOffset))
        payload = UnsafeRawBufferPointer(rebasing: bytes[Self.headerByteCount...])
        guard let form = Form(rawValue: base.number(UInt32.self, at: Self.formOffset)) else {
            throw Self.error(key, at: Self.formOffset, reason: "has an unknown form")
        }
        self.form = form
        guard byteCount > 0, byteCount <= Self.maximumByteCount, form == .packed || byteCount == payload.count else {
            throw Self.error(key, at: Self.byteCountOffset, reason: "cannot hold \(byteCount) bytes")
        }
        guard Self.checksum(bytes, key: key) == base.number(UInt64.self, at: Self.checksumOffset) else {
            throw Self.error(key, at: Self.checksumOffset, reason: "has another checksum than its bytes")
        }
    }

    /// The bytes in place; nil if they are compressed.
    public var rawBytes: UnsafeRawBufferPointer? { form == .raw ? payload : nil }

    /// Writes the value's part. Precondition: the target has ``byteCount`` bytes. At most about 1 ns per byte.
    /// - Throws: ``PageError`` if the content of a frame has another size.
    public func unpack(into target: UnsafeMutableRawBufferPointer) throws(PageError) {
        guard form == .packed else { return target.copyMemory(from: payload) }
        let decompressor = try DecompressorPool.take()
        defer { DecompressorPool.give(decompressor) }
        let count = try ZstdCall.decompress(decompressor.pointer, payload, into: target, dictionary: nil)
        guard count == byteCount else {
            throw PageError(field: "large value", reason: "has a frame of \(count) bytes instead of \(byteCount)")
        }
    }

    /// Returns the checksum of all bytes except its own. The key is the seed, so that a chunk under a wrong key is detected.
    static func checksum(_ bytes: UnsafeRawBufferPointer, key: UInt64) -> UInt64 {
        let first = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        let seed = PageHash.hash(UnsafeRawBufferPointer(rebasing: bytes[headerByteCount...]), seed: first)
        return withUnsafeBytes(of: key.littleEndian) { PageHash.hash($0, seed: seed) }
    }

    private static func error(_ key: UInt64, at offset: Int, reason: String) -> PageError {
        PageError(offset: offset, field: "chunk \(index(ofKey: key)) of large value \(number(ofKey: key))", reason: reason)
    }
}
