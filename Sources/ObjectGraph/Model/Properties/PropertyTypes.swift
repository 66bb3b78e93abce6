import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A raw-value type as an attribute, which stores its raw value. Models use it for types that do not conform to ``AttributeValue``.
public struct RawAttribute<V: RawRepresentable>: AttributeValue where V.RawValue: AttributeValue {
    /// The value of the property.
    public let value: V

    /// Wraps a value.
    @inlinable public init(_ value: V) { self.value = value }

    /// Wraps a value. Returns nil for nil.
    @inlinable public init?(ifPresent value: V?) {
        guard let value else { return nil }
        self.value = value
    }

    /// The column type of the raw values.
    public static var columnType: ColumnType { V.RawValue.columnType }

    /// Creates the value of a raw value. Returns nil if there is none.
    @inlinable public init?(_ value: Value) {
        guard let raw = V.RawValue(value), let typed = V(rawValue: raw) else { return nil }
        self.value = typed
    }

    /// The raw value as the store represents it.
    @inlinable public var storeValue: Value { value.rawValue.storeValue }

    /// false: a raw value may belong to no value of the type.
    @inlinable public static var acceptsEveryValue: Bool { false }

    /// The first case of a type that is `CaseIterable`.
    public static var fallback: RawAttribute? {
        guard let type = V.self as? any CaseIterable.Type else { return nil }
        return RawAttribute(ifPresent: firstCase(of: type))
    }

    private static func firstCase<C: CaseIterable>(of type: C.Type) -> V? { C.allCases.first as? V }
}

/// A `Codable` type as an attribute, which stores JSON, and null for nil. Models use it for types that do not conform to
/// ``AttributeValue``.
public struct EncodedAttribute<V: Codable>: AttributeValue {
    /// The value of the property.
    public let value: V

    /// Wraps a value.
    public init(_ value: V) { self.value = value }

    /// Wraps a value. Returns nil for nil.
    public init?(ifPresent value: V?) {
        guard let value else { return nil }
        self.value = value
    }

    /// The column type of bytes, which contain JSON.
    public static var columnType: ColumnType { .data }

    /// Whether the type is an optional.
    public static var isOptional: Bool { V.self is any ExpressibleByNilLiteral.Type }

    /// false: bytes may be no JSON of the type.
    @inlinable public static var acceptsEveryValue: Bool { false }

    /// Creates the value by decoding JSON from `.data`, or nil from null. Returns nil if the bytes cannot be decoded.
    public init?(_ value: Value) {
        switch value {
        case .data(let bytes):
            guard let decoded = Self.decoded(bytes) else { return nil }
            self.value = decoded
        case .null:
            guard let type = V.self as? any ExpressibleByNilLiteral.Type, let none = Self.none(type) else { return nil }
            self.value = none
        default: return nil
        }
    }

    /// The value encoded as JSON, or null for nil. A value that cannot be encoded is a programmer error.
    public var storeValue: Value {
        if let optional = value as? any OptionalValue, optional.wrappedValue == nil { return .null }
        do { return .data(try AttributeJSON.encode(value)) } catch {
            preconditionFailure("\(V.self) cannot be encoded: \(error)")
        }
    }

    /// The empty value of a collection, or of a type all of whose properties may be absent.
    public static var fallback: EncodedAttribute? { EncodedAttribute(ifPresent: AttributeJSON.empty(V.self)) }

    private static func decoded(_ bytes: Data) -> V? { try? AttributeJSON.decode(V.self, from: bytes) }

    private static func none<N: ExpressibleByNilLiteral>(_ type: N.Type) -> V? { N(nilLiteral: ()) as? V }
}

extension JSONDecoder {
    /// Decodes a value that this library has encoded. `JSONEncoder` writes a decimal that is not a number as NaN, which only JSON 5 has.
    func decodeStored<V: Decodable>(_ type: V.Type, from bytes: Data) throws -> V {
        do {
            return try decode(type, from: bytes)
        } catch DecodingError.dataCorrupted where !allowsJSON5 && bytes.firstRange(of: Data("NaN".utf8)) != nil {
            allowsJSON5 = true
            return try decode(type, from: bytes)
        }
    }
}

/// The JSON of attributes of `Codable` types.
enum AttributeJSON {
    /// Returns the same bytes for equal values, unless their type encodes something that has no order, such as a set in a structure.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        if let unordered = value as? any UnorderedValue { return try unordered.orderedJSON(encoder) }
        return try encoder.encode(value)
    }

    static func decode<V: Decodable>(_ type: V.Type, from bytes: Data) throws -> V {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        return try decoder.decodeStored(type, from: bytes)
    }

    /// Returns the empty value of a collection, or of a type all of whose properties may be absent; nil for other types.
    static func empty<V: Decodable>(_ type: V.Type) -> V? {
        (try? decode(type, from: Data("[]".utf8))) ?? (try? decode(type, from: Data("{}".utf8)))
    }
}

/// An optional of any type.
protocol OptionalValue {
    /// The wrapped value; nil for nil.
    var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
    var wrappedValue: Any? { map { $0 } }
}

/// A collection that may have no order. Its JSON gets one, so that equal values have equal bytes (S032).
protocol UnorderedValue {
    func orderedJSON(_ encoder: JSONEncoder) throws -> Data
}

extension Set: UnorderedValue where Element: Encodable {
    func orderedJSON(_ encoder: JSONEncoder) throws -> Data {
        list(try map { try encoder.encode($0) }.sorted { $0.lexicographicallyPrecedes($1) })
    }
}

extension Dictionary: UnorderedValue where Key: Encodable, Value: Encodable {
    func orderedJSON(_ encoder: JSONEncoder) throws -> Data {
        // The encoder sorts these keys. It writes others as a list of keys and values, in the order of the hash table.
        if Key.self is any CodingKeyRepresentable.Type { return try encoder.encode(self) }
        let pairs = try map { (key: try encoder.encode($0.key), value: try encoder.encode($0.value)) }
        return list(pairs.sorted { $0.key.lexicographicallyPrecedes($1.key) }.flatMap { [$0.key, $0.value] })
    }
}

/// Returns a JSON array of elements that are JSON.
private func list(_ elements: [Data]) -> Data {
    Data("[".utf8) + Data(elements.joined(separator: Data(",".utf8))) + Data("]".utf8)
}
