#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension UUID {
    /// Returns a random UUID of version 4.
    ///
    /// On Linux, `UUID()` reads a file. In a process without free descriptors it always returns the same value, so that two stores would
    /// have one identity.
    package static func random() -> UUID {
        var generator = SystemRandomNumberGenerator()
        var words = (generator.next(), generator.next())
        return withUnsafeMutableBytes(of: &words) { bytes in
            bytes[6] = bytes[6] & 0x0F | 0x40
            bytes[8] = bytes[8] & 0x3F | 0x80
            return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
        }
    }
}
