/// An error that describes invalid bytes, or a value that cannot be written.
public struct PageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The offset in the bytes; 0 if the fault is in a value to be written.
    public var offset: Int
    /// The field of the format, or "Entity.column" for a value to be written.
    public var field: String
    /// The fault, as a phrase that follows the field's name.
    public var reason: String
    /// A Boolean value that indicates whether the fault is in a value to be written, and not in bytes that were read.
    public var isOfValue = false

    /// Creates an error about bytes that were read.
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

    /// The field, its offset and the reason.
    public var description: String { "\(field) at byte \(offset): \(reason)" }
}
