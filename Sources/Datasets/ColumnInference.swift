import StoreInterface
import StoreModel

/// Finds the narrowest type that can represent every value of a column.
///
/// Inference never fails: a column of no other type is a string column.
enum ColumnInference {
    /// Returns the narrowest integer type of 16, 32 or 64 bits, as the author of a model would choose.
    static func integerType(_ range: ClosedRange<Int64>) -> ColumnType {
        if Int16(exactly: range.lowerBound) != nil, Int16(exactly: range.upperBound) != nil { return .int16 }
        if Int32(exactly: range.lowerBound) != nil, Int32(exactly: range.upperBound) != nil { return .int32 }
        return .int64
    }

    /// Returns the text as an integer. Returns nil for a leading zero or a plus sign, because such digits are a code and not a
    /// number.
    static func integer(_ text: some StringProtocol) -> Int64? {
        let bytes = text.utf8
        guard let first = bytes.first, first == 45 || (first >= 48 && first <= 57) else { return nil }
        let digits = first == 45 ? bytes.dropFirst() : bytes[...]
        if digits.count > 1, digits.first == 48 { return nil }
        return Int64(text)
    }

    static func double(_ text: some StringProtocol) -> Double? {
        let bytes = text.utf8
        guard let first = bytes.first, first == 45 || first == 46 || (first >= 48 && first <= 57) else { return nil }
        let digits = first == 45 ? bytes.dropFirst() : bytes[...]
        if digits.count > 1, digits.first == 48, digits.dropFirst().first != 46 { return nil }
        if bytes.contains(where: { $0 == 120 || $0 == 88 }) { return nil }
        return Double(String(text))
    }

    static func bool(_ text: some StringProtocol) -> Bool? {
        switch text {
        case "true", "TRUE", "True": true
        case "false", "FALSE", "False": false
        default: nil
        }
    }

    /// Infers the type of a column of texts, in which nil is null, and converts its values.
    static func column(_ name: String, _ texts: [String?]) -> TableAttribute {
        let isOptional = texts.contains { $0 == nil }
        func attribute(_ type: ColumnType, _ values: [Value]) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: isOptional, values: values)
        }
        let isEmpty = texts.allSatisfy { $0 == nil }
        if !isEmpty {
            if let values = convert(texts, { integer($0).map(Value.int) }) {
                return attribute(integerType(range(of: values)), values)
            }
            if let values = convert(texts, { double($0).map(Value.double) }) { return attribute(.double, values) }
            if let values = convert(texts, { bool($0).map(Value.bool) }) { return attribute(.bool, values) }
            if let values = convert(texts, { DateText.seconds($0).map(Value.double) }) { return attribute(.date, values) }
        }
        return attribute(.string, texts.map { $0.map(Value.string) ?? .null })
    }

    /// Converts all texts, or returns nil at the first text for which `read` returns nil.
    private static func convert(_ texts: [String?], _ read: (String) -> Value?) -> [Value]? {
        var values: [Value] = []
        values.reserveCapacity(texts.count)
        for text in texts {
            guard let text else {
                values.append(.null)
                continue
            }
            guard let value = read(text) else { return nil }
            values.append(value)
        }
        return values
    }

    static func range(of values: [Value]) -> ClosedRange<Int64> {
        var low: Int64 = 0
        var high: Int64 = 0
        for case .int(let number) in values {
            low = min(low, number)
            high = max(high, number)
        }
        return low...high
    }
}
