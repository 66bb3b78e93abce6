import StoreInterface
import StoreModel

/// The encoding of the rows `free keys E` of `meta`: the bounds of each range, 8 bytes each, then a checksum of 8 bytes. The
/// upper bound is exclusive.
package enum FreeKeysCodec {
    private static let seed: UInt64 = 0x5953_4B46
    /// The first key that is never leased. A key after it could have no following key.
    private static let endOfKeys = PageAddress.key(page: PageAddress.unleased.lowerBound, slot: 0).rawValue

    package static func encode(_ keys: FreeKeys) -> [UInt8] {
        var bytes: [UInt8] = []
        for range in keys.ranges {
            for bound in [range.lowerBound, range.upperBound] {
                withUnsafeBytes(of: bound.rawValue.littleEndian) { bytes.append(contentsOf: $0) }
            }
        }
        let checksum = bytes.withUnsafeBytes { PageHash.hash($0, seed: seed) }
        withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
        return bytes
    }

    /// Decodes a row.
    /// - Returns: The keys, or nil for bytes that are not such a row. Without them some pages stay sparse; wrong keys would
    ///   be assigned twice.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> FreeKeys? {
        guard bytes.count >= 8, bytes.count % 16 == 8, bytes.count <= 16 * FreeKeys.limit + 8 else { return nil }
        func number(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        let end = bytes.count - 8
        guard number(end) == PageHash.hash(UnsafeRawBufferPointer(rebasing: bytes[..<end]), seed: seed) else { return nil }
        var ranges: [Range<ObjectKey>] = []
        for offset in stride(from: 0, to: end, by: 16) {
            let (lower, upper) = (number(offset), number(offset + 8))
            guard lower < upper, upper <= endOfKeys, lower >= ranges.last?.upperBound.rawValue ?? 1, upper - 1 <= lower | 63
            else {
                return nil
            }
            ranges.append(ObjectKey(rawValue: lower)..<ObjectKey(rawValue: upper))
        }
        return FreeKeys(ranges)
    }
}
