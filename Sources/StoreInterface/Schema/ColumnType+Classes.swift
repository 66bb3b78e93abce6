/// Which storage class a column has.
extension ColumnType {
    package var isFloating: Bool { self == .float || self == .double || self == .date }

    package var isSigned: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: true
        default: false
        }
    }

    /// Whether a value is of the storage class that the column has, whatever its range.
    package func holds(_ value: Value) -> Bool {
        switch value {
        case .null: false
        case .bool: self == .bool
        case .int: isSigned
        case .uint: self == .uint64
        case .double: isFloating
        case .string: self == .string
        case .data: self == .data
        case .uuid: self == .uuid
        case .reference: self == .reference
        }
    }

    /// A value as a column of the type keeps it: a float has fewer digits than the double that it is told in.
    package func stored(_ value: Value) -> Value {
        if self == .float, case .double(let number) = value { return .double(Double(Float(number))) }
        return value
    }
}
