import StoreModel

/// The place of a page, which is part of its checksum. If damage to a key has moved a page to other objects, the checksum
/// detects it.
///
/// Pages of format 1 do not have such a checksum, and their place is nil.
public struct PageLocation: Sendable, Hashable {
    /// The entity's number in the file.
    public var entityNumber: Int
    /// The page's number, which determines the keys of its objects.
    public var number: PageNumber

    /// Creates the place of a page.
    public init(entityNumber: Int, number: PageNumber) {
        self.entityNumber = entityNumber
        self.number = number
    }

    /// The format version of pages whose checksum covers the place.
    static let formatVersion: UInt16 = 2

    /// Returns the version in the header of a page.
    @inline(__always)
    static func formatVersion(_ place: PageLocation?) -> UInt16 { place == nil ? PageFormat.version : formatVersion }

    fileprivate func seed(_ hash: UInt64) -> UInt64 {
        withUnsafeBytes(of: (UInt64(truncatingIfNeeded: entityNumber).littleEndian, number.rawValue.littleEndian)) {
            PageHash.hash($0, seed: hash)
        }
    }
}

extension PageHash {
    /// Returns the checksum of a page: of all its bytes except the checksum, and of its place. Precondition: at least a
    /// header.
    static func page(_ bytes: UnsafeRawBufferPointer, _ place: PageLocation?) -> UInt64 {
        let first = bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)
        let rest = UnsafeRawBufferPointer(rebasing: bytes[(PageFormat.checksumOffset + 8)...])
        let own = hash(rest, seed: UInt64(littleEndian: first))
        return place?.seed(own) ?? own
    }
}
