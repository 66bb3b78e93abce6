import StoreInterface
import StoreModel

/// Finds the types of columns of SQLite, in which values of any type may occur.
enum SQLiteTypes {
    /// Infers the type of a column from its values. The declaration decides if the values allow several types.
    ///
    /// - Throws: `StoreError` if there is no room for a temporary file.
    static func attribute(_ name: String, declared: String, values: ValueColumn) throws -> TableAttribute {
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
        func made(_ type: ColumnType, _ values: ValueColumn) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: isOptional || present == 0, values: values)
        }
        if present == 0 { return made(type(ofEmpty: declared), values) }
        if ints == present {
            if declared.hasPrefix("BOOL"), let flags = try values.mapped(flag) { return made(.bool, flags) }
            if !isReal(declared) { return made(integerType(declared, values), values) }
        }
        if ints + reals == present, let numbers = try values.mapped(double) { return made(.double, numbers) }
        if ints == present { return made(.int64, values) }
        if texts == present, isDate(declared) {
            let dates = try values.mapped { value in
                guard let text = value.text else { return .null }
                return DateText.exactSeconds(text).map(Value.double)
            }
            if let dates { return made(.date, dates) }
        }
        if texts == present { return made(.string, values) }
        return made(.data, try values.mapped(bytes) ?? values)
    }

    /// Returns a remark about an attribute whose values are not those of the file, or nil.
    static func note(_ attribute: TableAttribute, _ values: ValueColumn) -> String? {
        let isMixed = values.contains { value in if case .data = value { false } else { !value.isNull } }
        guard attribute.type == .data, isMixed else { return nil }
        return "its values are of several types; numbers and texts became the bytes of their text"
    }

    private static func isReal(_ declared: String) -> Bool {
        ["REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"].contains { declared.hasPrefix($0) }
    }

    private static func isDate(_ declared: String) -> Bool { declared.hasPrefix("DATE") || declared.hasPrefix("TIMESTAMP") }

    /// Returns the type of integers: 64 bits, unless the declaration says less and the values fit.
    private static func integerType(_ declared: String, _ values: ValueColumn) -> ColumnType {
        let word = declared.prefix { $0 != "(" && $0 != " " }
        let type: ColumnType =
            switch word {
            case "TINYINT", "SMALLINT", "INT2": .int16
            case "MEDIUMINT", "INT4": .int32
            default: .int64
            }
        return values.allSatisfy { type.accepts($0, isOptional: true) } ? type : .int64
    }

    /// Returns 0 and 1 as truth values, null as it is, and nil for other values.
    private static func flag(_ value: Value) -> Value? {
        switch value {
        case .null: .null
        case .int(0): .bool(false)
        case .int(1): .bool(true)
        default: nil
        }
    }

    /// Returns an integer as a double, or nil if it is none. Returns other values as they are.
    private static func double(_ value: Value) -> Value? {
        guard case .int(let number) = value else { return value }
        return Double(exactly: number).map { .double($0) }
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
