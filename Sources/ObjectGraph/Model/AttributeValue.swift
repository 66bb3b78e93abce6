import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A type that an attribute can have.
///
/// Bool, the integers, Float, Double, String, Data, Date, UUID, URL, Decimal and optionals of them conform. An enum with a raw value of such
/// a type needs only a declaration of conformance. A `Codable` type conforms to ``CodableAttribute``.
///
/// ```swift
/// enum Genre: String, AttributeValue, CaseIterable { case jazz, rock }
/// ```
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
    /// The stored value of a new object's property that has none, if the property is not optional.
    static var missingValue: Value { get }
    /// A Boolean value that indicates whether each value of the column type is also one of this type.
    ///
    /// If false, assigning a property checks whether its stored value can be decoded: see S179 in the contract.
    static var acceptsEveryValue: Bool { get }
}

extension AttributeValue {
    /// false, the default for types that have no null.
    public static var isOptional: Bool { false }
    /// nil, the default: reading a missing value of a type without a zero or empty value stops the program.
    public static var fallback: Self? { nil }
    /// null, the default, which means zero or an empty value of the column type.
    public static var missingValue: Value { .null }
    /// false, the default, with which no stored value is replaced unasked.
    @inlinable public static var acceptsEveryValue: Bool { false }

    /// The type's missing value, or the stored value of its fallback if zero is no value of the type; null for others. No bytes are the
    /// empty value of JSON.
    static var valueInsteadOfZero: Value {
        guard !isOptional else { return .null }
        guard missingValue.isNull else { return missingValue }
        guard columnType != .data, Self(Value.zero(of: columnType)) == nil else { return .null }
        return fallback?.storeValue ?? .null
    }
}

extension AttributeValue where Self: FixedWidthInteger {
    /// true: a column of integers has no value that the type lacks.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// Creates the integer from `.int` or `.uint`. Returns nil for another storage class, and for a number out of range.
    @inlinable public init?(_ value: Value) {
        switch value {
        case .int(let number): self.init(exactly: number)
        case .uint(let number): self.init(exactly: number)
        default: return nil
        }
    }

    /// The integer as `.int`.
    @inlinable public var storeValue: Value { .int(Int64(self)) }
}

extension Int: AttributeValue {
    /// The column type of 64-bit signed integers.
    public static var columnType: ColumnType { .int64 }
}

extension Int8: AttributeValue {
    /// The column type of 8-bit signed integers.
    public static var columnType: ColumnType { .int8 }
}

extension Int16: AttributeValue {
    /// The column type of 16-bit signed integers.
    public static var columnType: ColumnType { .int16 }
}

extension Int32: AttributeValue {
    /// The column type of 32-bit signed integers.
    public static var columnType: ColumnType { .int32 }
}

extension Int64: AttributeValue {
    /// The column type of 64-bit signed integers.
    public static var columnType: ColumnType { .int64 }
}

extension UInt8: AttributeValue {
    /// The column type of 8-bit unsigned integers.
    public static var columnType: ColumnType { .uint8 }
}

extension UInt16: AttributeValue {
    /// The column type of 16-bit unsigned integers.
    public static var columnType: ColumnType { .uint16 }
}

extension UInt32: AttributeValue {
    /// The column type of 32-bit unsigned integers.
    public static var columnType: ColumnType { .uint32 }
}

extension UInt64: AttributeValue {
    /// The column type of 64-bit unsigned integers.
    public static var columnType: ColumnType { .uint64 }
    /// The integer as `.uint`.
    @inlinable public var storeValue: Value { .uint(self) }
}

extension UInt: AttributeValue {
    /// The column type of 64-bit unsigned integers.
    public static var columnType: ColumnType { .uint64 }
    /// The integer as `.uint`.
    @inlinable public var storeValue: Value { .uint(UInt64(self)) }
}

extension Bool: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of Boolean values.
    public static var columnType: ColumnType { .bool }
    /// Creates the value from `.bool`. Returns nil for another storage class.
    @inlinable public init?(_ value: Value) {
        guard case .bool(let flag) = value else { return nil }
        self = flag
    }
    /// The value as `.bool`.
    @inlinable public var storeValue: Value { .bool(self) }
}

extension Double: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of double-precision numbers.
    public static var columnType: ColumnType { .double }
    /// Creates the number from `.double`. Returns nil for another storage class.
    @inlinable public init?(_ value: Value) {
        guard case .double(let number) = value else { return nil }
        self = number
    }
    /// The number as `.double`.
    @inlinable public var storeValue: Value { .double(self) }
}

extension Float: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of single-precision numbers.
    public static var columnType: ColumnType { .float }
    /// Creates the number from `.double`, rounded to single precision. Returns nil for another storage class.
    @inlinable public init?(_ value: Value) {
        guard case .double(let number) = value else { return nil }
        self = Float(number)
    }
    /// The number as `.double`, which represents it exactly.
    @inlinable public var storeValue: Value { .double(Double(self)) }
}

extension String: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of strings.
    public static var columnType: ColumnType { .string }
    /// Creates the string from `.string`. Returns nil for another storage class.
    @inlinable public init?(_ value: Value) {
        guard case .string(let text) = value else { return nil }
        self = text
    }
    /// The string as `.string`.
    @inlinable public var storeValue: Value { .string(self) }
}

extension Data: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of bytes.
    public static var columnType: ColumnType { .data }
    /// Creates the bytes from `.data`. Returns nil for another storage class.
    public init?(_ value: Value) {
        guard case .data(let bytes) = value else { return nil }
        self = bytes
    }
    /// The bytes as `.data`.
    public var storeValue: Value { .data(self) }
}

extension Date: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of dates.
    public static var columnType: ColumnType { .date }
    /// Creates the date from a `.double` of seconds since the reference date. Returns nil for another storage class.
    public init?(_ value: Value) {
        guard case .double(let seconds) = value else { return nil }
        self.init(timeIntervalSinceReferenceDate: seconds)
    }
    /// The seconds since the reference date as `.double`.
    public var storeValue: Value { .double(timeIntervalSinceReferenceDate) }
}

extension UUID: AttributeValue {
    /// true: each value of the column is one of the type.
    @inlinable public static var acceptsEveryValue: Bool { true }
    /// The column type of UUIDs.
    public static var columnType: ColumnType { .uuid }
    /// Creates the UUID from `.uuid`. Returns nil for another storage class.
    public init?(_ value: Value) {
        guard case .uuid(let uuid) = value else { return nil }
        self = uuid
    }
    /// The UUID as `.uuid`.
    public var storeValue: Value { .uuid(self) }
}

extension URL: AttributeValue {
    /// The column type of strings, because a URL is stored as its text.
    public static var columnType: ColumnType { .string }
    /// Creates the URL from `.string`. Returns nil for another storage class, and for text that is not a URL.
    public init?(_ value: Value) {
        guard case .string(let text) = value else { return nil }
        self.init(string: text)
    }
    /// The absolute text of the URL as `.string`. A relative URL is stored with its base.
    public var storeValue: Value { .string(absoluteString) }
}

extension Optional: AttributeValue where Wrapped: AttributeValue {
    /// The column type of the wrapped type.
    public static var columnType: ColumnType { Wrapped.columnType }
    /// true: the column can be null.
    public static var isOptional: Bool { true }
    /// Creates nil from null, and otherwise wraps a value. Returns nil if the wrapped type cannot be created from the value.
    @inlinable public init?(_ value: Value) {
        if value.isNull {
            self = .none
        } else {
            guard let wrapped = Wrapped(value) else { return nil }
            self = .some(wrapped)
        }
    }
    /// The wrapped value as the store represents it, or null.
    @inlinable public var storeValue: Value { self?.storeValue ?? .null }
    /// Whether the wrapped type accepts every value.
    @inlinable public static var acceptsEveryValue: Bool { Wrapped.acceptsEveryValue }
}

extension AttributeValue where Self: RawRepresentable, RawValue: AttributeValue {
    /// The column type of the raw values.
    public static var columnType: ColumnType { RawValue.columnType }
    /// Creates the case of a raw value. Returns nil if no case has it.
    public init?(_ value: Value) {
        guard let raw = RawValue(value) else { return nil }
        self.init(rawValue: raw)
    }
    /// The raw value as the store represents it.
    public var storeValue: Value { rawValue.storeValue }
    /// false: a raw value may belong to no case.
    @inlinable public static var acceptsEveryValue: Bool { false }
}

extension AttributeValue where Self: RawRepresentable & CaseIterable, RawValue: AttributeValue {
    /// The first case.
    public static var fallback: Self? { allCases.first }
}

/// A `Codable` type that is stored as data (JSON). An assignment is a change if the encoded bytes differ.
///
/// ```swift
/// struct Size: CodableAttribute {
///     var width: Int
///     var height: Int
/// }
/// ```
public protocol CodableAttribute: AttributeValue, Codable {}

extension CodableAttribute {
    /// The column type of bytes, which contain JSON.
    public static var columnType: ColumnType { .data }
    /// false: bytes may be no JSON of the type.
    @inlinable public static var acceptsEveryValue: Bool { false }

    /// Creates the value by decoding JSON from `.data`. Returns nil if the bytes cannot be decoded.
    public init?(_ value: Value) {
        guard case .data(let bytes) = value, let decoded = try? AttributeJSON.decode(Self.self, from: bytes) else {
            return nil
        }
        self = decoded
    }

    /// The value encoded as JSON. A value that cannot be encoded is a programmer error.
    public var storeValue: Value {
        do { return .data(try AttributeJSON.encode(self)) } catch {
            preconditionFailure("\(Self.self) cannot be encoded: \(error)")
        }
    }
}
