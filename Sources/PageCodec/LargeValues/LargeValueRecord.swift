import StoreInterface
import StoreModel

/// The record that a page stores instead of an out-of-line string or data value, which is stored in chunks.
public struct LargeValueRecord: Sendable, Hashable {
    /// The number that identifies the value in its entity.
    public var number: UInt64
    /// The size of the value in bytes; at least 1.
    public var byteCount: Int
    /// See ``LargeValueHash``. Values with different hashes differ, so that comparing for equality seldom reads a value.
    public var hash: UInt64

    /// The maximum size of a value: 1 GiB.
    public static let maximumByteCount = Value.maximumByteCount

    /// Creates the record of a value that is stored in chunks.
    public init(number: UInt64, byteCount: Int, hash: UInt64) {
        self.number = number
        self.byteCount = byteCount
        self.hash = hash
    }

    /// The number of chunks of the value.
    public var chunkCount: Int { LargeChunk.count(byteCount: byteCount) }

    /// Returns the number of the value's bytes in a chunk.
    public func byteCount(ofChunk index: Int) -> Int {
        min(LargeChunk.maximumByteCount, byteCount - index * LargeChunk.maximumByteCount)
    }

    /// The size of a record: three numbers of eight bytes.
    static let size = 24

    init(_ bytes: UnsafeRawBufferPointer) throws(PageError) {
        guard let base = bytes.baseAddress, bytes.count == Self.size else {
            throw PageError(field: "large value", reason: "has a record of \(bytes.count) bytes instead of \(Self.size)")
        }
        number = base.number(UInt64.self, at: 0)
        let count = base.number(UInt64.self, at: 8)
        hash = base.number(UInt64.self, at: 16)
        guard number < LargeChunk.numberLimit, count > 0, count <= Self.maximumByteCount else {
            throw PageError(field: "large value", reason: "number \(number) of \(count) bytes is not possible")
        }
        byteCount = Int(count)
    }

    func write(to target: UnsafeMutableRawPointer) {
        target.put(number, at: 0)
        target.put(UInt64(byteCount), at: 8)
        target.put(hash, at: 16)
    }
}

/// The hash of a large value, computed chunk by chunk: the hash of each chunk is the seed of the next. Part of the file
/// format.
public struct LargeValueHash: Sendable {
    /// The hash of the chunks added so far; 0 if there are none.
    public private(set) var value: UInt64 = 0

    /// Creates the hash of a value without chunks.
    public init() {}

    /// Adds a chunk. Precondition: chunks come in order, and all but the last have ``LargeChunk/maximumByteCount`` bytes.
    public mutating func add(_ chunk: UnsafeRawBufferPointer) { value = PageHash.hash(chunk, seed: value) }

    static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = LargeValueHash()
        var start = 0
        while start < bytes.count {
            let end = min(start + LargeChunk.maximumByteCount, bytes.count)
            hash.add(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            start = end
        }
        return hash.value
    }
}
