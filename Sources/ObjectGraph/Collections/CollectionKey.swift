import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A type of keys in a ``KeyedCollection``: strings, integers, UUIDs, dates, data and object ids, and enumerations with such raw values.
///
/// A key is stored as bytes whose order is the order of the keys. Strings are ordered by Unicode code points, and two strings are the same
/// key only if they have the same code points.
///
/// An enumeration needs a case for every raw value that is stored. Reading a key with another raw value throws
/// ``CollectionError/unreadableKey(collection:)``.
///
/// To use a type of your own, encode it as other keys:
/// ```swift
/// struct Day: CollectionKey {
///     var number: Int32
///     static var keyTypeName: String { "Day" }
///     func appendKey(to bytes: inout [UInt8], isLast: Bool) { number.appendKey(to: &bytes, isLast: isLast) }
///     init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
///         guard let number = Int32(readingKey: &bytes, isLast: isLast) else { return nil }
///         self.number = number
///     }
/// }
/// ```
public protocol CollectionKey: Sendable {
    /// The name of the type, which the file keeps. Keys of another name are refused.
    static var keyTypeName: String { get }
    /// Appends bytes that are ordered like the keys.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the preceding parts of the key.
    ///   - isLast: Whether no part of a tuple follows. Otherwise, the bytes must show where they end.
    func appendKey(to bytes: inout [UInt8], isLast: Bool)
    /// Reads the bytes that ``appendKey(to:isLast:)`` wrote, and removes them. Returns nil for other bytes.
    init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool)
}

extension CollectionKey where Self: FixedWidthInteger {
    /// The name of the integer type.
    public static var keyTypeName: String { "\(Self.self)" }

    /// Appends the number, most significant byte first, with an inverted sign.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) {
        withUnsafeBytes(of: (self ^ Self.min).bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Reads a number.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        let count = MemoryLayout<Self>.size
        guard bytes.count >= count else { return nil }
        let number = bytes.prefix(count).withUnsafeBytes { $0.loadUnaligned(as: Self.self) }
        bytes.removeFirst(count)
        self = Self(bigEndian: number) ^ Self.min
    }
}

extension Int: CollectionKey {}
extension Int8: CollectionKey {}
extension Int16: CollectionKey {}
extension Int32: CollectionKey {}
extension Int64: CollectionKey {}
extension UInt: CollectionKey {}
extension UInt8: CollectionKey {}
extension UInt16: CollectionKey {}
extension UInt32: CollectionKey {}
extension UInt64: CollectionKey {}

extension String: CollectionKey {
    /// `String`.
    public static var keyTypeName: String { "String" }

    /// Appends the UTF-8 of the string.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) { KeyBytes.append(utf8, to: &bytes, isLast: isLast) }

    /// Reads a string.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard let found = KeyBytes.read(&bytes, isLast: isLast) else { return nil }
        // Validating costs more than the rest of reading a short key.
        if found.allSatisfy({ $0 < 128 }) {
            self.init(decoding: found, as: UTF8.self)
        } else {
            guard let text = String(validating: found, as: UTF8.self) else { return nil }
            self = text
        }
    }
}

extension Data: CollectionKey {
    /// `Data`.
    public static var keyTypeName: String { "Data" }

    /// Appends the bytes.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) { KeyBytes.append(self, to: &bytes, isLast: isLast) }

    /// Reads bytes.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard let found = KeyBytes.read(&bytes, isLast: isLast) else { return nil }
        self = Data(found)
    }
}

extension UUID: CollectionKey {
    /// `UUID`.
    public static var keyTypeName: String { "UUID" }

    /// Appends the 16 bytes.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) {
        withUnsafeBytes(of: uuid) { bytes.append(contentsOf: $0) }
    }

    /// Reads 16 bytes.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard bytes.count >= 16 else { return nil }
        self.init(uuid: bytes.prefix(16).withUnsafeBytes { $0.loadUnaligned(as: uuid_t.self) })
        bytes.removeFirst(16)
    }
}

extension Date: CollectionKey {
    /// `Date`.
    public static var keyTypeName: String { "Date" }

    /// Appends the seconds since 2001, so that earlier dates come first.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) {
        let seconds = timeIntervalSinceReferenceDate
        let bits = seconds == 0 ? 0 : seconds.bitPattern
        (bits >> 63 == 0 ? bits | 1 << 63 : ~bits).appendKey(to: &bytes, isLast: isLast)
    }

    /// Reads a date.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard let bits = UInt64(readingKey: &bytes, isLast: isLast) else { return nil }
        self.init(timeIntervalSinceReferenceDate: Double(bitPattern: bits >> 63 == 0 ? ~bits : bits & ~(1 << 63)))
    }
}

extension ObjectID: CollectionKey {
    /// `ObjectID`.
    public static var keyTypeName: String { "ObjectID" }

    /// Appends the store, the position of the entity in the model, and the key: the objects of an entity are in the order of their keys.
    ///
    /// Add new entities at the end of the model, because the file keeps these positions.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) {
        store.uuid.appendKey(to: &bytes, isLast: false)
        entity.rawValue.appendKey(to: &bytes, isLast: false)
        key.rawValue.appendKey(to: &bytes, isLast: isLast)
    }

    /// Reads an id.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard let store = UUID(readingKey: &bytes, isLast: false), let entity = Int(readingKey: &bytes, isLast: false),
            let key = UInt64(readingKey: &bytes, isLast: isLast)
        else { return nil }
        self.init(store: StoreIdentity(store), entity: EntityIndex(rawValue: entity), key: ObjectKey(rawValue: key))
    }
}

extension CollectionKey where Self: RawRepresentable, RawValue: CollectionKey {
    /// The name of the raw values' type.
    public static var keyTypeName: String { RawValue.keyTypeName }

    /// Appends the raw value.
    public func appendKey(to bytes: inout [UInt8], isLast: Bool) { rawValue.appendKey(to: &bytes, isLast: isLast) }

    /// Reads a raw value.
    public init?(readingKey bytes: inout ArraySlice<UInt8>, isLast: Bool) {
        guard let value = RawValue(readingKey: &bytes, isLast: isLast) else { return nil }
        self.init(rawValue: value)
    }
}

/// The bytes of keys, and the ranges of them.
enum KeyBytes {
    /// Appends bytes of any length. In front of another part, they end with 0, 1, and a 0 among them is written as 0, 255.
    static func append(_ value: some Sequence<UInt8>, to bytes: inout [UInt8], isLast: Bool) {
        if isLast { return bytes.append(contentsOf: value) }
        for byte in value {
            bytes.append(byte)
            if byte == 0 { bytes.append(255) }
        }
        bytes += [0, 1]
    }

    static func read(_ bytes: inout ArraySlice<UInt8>, isLast: Bool) -> ArraySlice<UInt8>? {
        if isLast {
            defer { bytes = [] }
            return bytes
        }
        var found: ArraySlice<UInt8> = []
        while let byte = bytes.popFirst() {
            guard byte == 0 else {
                found.append(byte)
                continue
            }
            switch bytes.popFirst() {
            case 255: found.append(0)
            case 1: return found
            default: return nil
            }
        }
        return nil
    }

    /// Returns the first bytes after all bytes with a prefix; nil if there are none.
    static func end(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        guard let last = prefix.lastIndex(where: { $0 != 255 }) else { return nil }
        return prefix[..<last] + [prefix[last] + 1]
    }
}
