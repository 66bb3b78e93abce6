#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension UUID {
    /// Returns a random UUID of version 4.
    ///
    /// Foundation's on Linux reads a file. In a process that has no descriptors left, it gives the same UUID again and again, and two stores
    /// would have one identity.
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
