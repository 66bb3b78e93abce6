/// Why bytes are not what they should be, or why a value cannot be written.
public struct PageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where in the bytes; 0 when the fault is in a value to be written.
    public var offset: Int
    /// The field of the format, or "Entity.column" for a value to be written.
    public var field: String
    public var reason: String
    /// The fault is in a value to be written, which does not fit, and not in bytes that were read.
    public var isOfValue = false

    public init(offset: Int = 0, field: String, reason: String) {
        self.offset = offset
        self.field = field
        self.reason = reason
    }

    /// - Parameter value: names the value as "Entity.column".
    init(value: String, reason: String) {
        self.init(field: value, reason: reason)
        isOfValue = true
    }

    public var description: String { "\(field) at byte \(offset): \(reason)" }
}
