import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The encoding of the row `incarnations` of `meta`: the incarnations that copies began, oldest first. Each has 16 bytes of
/// id and 8 bytes of start.
package enum LineageCodec {
    private static let entrySize = 24

    package static func encode(_ copies: [StoreLineage.Incarnation]) -> [UInt8] {
        var bytes: [UInt8] = []
        for copy in copies {
            withUnsafeBytes(of: copy.id.uuid) { bytes.append(contentsOf: $0) }
            withUnsafeBytes(of: copy.start.rawValue.littleEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// Decodes the incarnations.
    /// - Throws: `PageError` for bytes that are not such a list.
    package static func decode(_ bytes: UnsafeRawBufferPointer) throws(PageError) -> [StoreLineage.Incarnation] {
        guard bytes.count % entrySize == 0 else {
            throw PageError(field: "incarnations", reason: "\(bytes.count) bytes are not a multiple of \(entrySize)")
        }
        var copies: [StoreLineage.Incarnation] = []
        for offset in stride(from: 0, to: bytes.count, by: entrySize) {
            let id = UUID(uuid: bytes.loadUnaligned(fromByteOffset: offset, as: uuid_t.self))
            let number = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self))
            let start = Generation(rawValue: number)
            guard copies.last.map({ $0.start <= start }) ?? true else {
                throw PageError(offset: offset, field: "incarnations", reason: "the starts descend")
            }
            copies.append(.init(id: id, start: start))
        }
        return copies
    }
}
