/// Parses JSON text (RFC 8259).
struct JSONParser {
    /// The reason why text is not JSON, and the byte at which it ends, counted from 1.
    struct Failure: Error {
        var reason: String
        var position: Int
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// The greatest nesting of arrays and objects.
    private let maximumDepth: Int

    /// Returns the value of a text that contains one value and nothing else.
    static func parse(_ bytes: some Sequence<UInt8>, maximumDepth: Int = 64) throws(Failure) -> JSON {
        var parser = JSONParser(ArraySlice(bytes), maximumDepth)
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        if parser.position < parser.bytes.endIndex { throw parser.failure("text after the end of the value") }
        return value
    }

    private init(_ bytes: ArraySlice<UInt8>, _ maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
        // A byte order mark is no part of the text.
        position = bytes.startIndex + (bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0)
    }

    private func failure(_ reason: String) -> Failure { Failure(reason: reason, position: position - bytes.startIndex + 1) }

    private var byte: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func take(_ wanted: Character) -> Bool {
        guard byte == wanted.asciiValue else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) throws(Failure) -> JSON {
        skipSpace()
        guard depth <= maximumDepth else { throw failure("nested more than \(maximumDepth) levels deep") }
        switch byte {
        case UInt8(ascii: "{"): return try object(depth)
        case UInt8(ascii: "["): return try array(depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case nil: throw failure("the text ends where a value is expected")
        default: return try number()
        }
    }

    private mutating func word(_ word: String, _ value: JSON) throws(Failure) -> JSON {
        guard bytes[position...].starts(with: word.utf8) else { throw failure("no value begins like this") }
        position += word.utf8.count
        return value
    }

    private mutating func object(_ depth: Int) throws(Failure) -> JSON {
        position += 1
        var members: [JSON.Member] = []
        skipSpace()
        if take("}") { return .object(members) }
        repeat {
            skipSpace()
            guard byte == UInt8(ascii: "\"") else { throw failure("the name of a member is expected, in quotes") }
            let name = try string()
            skipSpace()
            guard take(":") else { throw failure("a colon is expected") }
            members.append(JSON.Member(name: name, value: try value(depth: depth + 1)))
            skipSpace()
        } while take(",")
        guard take("}") else { throw failure("a comma or a closing brace is expected") }
        return .object(members)
    }

    private mutating func array(_ depth: Int) throws(Failure) -> JSON {
        position += 1
        var elements: [JSON] = []
        skipSpace()
        if take("]") { return .array(elements) }
        repeat {
            elements.append(try value(depth: depth + 1))
            skipSpace()
        } while take(",")
        guard take("]") else { throw failure("a comma or a closing bracket is expected") }
        return .array(elements)
    }

    private mutating func number() throws(Failure) -> JSON {
        let start = position
        func isDigit(_ byte: UInt8?) -> Bool { byte.map { $0 >= 48 && $0 <= 57 } ?? false }
        func digits(_ parser: inout JSONParser) throws(Failure) {
            guard isDigit(parser.byte) else { throw parser.failure("no value begins like this, or a digit is missing") }
            while isDigit(parser.byte) { parser.position += 1 }
        }
        _ = take("-")
        if !take("0") { try digits(&self) }
        if take(".") { try digits(&self) }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits(&self)
        }
        return .number(String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func string() throws(Failure) -> String {
        position += 1
        var text: [UInt8] = []
        while true {
            guard let byte else { throw failure("a string that never ends") }
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else { throw failure("bytes that are not UTF-8") }
                return string
            case UInt8(ascii: "\\"): text += try escaped()
            case ..<0x20: throw failure("a control character in a string; write it with a backslash")
            default: text.append(byte)
            }
        }
    }

    private mutating func escaped() throws(Failure) -> [UInt8] {
        guard let byte else { throw failure("a string that never ends") }
        position += 1
        switch byte {
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "u"):
            var units = [try unit()]
            if units[0] & 0xFC00 == 0xD800, take("\\"), take("u") { units.append(try unit()) }
            guard let text = String(validating: units, as: UTF16.self) else { throw failure("half of a character") }
            return Array(text.utf8)
        default: throw failure("no such character after a backslash")
        }
    }

    private mutating func unit() throws(Failure) -> UInt16 {
        let digits = bytes[position...].prefix(4)
        guard digits.count == 4, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
            let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw failure("four hexadecimal digits are expected") }
        position += 4
        return unit
    }
}
