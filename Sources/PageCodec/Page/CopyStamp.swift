#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The mark of an LMDB file that was written as a copy of another: it lies in the first page, behind what LMDB uses of that.
///
/// LMDB never writes these bytes again, so a file that has begun its incarnation keeps the mark, and remembers its id.
package struct CopyStamp: Sendable, Hashable {
    /// Where the mark begins in the file. The smallest page of LMDB has 512 bytes, of which it uses less than 200.
    package static let offset = 256
    package static let byteCount = 32
    private static let magic: UInt64 = 0x3159_504F_4354_5253  // "SRTCOPY1"

    package let id: UUID

    package init(id: UUID = UUID()) { self.id = id }

    /// - Parameter bytes: ``byteCount`` of them from ``offset`` on. nil unless they are a whole mark.
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

    /// Puts the mark into a part of a file that is copied part by part.
    /// - Parameter start: where in the file the part begins.
    package func write(into part: UnsafeMutableRawBufferPointer, from start: Int) {
        for (position, byte) in bytes.enumerated() {
            let place = Self.offset + position - start
            if part.indices.contains(place) { part[place] = byte }
        }
    }
}
