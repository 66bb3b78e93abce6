/// Where a page belongs, which goes into its checksum: a page that damage to a key has moved to other objects is found.
///
/// Pages of format 1 have no such checksum, and nil in place of this.
public struct PagePlace: Sendable, Hashable {
    /// The entity's number in the file.
    public var entity: Int
    /// The page's, which gives its objects their keys.
    public var number: UInt64

    public init(entity: Int, number: UInt64) {
        self.entity = entity
        self.number = number
    }

    /// The format version of pages with such a checksum.
    static let formatVersion: UInt16 = 2

    /// The version in the header of a page.
    @inline(__always)
    static func formatVersion(_ place: PagePlace?) -> UInt16 { place == nil ? PageFormat.version : formatVersion }

    fileprivate func seed(_ hash: UInt64) -> UInt64 {
        withUnsafeBytes(of: (UInt64(truncatingIfNeeded: entity).littleEndian, number.littleEndian)) {
            PageHash.hash($0, seed: hash)
        }
    }
}

extension PageHash {
    /// The checksum of a page: all its bytes but the checksum itself, and its place. Precondition: at least a header.
    static func page(_ bytes: UnsafeRawBufferPointer, _ place: PagePlace?) -> UInt64 {
        let first = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
        let rest = UnsafeRawBufferPointer(rebasing: bytes[(PageFormat.checksumOffset + 8)...])
        let own = hash(rest, seed: UInt64(littleEndian: first))
        return place?.seed(own) ?? own
    }
}
