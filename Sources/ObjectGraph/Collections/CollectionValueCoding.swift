#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The conversion of a collection's values to bytes and back.
///
/// Data, strings, numbers, Booleans, dates and UUIDs are stored as their bytes. Other values are JSON with sorted keys.
@usableFromInline
struct CollectionValueCoding<Value: Codable & Sendable> {
    /// The conversion of a type that is stored as its bytes; nil for other types.
    private let raw: RawConversion?

    private struct RawConversion {
        var encode: (Value) -> Data
        var decode: (Data) throws(WrongBytes) -> Value
    }

    init() {
        if let type = Value.self as? any RawCollectionValue.Type { raw = Self.conversion(type) } else { raw = nil }
    }

    /// Chooses the conversion once, so that no value is cast.
    private static func conversion<Raw: RawCollectionValue>(_: Raw.Type) -> RawConversion {
        // Safe because `Raw` is the type `Value` itself.
        RawConversion(
            encode: { unsafeBitCast($0, to: Raw.self).collectionBytes },
            decode: { bytes throws(WrongBytes) in unsafeBitCast(try Raw(collectionBytes: bytes), to: Value.self) })
    }

    var typeName: String { "\(Value.self)" }

    func encode(_ value: Value) throws -> Data {
        if let raw { return raw.encode(value) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "infinity", negativeInfinity: "-infinity", nan: "nan")
        if let unordered = value as? any UnorderedValue { return try unordered.orderedJSON(encoder) }
        return try encoder.encode(value)
    }

    @usableFromInline
    func decode(_ bytes: Data) throws(UndecodableValue) -> Value {
        if let raw {
            do throws(WrongBytes) {
                return try raw.decode(bytes)
            } catch {
                throw UndecodableValue(field: nil, reason: "\(bytes.count) bytes are no \(typeName)")
            }
        }
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "infinity", negativeInfinity: "-infinity", nan: "nan")
        do {
            return try decoder.decodeStored(Value.self, from: bytes)
        } catch {
            throw UndecodableValue(error)
        }
    }
}

/// The reason why a stored value does not decode.
@usableFromInline
struct UndecodableValue: Error {
    @usableFromInline var field: String?
    @usableFromInline var reason: String

    init(field: String?, reason: String) {
        self.field = field
        self.reason = reason
    }

    init(_ error: any Error) {
        func name(_ path: [any CodingKey], _ last: String? = nil) -> String? {
            let names = path.map { $0.intValue.map { "\($0)" } ?? $0.stringValue } + [last].compactMap(\.self)
            return names.isEmpty ? nil : names.joined(separator: ".")
        }
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            self.init(field: name(context.codingPath, key.stringValue), reason: "the stored value does not have it")
        case DecodingError.valueNotFound(let type, let context):
            self.init(field: name(context.codingPath), reason: "the stored value is null, not \(Self.text(type))")
        case DecodingError.typeMismatch(let type, let context):
            self.init(field: name(context.codingPath), reason: "the stored value is not \(Self.text(type))")
        case DecodingError.dataCorrupted(let context):
            self.init(field: name(context.codingPath), reason: context.debugDescription)
        default: self.init(field: nil, reason: "\(error)")
        }
    }

    /// Returns a type as people name it. The decoder has dictionaries for objects and arrays for lists.
    private static func text(_ type: Any.Type) -> String {
        let name = "\(type)"
        if name.hasPrefix("Dictionary<") { return "an object with fields" }
        return name.hasPrefix("Array<") ? "a list" : "of type \(name)"
    }
}

/// The error for bytes that are not of a type.
private struct WrongBytes: Error {}

/// A value that a collection stores as its bytes.
private protocol RawCollectionValue {
    var collectionBytes: Data { get }
    init(collectionBytes: Data) throws(WrongBytes)
}

extension Data: RawCollectionValue {
    fileprivate var collectionBytes: Data { self }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) { self = collectionBytes }
}

extension String: RawCollectionValue {
    fileprivate var collectionBytes: Data { Data(utf8) }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) {
        guard let text = String(validating: collectionBytes, as: UTF8.self) else { throw WrongBytes() }
        self = text
    }
}

extension RawCollectionValue where Self: BitwiseCopyable {
    fileprivate var collectionBytes: Data { withUnsafeBytes(of: self) { Data($0) } }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) {
        guard collectionBytes.count == MemoryLayout<Self>.size else { throw WrongBytes() }
        self = collectionBytes.withUnsafeBytes { $0.loadUnaligned(as: Self.self) }
    }
}

// Swift runs on little-endian machines only, so that these are the bytes of every file.
extension Int: RawCollectionValue {}
extension Int8: RawCollectionValue {}
extension Int16: RawCollectionValue {}
extension Int32: RawCollectionValue {}
extension Int64: RawCollectionValue {}
extension UInt: RawCollectionValue {}
extension UInt8: RawCollectionValue {}
extension UInt16: RawCollectionValue {}
extension UInt32: RawCollectionValue {}
extension UInt64: RawCollectionValue {}
extension Float: RawCollectionValue {}
extension Double: RawCollectionValue {}

extension Bool: RawCollectionValue {
    fileprivate var collectionBytes: Data { Data([self ? 1 : 0]) }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) {
        guard collectionBytes.count == 1, let byte = collectionBytes.first, byte <= 1 else { throw WrongBytes() }
        self = byte == 1
    }
}

extension Date: RawCollectionValue {
    fileprivate var collectionBytes: Data { timeIntervalSinceReferenceDate.collectionBytes }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) {
        self.init(timeIntervalSinceReferenceDate: try Double(collectionBytes: collectionBytes))
    }
}

extension UUID: RawCollectionValue {
    fileprivate var collectionBytes: Data { withUnsafeBytes(of: uuid) { Data($0) } }
    fileprivate init(collectionBytes: Data) throws(WrongBytes) {
        guard collectionBytes.count == 16 else { throw WrongBytes() }
        self.init(uuid: collectionBytes.withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) })
    }
}
