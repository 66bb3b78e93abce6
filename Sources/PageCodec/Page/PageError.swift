/// An error that describes invalid bytes, or a value that cannot be written.
public struct PageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The offset in the bytes; 0 if the fault is in a value to be written.
    public var offset: Int
    /// The field of the format, or "Entity.column" for a value to be written.
    public var field: String
    public var reason: String
    /// A Boolean value that indicates whether the fault is in a value to be written, and not in bytes that were read.
    public var isOfValue = false

    public init(offset: Int = 0, field: String, reason: String) {
        self.offset = offset
        self.field = field
        self.reason = reason
    }

    /// Creates an error about a value to be written.
    /// - Parameter value: The value's name as "Entity.column".
    init(value: String, reason: String) {
        self.init(field: value, reason: reason)
        isOfValue = true
    }

    public var description: String { "\(field) at byte \(offset): \(reason)" }
}
