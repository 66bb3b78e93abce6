import Datasets
import Foundation
import StoreInterface
import StoreModel

/// Values as text and JSON that can be read back without a loss. The type of the column decides the form.
///
/// Dates are ISO 8601 if that is exact, and otherwise seconds since 2001-01-01 UTC. Data is Base64. Every NaN is the same text: the bits in
/// which two of them differ have no meaning.
enum ValueText {
    /// Returns a value as text; nil for null. References are numbers.
    static func text(_ value: Value, _ type: ColumnType) -> String? {
        switch value {
        case .null: nil
        case .bool(let flag): flag ? "true" : "false"
        case .int(let number): "\(number)"
        case .uint(let number): "\(number)"
        case .double(let number): (type == .date ? DateText.text(number) : nil) ?? self.number(number, type)
        case .string(let text): text
        case .data(let data): data.base64EncodedString()
        case .uuid(let uuid): uuid.uuidString
        case .reference(let key): "\(key)"
        }
    }

    /// Returns a number with as many digits as it needs, without `.0` for whole numbers.
    private static func number(_ number: Double, _ type: ColumnType) -> String {
        if number.isNaN { return "NaN" }
        if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
        var text = "\(number)"
        // The digits of a float are fewer, unless they would be read as another one.
        if type == .float, let float = Float(exactly: number), Double("\(float)").map(Float.init) == float { text = "\(float)" }
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    static func json(_ value: Value, _ type: ColumnType) -> JSON {
        guard let text = text(value, type) else { return .null }
        switch value {
        case .bool(let flag): return .bool(flag)
        case .int, .uint, .reference: return .number(text)
        case .double(let number):
            let isNumber = number.isFinite && (type != .date || DateText.text(number) == nil)
            return isNumber ? .number(text) : .string(text)
        default: return .string(text)
        }
    }

    // MARK: Reading

    /// Returns the value of a text in a column of a type; nil if the text has another form.
    static func value(_ text: String, _ type: ColumnType) -> Value? {
        let value: Value? =
            switch type {
            case .bool: text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
            case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: Int64(text).map { .int($0) }
            case .uint64: UInt64(text).map { .uint($0) }
            // A finite number that a float cannot hold would become an infinite one.
            case .float: double(text).flatMap { $0.isFinite && !Float($0).isFinite ? nil : .double($0) }
            case .double: double(text).map { .double($0) }
            case .date: (DateText.seconds(text) ?? double(text)).map { .double($0) }
            case .string: .string(text)
            case .data: Data(base64Encoded: text).map { .data($0) }
            case .uuid: UUID(uuidString: text).map { .uuid($0) }
            case .reference: ObjectKey(text).map { .reference($0) }
            }
        return value.flatMap { type.accepts($0, isOptional: false) ? $0 : nil }
    }

    private static func double(_ text: String) -> Double? {
        switch text {
        case "NaN": return .nan
        case "Infinity": return .infinity
        case "-Infinity": return -.infinity
        default:
            guard let first = text.utf8.first, first == 45 || first >= 48 && first <= 57 else { return nil }
            return Double(text).flatMap { $0.isFinite ? $0 : nil }
        }
    }

    /// Returns the value of JSON in a column of a type; nil if it has another form.
    static func value(_ json: JSON, _ type: ColumnType) -> Value? {
        switch (json, type) {
        case (.null, _): .null
        case (.bool(let flag), .bool): .bool(flag)
        case (.string(let text), .string), (.string(let text), .data), (.string(let text), .uuid), (.string(let text), .date):
            value(text, type)
        case (.string(let text), .float), (.string(let text), .double):
            ["NaN", "Infinity", "-Infinity"].contains(text) ? value(text, type) : nil
        case (.number(let text), .float), (.number(let text), .double), (.number(let text), .date), (.number(let text), .uint64),
            (.number(let text), .reference):
            value(text, type)
        case (.number(let text), .int8), (.number(let text), .int16), (.number(let text), .int32), (.number(let text), .int64),
            (.number(let text), .uint8), (.number(let text), .uint16), (.number(let text), .uint32):
            value(text, type)
        default: nil
        }
    }
}

extension ValueText {
    /// Returns the reason why a property does not have a value, and the remedy. A long text of the value is shortened.
    static func misfit(_ name: String, text: String, type: ColumnType) -> String {
        let shown = text.count > 40 ? String(text.prefix(40)) + "…" : text
        return "\(name) cannot be \(shown): its values are of the type \(type.rawValue). Correct the value"
    }

    /// Returns the time of a save, to the millisecond.
    static func moment(_ date: Date) -> String {
        let seconds = date.timeIntervalSinceReferenceDate
        return DateText.text((seconds * 1000).rounded() / 1000) ?? "\(seconds) seconds since 2001-01-01T00:00:00Z"
    }

    /// Returns a value as text for people: data as its size, null as `nil`.
    static func shown(_ value: Value, _ type: ColumnType) -> String {
        switch value {
        case .null: "nil"
        case .data(let data): "\(data.count) bytes"
        default: text(value, type) ?? "nil"
        }
    }
}
