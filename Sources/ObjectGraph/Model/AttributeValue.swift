import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A type that an attribute can have.
///
/// Bool, the integers, Float, Double, String, Data, Date, UUID, URL and optionals of them conform. An enum with a raw value of such
/// a type needs only a declaration of conformance. A `Codable` type conforms to ``CodableAttribute``.
public protocol AttributeValue {
    /// The column type that stores the values.
    static var columnType: ColumnType { get }
    /// A Boolean value that indicates whether values can be null.
    static var isOptional: Bool { get }
    /// Creates a value from a stored value. Returns nil if it has another storage class, or if it is null and the type is not optional.
    init?(_ value: Value)
    /// The value as the store represents it.
    var storeValue: Value { get }
    /// The value of a property that has no stored value to read, for types without a zero or empty value.
    ///
    /// If nil, such a read stops the program. For an enum that is `CaseIterable`, the default is its first case.
    static var fallback: Self? { get }
}

extension AttributeValue {
    public static var isOptional: Bool { false }
    public static var fallback: Self? { nil }
}

extension AttributeValue where Self: FixedWidthInteger {
    @inlinable public init?(_ value: Value) {
        switch value {
        case .int(let number): self.init(exactly: number)
        case .uint(let number): self.init(exactly: number)
        default: return nil
        }
    }

    @inlinable public var storeValue: Value { .int(Int64(self)) }
}

extension Int: AttributeValue { public static var columnType: ColumnType { .int64 } }
extension Int8: AttributeValue { public static var columnType: ColumnType { .int8 } }
extension Int16: AttributeValue { public static var columnType: ColumnType { .int16 } }
extension Int32: AttributeValue { public static var columnType: ColumnType { .int32 } }
extension Int64: AttributeValue { public static var columnType: ColumnType { .int64 } }
extension UInt8: AttributeValue { public static var columnType: ColumnType { .uint8 } }
extension UInt16: AttributeValue { public static var columnType: ColumnType { .uint16 } }
extension UInt32: AttributeValue { public static var columnType: ColumnType { .uint32 } }

extension UInt64: AttributeValue {
    public static var columnType: ColumnType { .uint64 }
    @inlinable public var storeValue: Value { .uint(self) }
}

extension UInt: AttributeValue {
    public static var columnType: ColumnType { .uint64 }
    @inlinable public var storeValue: Value { .uint(UInt64(self)) }
}

extension Bool: AttributeValue {
    public static var columnType: ColumnType { .bool }
    @inlinable public init?(_ value: Value) {
        guard case .bool(let flag) = value else { return nil }
        self = flag
    }
    @inlinable public var storeValue: Value { .bool(self) }
}

extension Double: AttributeValue {
    public static var columnType: ColumnType { .double }
    @inlinable public init?(_ value: Value) {
        guard case .double(let number) = value else { return nil }
        self = number
    }
    @inlinable public var storeValue: Value { .double(self) }
}

extension Float: AttributeValue {
    public static var columnType: ColumnType { .float }
    @inlinable public init?(_ value: Value) {
        guard case .double(let number) = value else { return nil }
        self = Float(number)
    }
    @inlinable public var storeValue: Value { .double(Double(self)) }
}

extension String: AttributeValue {
    public static var columnType: ColumnType { .string }
    @inlinable public init?(_ value: Value) {
        guard case .string(let text) = value else { return nil }
        self = text
    }
    @inlinable public var storeValue: Value { .string(self) }
}

extension Data: AttributeValue {
    public static var columnType: ColumnType { .data }
    public init?(_ value: Value) {
        guard case .data(let bytes) = value else { return nil }
        self = bytes
    }
    public var storeValue: Value { .data(self) }
}

extension Date: AttributeValue {
    public static var columnType: ColumnType { .date }
    public init?(_ value: Value) {
        guard case .double(let seconds) = value else { return nil }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }
    public var storeValue: Value { .double(timeIntervalSinceReferenceDate) }
}

extension UUID: AttributeValue {
    public static var columnType: ColumnType { .uuid }
    public init?(_ value: Value) {
        guard case .uuid(let uuid) = value else { return nil }
        self = uuid
    }
    public var storeValue: Value { .uuid(self) }
}

extension URL: AttributeValue {
    public static var columnType: ColumnType { .string }
    public init?(_ value: Value) {
        guard case .string(let text) = value else { return nil }
        self.init(string: text)
    }
    public var storeValue: Value { .string(absoluteString) }
}

extension Optional: AttributeValue where Wrapped: AttributeValue {
    public static var columnType: ColumnType { Wrapped.columnType }
    public static var isOptional: Bool { true }
    @inlinable public init?(_ value: Value) {
        if value.isNull {
            self = .none
        } else {
            guard let wrapped = Wrapped(value) else { return nil }
            self = .some(wrapped)
        }
    }
    @inlinable public var storeValue: Value { self?.storeValue ?? .null }
}

extension AttributeValue where Self: RawRepresentable, RawValue: AttributeValue {
    public static var columnType: ColumnType { RawValue.columnType }
    public init?(_ value: Value) {
        guard let raw = RawValue(value) else { return nil }
        self.init(rawValue: raw)
    }
    public var storeValue: Value { rawValue.storeValue }
}

extension AttributeValue where Self: RawRepresentable & CaseIterable, RawValue: AttributeValue {
    public static var fallback: Self? { allCases.first }
}

/// A `Codable` type that is stored as data (JSON). An assignment is a change if the encoded bytes differ.
public protocol CodableAttribute: AttributeValue, Codable {}

extension CodableAttribute {
    public static var columnType: ColumnType { .data }

    public init?(_ value: Value) {
        guard case .data(let bytes) = value, let decoded = try? JSONDecoder().decode(Self.self, from: bytes) else {
            return nil
        }
        self = decoded
    }

    /// The value encoded as JSON. A value that cannot be encoded is a programmer error.
    public var storeValue: Value {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        do { return .data(try encoder.encode(self)) } catch {
            preconditionFailure("\(Self.self) cannot be encoded: \(error)")
        }
    }
}
