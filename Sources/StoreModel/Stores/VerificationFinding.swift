/// One fault found by `ObjectStore.verify()`.
///
/// ```swift
/// let findings = try await container.coordinator.verify()
/// if !findings.isEmpty { print(findings.map(\.description).joined(separator: "\n")) }
/// ```
public struct VerificationFinding: Sendable, Hashable, CustomStringConvertible {
    /// The fault, where it is, and the data that it concerns, as one line.
    public var description: String
    /// Creates a finding from its text.
    public init(_ description: String) { self.description = description }
}
