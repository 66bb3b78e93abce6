#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The reason why an input cannot be imported, as one line.
public struct DatasetError: Error, Sendable, CustomStringConvertible {
    /// The input, the reason and the remedy.
    public var description: String

    /// Creates an error from its text.
    public init(_ description: String) { self.description = description }
}

extension DatasetError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}
