#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keys and values as texts. The name of a type decides how its bytes are read.
extension StoredCollection {
    /// Returns the parts of a key as texts; nil for a type of keys that only its program knows, and for damaged bytes.
    ///
    /// Dates are ISO 8601 if that is exact, and otherwise seconds since 2001. Data is hexadecimal digits.
    /// - Parameters:
    ///   - bytes: The key as it is stored.
    ///   - name: A closure that returns the text of an object's id. By default, that is the description of the id.
    public func texts(ofKey bytes: Data, naming name: @escaping (ObjectID) -> String = { $0.description }) -> [String]? {
        guard let parts = keyParts(naming: name) else { return nil }
        var rest = ArraySlice(bytes)
        var texts: [String] = []
        for (position, part) in parts.enumerated() {
            guard let text = part.read(&rest, position == parts.count - 1) else { return nil }
            texts.append(text)
        }
        return rest.isEmpty ? texts : nil
    }

    /// Returns a key as Swift writes it, with strings in quotation marks and commas between parts. Returns nil as
    /// ``texts(ofKey:naming:)`` does, and for texts with control characters.
    func text(ofKey bytes: Data) -> String? {
        guard let parts = texts(ofKey: bytes), !parts.contains(where: { $0.utf8.contains { $0 < 32 } }) else { return nil }
        let written = zip(partTypes, parts).map { type, text -> String in
            switch type {
            case "String": "\"\(text)\""
            case "Data": "0x\(text)"
            default: text
            }
        }
        return written.joined(separator: ", ")
    }

    /// Returns the bytes of a key from the texts of its parts, as ``texts(ofKey:naming:)`` returns them by default; nil if they are no key
    /// of this type.
    public func key(_ texts: [String]) -> Data? {
        guard let parts = keyParts(), parts.count == texts.count else { return nil }
        var bytes: [UInt8] = []
        for (position, part) in parts.enumerated() {
            guard part.append(texts[position], &bytes, position == parts.count - 1) else { return nil }
        }
        return Data(bytes)
    }

    /// Returns a value as text: JSON for types that encode themselves. Returns nil for data, and for bytes that are no text.
    public func text(ofValue bytes: Data) -> String? { Self.text(ofValue: bytes, type: valueType) }

    /// Returns a value of a type as text, like ``text(ofValue:)``.
    static func text(ofValue bytes: Data, type: String) -> String? {
        func number<Number: BitwiseCopyable>(_: Number.Type, _ text: (Number) -> String) -> String? {
            guard bytes.count == MemoryLayout<Number>.size else { return nil }
            return bytes.withUnsafeBytes { text($0.loadUnaligned(as: Number.self)) }
        }
        return switch type {
        case "Data": nil
        case "Int", "Int64": number(Int64.self) { "\($0)" }
        case "Int8": number(Int8.self) { "\($0)" }
        case "Int16": number(Int16.self) { "\($0)" }
        case "Int32": number(Int32.self) { "\($0)" }
        case "UInt", "UInt64": number(UInt64.self) { "\($0)" }
        case "UInt8": number(UInt8.self) { "\($0)" }
        case "UInt16": number(UInt16.self) { "\($0)" }
        case "UInt32": number(UInt32.self) { "\($0)" }
        case "Float": number(Float.self) { "\($0)" }
        case "Double": number(Double.self) { "\($0)" }
        case "Bool": number(UInt8.self) { $0 == 0 ? "false" : "true" }
        case "Date": number(Double.self) { Date(timeIntervalSinceReferenceDate: $0).keyText }
        case "UUID": number(uuid_t.self) { UUID(uuid: $0).uuidString }
        default: String(validating: bytes, as: UTF8.self)
        }
    }

    private func keyParts(naming name: @escaping (ObjectID) -> String = { $0.description }) -> [KeyPart]? {
        let types = partTypes
        let parts = types.compactMap { KeyPart($0, naming: name) }
        return parts.count == types.count ? parts : nil
    }

    /// The names of the types of a key's parts.
    private var partTypes: [String] {
        let isTuple = keyType.hasPrefix("(") && keyType.hasSuffix(")")
        return isTuple ? keyType.dropFirst().dropLast().split(separator: ", ").map(String.init) : [keyType]
    }
}

/// The conversion of a part of a key to text and back.
private struct KeyPart {
    let read: (inout ArraySlice<UInt8>, Bool) -> String?
    /// Returns false if the text is no key of the type.
    let append: (String, inout [UInt8], Bool) -> Bool

    private init<Key: CollectionKey>(_: Key.Type, text: @escaping (Key) -> String, key: @escaping (String) -> Key?) {
        read = { Key(readingKey: &$0, isLast: $1).map(text) }
        append = { written, bytes, isLast in
            guard let key = key(written) else { return false }
            key.appendKey(to: &bytes, isLast: isLast)
            return true
        }
    }

    private init<Key: CollectionKey & FixedWidthInteger>(_: Key.Type) { self.init(Key.self, text: { "\($0)" }, key: { Key($0) }) }

    /// - Parameters:
    ///   - type: A ``CollectionKey/keyTypeName``.
    ///   - name: A closure that returns the text of an object's id.
    init?(_ type: String, naming name: @escaping (ObjectID) -> String) {
        switch type {
        case "String": self.init(String.self, text: { $0 }, key: { $0 })
        case "Int": self.init(Int.self)
        case "Int8": self.init(Int8.self)
        case "Int16": self.init(Int16.self)
        case "Int32": self.init(Int32.self)
        case "Int64": self.init(Int64.self)
        case "UInt": self.init(UInt.self)
        case "UInt8": self.init(UInt8.self)
        case "UInt16": self.init(UInt16.self)
        case "UInt32": self.init(UInt32.self)
        case "UInt64": self.init(UInt64.self)
        case "UUID": self.init(UUID.self, text: \.uuidString, key: { UUID(uuidString: $0) })
        case "Date": self.init(Date.self, text: \.keyText, key: Date.init(keyText:))
        case "Data": self.init(Data.self, text: \.digits, key: Data.init(digits:))
        case "ObjectID": self.init(ObjectID.self, text: name, key: { ObjectID($0) })
        default: return nil
        }
    }
}

extension Date {
    fileprivate var keyText: String {
        let seconds = timeIntervalSinceReferenceDate
        // The formatter covers the years that people write.
        guard abs(seconds) < 6e10 else { return "\(seconds)" }
        let text = formatted(ISO8601FormatStyle())
        return (try? Date(text, strategy: ISO8601FormatStyle())) == self ? text : "\(seconds)"
    }

    fileprivate init?(keyText: String) {
        if let seconds = Double(keyText) {
            self.init(timeIntervalSinceReferenceDate: seconds)
        } else {
            guard let date = try? Date(keyText, strategy: ISO8601FormatStyle()) else { return nil }
            self = date
        }
    }
}

extension Data {
    /// The bytes as pairs of hexadecimal digits.
    var digits: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }

    /// Returns nil for a text that is not pairs of hexadecimal digits. Digits of other scripts and separators are none.
    fileprivate init?(digits text: String) {
        let digits = text.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        self.init(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }
}
