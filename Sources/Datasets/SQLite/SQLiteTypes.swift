import StoreInterface
import StoreModel

/// Finds the types of columns of SQLite, in which values of any type may occur.
enum SQLiteTypes {
    /// Infers the type of a column from its values. The declaration decides if the values allow several types.
    static func attribute(_ name: String, declared: String, values: [Value]) -> TableAttribute {
        let isOptional = values.contains(.null)
        var ints = 0
        var reals = 0
        var texts = 0
        for value in values {
            switch value {
            case .int: ints += 1
            case .double: reals += 1
            case .string: texts += 1
            default: break
            }
        }
        let present = values.count { !$0.isNull }
        func made(_ type: ColumnType, _ values: [Value]) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: isOptional || present == 0, values: values)
        }
        if present == 0 { return made(type(ofEmpty: declared), values) }
        if ints == present {
            if declared.hasPrefix("BOOL"), values.allSatisfy({ $0.isNull || $0 == .int(0) || $0 == .int(1) }) {
                return made(.bool, values.map { if case .int(let number) = $0 { .bool(number == 1) } else { .null } })
            }
            if !isReal(declared) { return made(integerType(declared, values), values) }
        }
        if ints + reals == present, let numbers = doubles(values) { return made(.double, numbers) }
        if ints == present { return made(.int64, values) }
        if texts == present, isDate(declared) {
            let dates = values.map { value -> Value? in
                guard case .string(let text) = value else { return .null }
                return DateText.seconds(text).map(Value.double)
            }
            if !dates.contains(nil) { return made(.date, dates.compactMap(\.self)) }
        }
        if texts == present { return made(.string, values) }
        return made(.data, values.map(bytes))
    }

    /// Returns a remark about an attribute whose values are not those of the file, or nil.
    static func note(_ attribute: TableAttribute, _ values: [Value]) -> String? {
        let isMixed = values.contains { value in if case .data = value { false } else { !value.isNull } }
        guard attribute.type == .data, isMixed else { return nil }
        return "its values are of several types; numbers and texts became the bytes of their text"
    }

    private static func isReal(_ declared: String) -> Bool {
        ["REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { declared.hasPrefix($0) }
    }

    private static func isDate(_ declared: String) -> Bool { declared.hasPrefix("DATE") || declared.hasPrefix("TIMESTAMP") }

    /// Returns the type of integers: 64 bits, unless the declaration says less and the values fit.
    private static func integerType(_ declared: String, _ values: [Value]) -> ColumnType {
        let word = declared.prefix { $0 != "(" && $0 != " " }
        let type: ColumnType =
            switch word {
            case "TINYINT", "SMALLINT", "INT2": .int16
            case "MEDIUMINT", "INT4": .int32
            default: .int64
            }
        return values.allSatisfy { type.accepts($0, isOptional: true) } ? type : .int64
    }

    /// Returns the values as doubles, or nil if an integer is no double.
    private static func doubles(_ values: [Value]) -> [Value]? {
        var numbers: [Value] = []
        numbers.reserveCapacity(values.count)
        for value in values {
            guard case .int(let number) = value else {
                numbers.append(value)
                continue
            }
            guard let double = Double(exactly: number) else { return nil }
            numbers.append(.double(double))
        }
        return numbers
    }

    /// Returns the type that a declaration means to SQLite, for a column without values.
    private static func type(ofEmpty declared: String) -> ColumnType {
        if declared.hasPrefix("BOOL") { return .bool }
        if isDate(declared) { return .date }
        if declared.contains("INT") { return integerType(declared, []) }
        if ["CHAR", "CLOB", "TEXT"].contains(where: declared.contains) { return .string }
        if declared.contains("BLOB") { return .data }
        return isReal(declared) ? .double : .string
    }

    /// Converts a value of a column with mixed types to bytes, so that nothing is lost.
    private static func bytes(_ value: Value) -> Value {
        switch value {
        case .string(let text): .data(.init(text.utf8))
        case .int(let number): .data(.init("\(number)".utf8))
        case .double(let number): .data(.init("\(number)".utf8))
        default: value
        }
    }

    /// Returns the value of a default that is a plain number, text or truth value; nil for other expressions and for null.
    static func literal(_ text: String, _ type: ColumnType) -> Value? {
        var text = text[...]
        while text.hasPrefix("("), text.hasSuffix(")"), text.count > 1 { text = text.dropFirst().dropLast() }
        let value: Value?
        if text.count > 1, text.hasPrefix("'"), text.hasSuffix("'") {
            let parts = text.dropFirst().dropLast().split(separator: "''", omittingEmptySubsequences: false)
            let plain = parts.joined(separator: "'")
            value = type == .date ? DateText.seconds(plain).map { .double($0) } : .string(plain)
        } else if type == .bool {
            value = ["1": true, "TRUE": true, "0": false, "FALSE": false][text.uppercased()].map { .bool($0) }
        } else if type == .double {
            value = Double(text).map { .double($0) }
        } else {
            value = Int64(text).map { .int($0) }
        }
        return value.flatMap { type.accepts($0, isOptional: false) ? $0 : nil }
    }
}
