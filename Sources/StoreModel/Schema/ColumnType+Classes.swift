/// The storage class of a column.
extension ColumnType {
    package var isFloating: Bool { self == .float || self == .double || self == .date }

    package var isSigned: Bool {
        switch self {
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: true
        default: false
        }
    }

    /// Returns whether a value has the storage class of the column, whatever its range.
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

    /// Returns whether a finite number stays finite in a column of this type.
    package func keepsFinite(_ value: Value) -> Bool {
        guard self == .float, case .double(let number) = value, number.isFinite else { return true }
        return Float(number).isFinite
    }

    /// Returns a value as a column of this type stores it. For example, a `float` column stores fewer digits than the double
    /// passed to it.
    public func stored(_ value: Value) -> Value {
        if self == .float, case .double(let number) = value { return .double(Double(Float(number))) }
        return value
    }
}
