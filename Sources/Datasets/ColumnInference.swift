import StoreInterface
import StoreModel

/// Finds the type that can represent every value of a column of texts, without loss: each number is the only one with its text.
///
/// Inference never fails: a column of no other type is a string column.
enum ColumnInference {
    /// Returns the text as an integer. Returns nil for a leading zero, a plus sign and a negative zero, because such digits are a code and
    /// not a number.
    static func integer(_ text: some StringProtocol) -> Int64? {
        let bytes = text.utf8
        guard let first = bytes.first, first == 45 || (first >= 48 && first <= 57) else { return nil }
        let digits = first == 45 ? bytes.dropFirst() : bytes[...]
        if digits.first == 48, digits.count > 1 || first == 45 { return nil }
        return Int64(text)
    }

    /// Returns the text as a number, or nil if digits of the text would be lost.
    static func double(_ text: some StringProtocol) -> Double? { DecimalText(text)?.value }

    static func bool(_ text: some StringProtocol) -> Bool? {
        switch text {
        case "true", "TRUE", "True": true
        case "false", "FALSE", "False": false
        default: nil
        }
    }

    /// Infers the type of a column of texts and null, and converts its values.
    ///
    /// - Throws: `StoreError` if there is no room for a temporary file.
    static func column(_ name: String, _ texts: ValueColumn) throws -> TableAttribute {
        let isOptional = texts.contains(.null)
        func attribute(_ type: ColumnType, _ values: ValueColumn) -> TableAttribute {
            TableAttribute(name: name, type: type, isOptional: isOptional, values: values)
        }
        let isEmpty = texts.allSatisfy(\.isNull)
        if !isEmpty {
            if let values = try convert(texts, { integer($0).map(Value.int) }) { return attribute(.int64, values) }
            if let values = try numbers(texts) { return attribute(.double, values) }
            if let values = try convert(texts, { bool($0).map(Value.bool) }) { return attribute(.bool, values) }
            if let values = try convert(texts, { DateText.exactSeconds($0).map(Value.double) }) {
                return attribute(.date, values)
            }
        }
        return attribute(.string, texts)
    }

    /// Converts the values of a column to a type that the user chose.
    /// - Throws: ``DatasetError`` for a value that is of another type.
    static func column(_ name: String, _ texts: ValueColumn, type: ColumnType, file: String) throws -> TableAttribute {
        var row = 0
        let values = try texts.mapped { cell in
            row += 1
            guard let text = cell.text else { return .null }
            let value: Value? =
                switch type {
                case .string: .string(text)
                case .double: finite(text).map { .double($0) }
                case .bool: (bool(text) ?? ["1": true, "0": false][text]).map { .bool($0) }
                case .date: DateText.seconds(text).map { .double($0) }
                default: Int64(text).map { .int($0) }
                }
            guard let value, type.accepts(value, isOptional: false) else {
                throw DatasetError(
                    "\(file): the object \(row) has the value \(text.prefix(40).debugDescription) in \(name), which is no "
                        + "\(type.rawValue). Choose another type for the column, or correct the value")
            }
            return value
        }
        return TableAttribute(name: name, type: type, isOptional: texts.contains(.null), values: values ?? texts)
    }

    /// Returns a number that is neither too large nor too small for a double.
    private static func finite(_ text: String) -> Double? {
        guard let number = Double(text), number.isFinite else { return nil }
        let digits = text.prefix { $0 != "e" && $0 != "E" && $0 != "p" && $0 != "P" }
        return number == 0 && digits.contains { ("1"..."9").contains($0) } ? nil : number
    }

    /// Converts the texts of a column of decimal numbers. Returns nil if the texts are codes, such as the versions 1.9 and 1.10.
    ///
    /// The decimals are written as programs write them: as few as needed, or the same number of them in each text. Exponents need a
    /// text with decimals in the column.
    private static func numbers(_ texts: ValueColumn) throws -> ValueColumn? {
        var decimals: ClosedRange<Int>?
        var hasExponent = false
        var hasZeroAtEnd = false
        var hasOnlyZero = false
        let values = try texts.mapped { cell in
            guard let text = cell.text else { return .null }
            guard let number = DecimalText(text) else { return nil }
            if number.hasExponent {
                hasExponent = true
            } else {
                let known = decimals ?? number.decimals...number.decimals
                decimals = min(known.lowerBound, number.decimals)...max(known.upperBound, number.decimals)
            }
            if number.endsInZero {
                if number.decimals == 1 { hasOnlyZero = true } else { hasZeroAtEnd = true }
            }
            return .double(number.value)
        }
        guard let decimals, decimals.upperBound > 0 else { return nil }
        let isFixed = decimals.lowerBound == decimals.upperBound && !hasExponent
        let isShort = !hasZeroAtEnd && (!hasOnlyZero || decimals.lowerBound > 0)
        return isFixed || isShort ? values : nil
    }

    /// Converts all texts, or returns nil at the first text for which `read` returns nil.
    private static func convert(_ texts: ValueColumn, _ read: (String) -> Value?) throws -> ValueColumn? {
        try texts.mapped { cell in cell.text.map(read) ?? .null }
    }
}

/// A decimal number as a text, whose digits a double keeps: `-12.5`, `1e3`.
private struct DecimalText {
    var value: Double
    /// The number of digits after the point.
    var decimals = 0
    var hasExponent = false
    /// Whether the last digit after the point is zero.
    var endsInZero = false

    /// Any decimal number with so many digits is the only one of them with its double.
    private static let safeDigits = 15
    private static let mostDigits = 17

    init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        var position = bytes.first == UInt8(ascii: "-") ? 1 : 0
        func digits(_ start: Int) -> Int { bytes[start...].prefix { $0 >= 48 && $0 <= 57 }.count }
        let whole = digits(min(position, bytes.count))
        guard whole > 0, whole == 1 || bytes[position] != 48 else { return nil }
        var number = Array(bytes[position..<position + whole])
        position += whole
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            decimals = digits(position + 1)
            guard decimals > 0 else { return nil }
            number += bytes[position + 1..<position + 1 + decimals]
            endsInZero = number.last == 48
            position += 1 + decimals
        }
        if position < bytes.count {
            guard bytes[position] | 32 == UInt8(ascii: "e") else { return nil }
            position += 1
            if position < bytes.count, bytes[position] == 43 || bytes[position] == 45 { position += 1 }
            guard position < bytes.count, digits(position) == bytes.count - position else { return nil }
            hasExponent = true
        }
        guard let value = Double(String(text)), value.isFinite else { return nil }
        self.value = value
        // A negative zero that is an integer, and a number that is too small.
        if value == 0, number.contains(where: { $0 != 48 }) || bytes[0] == 45 && decimals == 0 { return nil }
        let significant = number.drop { $0 == 48 }
        if significant.count <= Self.safeDigits { return }
        if decimals == 0, !hasExponent, let integer = Int64(String(text)) {
            guard Double(exactly: integer) != nil else { return nil }
        } else {
            guard !hasExponent, significant.count <= Self.mostDigits,
                Self.rounded(value.magnitude, decimals: decimals) == significant.reduce(0, { $0 * 10 + UInt128($1 - 48) })
            else { return nil }
        }
    }

    /// Returns a number times a power of ten, rounded to an integer. Returns nil if that is too large.
    private static func rounded(_ value: Double, decimals: Int) -> UInt128? {
        guard decimals <= 22, value < 0x1p53, value.isNormal else { return nil }
        // The number is `significand` times a power of two, which is at most 1.
        let significand = UInt128(value.significandBitPattern | 1 << 52)
        let shift = 52 - Int(value.exponent)
        var product = significand
        for _ in 0..<decimals {
            let (next, isTooLarge) = product.multipliedReportingOverflow(by: 10)
            if isTooLarge { return nil }
            product = next
        }
        guard shift > 0 else { return product }
        guard shift < 128 else { return 0 }
        let half = UInt128(1) << (shift - 1)
        let rest = product & (half << 1 - 1)
        let whole = product >> shift
        let isUp = rest > half || rest == half && whole & 1 == 1
        return whole + (isUp ? 1 : 0)
    }
}
