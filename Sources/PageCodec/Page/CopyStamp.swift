#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The mark of an LMDB file that was written as a copy of another file. It is in the first page, after the bytes that LMDB
/// uses.
///
/// LMDB never overwrites these bytes. A file that has begun its incarnation therefore keeps the mark, and stores the mark's
/// id.
package struct CopyStamp: Sendable, Hashable {
    /// The offset of the mark in the file. The smallest page of LMDB has 512 bytes, of which LMDB uses less than 200.
    package static let offset = 256
    package static let byteCount = 32
    private static let magic: UInt64 = 0x3159_504F_4354_5253  // "SRTCOPY1"

    package let id: UUID

    package init(id: UUID = .random()) { self.id = id }

    /// Reads a mark. Returns nil if the bytes are not a complete mark.
    /// - Parameter bytes: The ``byteCount`` bytes from ``offset`` on.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount, UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self)) == Self.magic,
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)) == Self.checksum(bytes)
        else { return nil }
        id = UUID(uuid: bytes.loadUnaligned(fromByteOffset: 8, as: uuid_t.self))
    }

    package var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        bytes.withUnsafeMutableBytes { buffer in
            buffer.storeBytes(of: Self.magic.littleEndian, as: UInt64.self)
            buffer.storeBytes(of: id.uuid, toByteOffset: 8, as: uuid_t.self)
            buffer.storeBytes(of: Self.checksum(UnsafeRawBufferPointer(buffer)).littleEndian, toByteOffset: 24, as: UInt64.self)
        }
        return bytes
    }

    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        PageHash.hash(UnsafeRawBufferPointer(rebasing: bytes[..<24]), seed: 0)
    }

    /// Writes the mark into a part of a file that is copied part by part.
    /// - Parameter start: The offset of the part in the file.
    package func write(into part: UnsafeMutableRawBufferPointer, from start: Int) {
        for (position, byte) in bytes.enumerated() {
            let place = Self.offset + position - start
            if part.indices.contains(place) { part[place] = byte }
        }
    }
}
