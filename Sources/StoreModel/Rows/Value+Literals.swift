/// Literals create values of the corresponding storage class: `track["plays"] = 5`.
///
/// `nil` is not a literal of a value, because `isDeleted ? nil : row[column]` must stay an optional. Write `.null`.
/// An integer literal is an `.int`. For a column of type `uint64` write `.uint(5)`, and for a `.double` write `5.0`.
extension Value: ExpressibleByIntegerLiteral {
    /// Creates an `.int` from an integer literal.
    public init(integerLiteral value: Int64) { self = .int(value) }
}

extension Value: ExpressibleByFloatLiteral {
    /// Creates a `.double` from a floating-point literal.
    public init(floatLiteral value: Double) { self = .double(value) }
}

extension Value: ExpressibleByBooleanLiteral {
    /// Creates a `.bool` from a Boolean literal.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension Value: ExpressibleByStringInterpolation {
    /// Creates a `.string` from a string literal.
    public init(stringLiteral value: String) { self = .string(value) }
}
