/// One fault found by `ObjectStore.verify()`.
public struct VerificationFinding: Sendable, Hashable, CustomStringConvertible {
    /// The fault, where it is, and the data that it concerns, as one line.
    public var description: String
    /// Creates a finding from its text.
    public init(_ description: String) { self.description = description }
}
