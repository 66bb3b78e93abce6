#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
import StoreInterface
import StoreModel

/// The bytes of an index key.
public struct IndexKey: Sendable, Hashable {
    /// The bytes, whose order is the order of the values.
    public var bytes: [UInt8]
    /// A Boolean value that indicates whether the value was cut to the maximum key length. Keys of different values may then
    /// be equal, so compare the objects.
    public var isCut: Bool

    /// Creates a key from encoded bytes.
    public init(bytes: [UInt8], isCut: Bool) {
        self.bytes = bytes
        self.isCut = isCut
    }
}

/// Encoding of index keys, whose order as bytes is that of `Value.order(_:)`, null first.
///
/// A key is one byte, 0 for null and 1 for a value, followed by the value. Numbers have the width of their type and are
/// big-endian with an inverted sign bit. Strings and data are unchanged, and are cut at the maximum length. All calls are
/// O(bytes).
public enum KeyCodec {
    /// The maximum length of a key in LMDB.
    public static let maximumCount = 511

    /// Encodes a value.
    /// - Throws: ``PageError`` if the value's storage class is not the column's, or a number is out of range.
    public static func encode(_ value: Value, column: ColumnSchema) throws(PageError) -> IndexKey {
        var bytes: [UInt8] = []
        // Most keys fit. Without this, two allocations grow the array.
        bytes.reserveCapacity(64)
        let isCut = try append(value, column: column, to: &bytes)
        return IndexKey(bytes: bytes, isCut: isCut)
    }

    /// Appends the key to bytes that the caller keeps for reuse.
    /// - Returns: Whether the key was cut.
    public static func append(_ value: Value, column: ColumnSchema, to bytes: inout [UInt8]) throws(PageError) -> Bool {
        if value.isNull {
            bytes.append(0)
            return false
        }
        switch (column.type, value) {
        case (.bool, .bool(let flag)): putNumber(UInt8(flag ? 1 : 0), &bytes)
        case (.int8, .int(let number)): putNumber(try flipped(Int8(exactly: number), column), &bytes)
        case (.int16, .int(let number)): putNumber(try flipped(Int16(exactly: number), column), &bytes)
        case (.int32, .int(let number)): putNumber(try flipped(Int32(exactly: number), column), &bytes)
        case (.int64, .int(let number)): putNumber(try flipped(number, column), &bytes)
        case (.uint8, .int(let number)): putNumber(try fitting(UInt8(exactly: number), column), &bytes)
        case (.uint16, .int(let number)): putNumber(try fitting(UInt16(exactly: number), column), &bytes)
        case (.uint32, .int(let number)): putNumber(try fitting(UInt32(exactly: number), column), &bytes)
        case (.uint64, .uint(let number)): putNumber(number, &bytes)
        case (.reference, .reference(let key)): putNumber(key.rawValue, &bytes)
        case (.float, .double(let number)):
            let single = Float(number)
            let bits = single.isNaN ? Float.nan.bitPattern : (single == 0 ? 0 : single.bitPattern)
            putNumber(bits >> 31 == 0 ? bits | 1 << 31 : ~bits, &bytes)
        case (.double, .double(let number)), (.date, .double(let number)):
            let bits = number.isNaN ? Double.nan.bitPattern : (number == 0 ? 0 : number.bitPattern)
            putNumber(bits >> 63 == 0 ? bits | 1 << 63 : ~bits, &bytes)
        case (.string, .string(var text)):
            return text.withUTF8 { putBytes(UnsafeRawBufferPointer($0), &bytes) }
        case (.data, .data(let data)):
            return data.withUnsafeBytes { putBytes($0, &bytes) }
        case (.uuid, .uuid(let uuid)):
            return withUnsafeBytes(of: uuid.uuid) { putBytes($0, &bytes) }
        default:
            throw PageError(field: column.name, reason: "an index key of type \(column.type.rawValue) cannot hold \(value)")
        }
        return false
    }

    /// Writes the key of bytes that need not be cut to memory that has room for it.
    /// - Returns: The key, a part of that memory.
    public static func key(of data: UnsafeRawBufferPointer, in space: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
        precondition(data.count < min(maximumCount, space.count), "a key of \(data.count) bytes has no room")
        space[0] = 1
        UnsafeMutableRawBufferPointer(rebasing: space[1...]).copyMemory(from: data)
        return UnsafeRawBufferPointer(rebasing: space[..<(data.count + 1)])
    }

    private static func putNumber<T: FixedWidthInteger>(_ number: T, _ bytes: inout [UInt8]) {
        bytes.append(1)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func putBytes(_ value: UnsafeRawBufferPointer, _ bytes: inout [UInt8]) -> Bool {
        bytes.append(1)
        bytes.append(contentsOf: value.prefix(maximumCount - 1))
        return value.count > maximumCount - 1
    }

    private static func fitting<T: FixedWidthInteger>(_ number: T?, _ column: ColumnSchema) throws(PageError) -> T {
        guard let number else {
            throw PageError(field: column.name, reason: "a number does not fit an index key of type \(column.type.rawValue)")
        }
        return number
    }

    /// Returns a number with an inverted sign bit, so that negative numbers come first.
    private static func flipped<T: FixedWidthInteger & SignedInteger>(
        _ number: T?, _ column: ColumnSchema
    ) throws(PageError) -> T {
        try fitting(number, column) ^ T.min
    }

    /// Returns the value of a key. Returns nil if the key has the maximum length, because it may have been cut. A zero is
    /// decoded as plus zero.
    public static func decode(_ bytes: UnsafeRawBufferPointer, column: ColumnSchema) throws(PageError) -> Value? {
        guard let first = bytes.first, first <= 1 else {
            throw PageError(field: column.name, reason: "an index key is empty or begins with neither 0 nor 1")
        }
        if first == 0 {
            guard bytes.count == 1 else { throw PageError(offset: 1, field: column.name, reason: "a null key has more bytes") }
            return .null
        }
        switch column.type {
        case .bool: return .bool(try number(bytes, column: column, as: UInt8.self) != 0)
        case .int8: return .int(Int64(try number(bytes, column: column, as: Int8.self) ^ .min))
        case .int16: return .int(Int64(try number(bytes, column: column, as: Int16.self) ^ .min))
        case .int32: return .int(Int64(try number(bytes, column: column, as: Int32.self) ^ .min))
        case .int64: return .int(try number(bytes, column: column, as: Int64.self) ^ .min)
        case .uint8: return .int(Int64(try number(bytes, column: column, as: UInt8.self)))
        case .uint16: return .int(Int64(try number(bytes, column: column, as: UInt16.self)))
        case .uint32: return .int(Int64(try number(bytes, column: column, as: UInt32.self)))
        case .uint64: return .uint(try number(bytes, column: column, as: UInt64.self))
        case .reference: return .reference(ObjectKey(rawValue: try number(bytes, column: column, as: UInt64.self)))
        case .float:
            let bits = try number(bytes, column: column, as: UInt32.self)
            return .double(Double(Float(bitPattern: bits >> 31 == 0 ? ~bits : bits & ~(1 << 31))))
        case .double, .date:
            let bits = try number(bytes, column: column, as: UInt64.self)
            return .double(Double(bitPattern: bits >> 63 == 0 ? ~bits : bits & ~(1 << 63)))
        case .uuid:
            guard bytes.count == 17 else { throw wrongCount(bytes, column) }
            return .uuid(UUID(uuid: bytes.loadUnaligned(fromByteOffset: 1, as: uuid_t.self)))
        case .string, .data:
            return try heapValue(bytes, column)
        }
    }

    private static func heapValue(_ bytes: UnsafeRawBufferPointer, _ column: ColumnSchema) throws(PageError) -> Value? {
        guard bytes.count <= maximumCount else { throw wrongCount(bytes, column) }
        if bytes.count == maximumCount { return nil }
        let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        if column.type == .data { return .data(Data(rest)) }
        guard let text = String(checkedUTF8: rest) else {
            throw PageError(offset: 1, field: column.name, reason: "an index key is not UTF-8")
        }
        return .string(text)
    }

    private static func number<T: FixedWidthInteger>(
        _ bytes: UnsafeRawBufferPointer, column: ColumnSchema, as type: T.Type
    ) throws(PageError) -> T {
        guard bytes.count == 1 + MemoryLayout<T>.size else { throw wrongCount(bytes, column) }
        return T(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: T.self))
    }

    private static func wrongCount(_ bytes: UnsafeRawBufferPointer, _ column: ColumnSchema) -> PageError {
        PageError(
            offset: bytes.count, field: column.name,
            reason: "an index key of type \(column.type.rawValue) has \(bytes.count) bytes")
    }
}
