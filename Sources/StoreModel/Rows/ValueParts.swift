#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The bytes of one string (as UTF-8) or data value in one state of a store, read part by part.
///
/// The instance keeps its source, such as a snapshot, alive until it is deallocated.
public protocol ValueParts: Sendable {
    /// The byte count of the whole value.
    var byteCount: Int { get }
    /// Returns the next bytes, some tens of KB, or nil at the end. Blocks: reads from the file or its map.
    mutating func next() throws -> Data?
}

/// The parts of a value that is completely in memory.
public struct WholeValueParts: ValueParts {
    private static let partByteCount = 1 << 16

    private let bytes: Data
    private var position = 0

    /// Creates the parts of a value. Returns nil for a value that is neither a string nor data.
    public init?(_ value: Value) {
        switch value {
        case .data(let data): bytes = data
        case .string(let text): bytes = Data(text.utf8)
        default: return nil
        }
    }

    /// The byte count of the whole value.
    public var byteCount: Int { bytes.count }

    /// Returns the next bytes, at most 64 KiB, or nil at the end. Does not block or throw.
    public mutating func next() throws -> Data? {
        guard position < bytes.count else { return nil }
        let start = bytes.startIndex + position
        let count = min(Self.partByteCount, bytes.count - position)
        position += count
        return bytes.subdata(in: start..<(start + count))
    }
}
