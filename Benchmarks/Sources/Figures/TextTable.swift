/// A table of text. The first columns are aligned left, and the others right.
public struct TextTable: Sendable {
    public enum Format: Sendable { case terminal, markdown }

    public var header: [String]
    public var rows: [[String]] = []
    /// The number of columns that are names and not numbers.
    public var names: Int

    public init(header: [String], names: Int) {
        self.header = header
        self.names = names
    }

    public func text(_ format: Format) -> String {
        let widths = header.indices.map { column in
            ([header] + rows).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            let padded = cells.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return column < names ? cell + space : space + cell
            }
            return format == .markdown ? "| " + padded.joined(separator: " | ") + " |" : padded.joined(separator: "  ")
        }
        let rule = widths.enumerated().map { column, width in
            let dashes = String(repeating: "-", count: max(3, width))
            return format == .markdown && column >= names ? String(dashes.dropLast()) + ":" : dashes
        }
        let separator = format == .markdown ? "| " + rule.joined(separator: " | ") + " |" : rule.joined(separator: "  ")
        return ([line(header), separator] + rows.map(line)).joined(separator: "\n")
    }
}

/// Formats of numbers in tables.
public enum Shown {
    /// Returns the value with enough digits to distinguish values of its size.
    public static func number(_ value: Double) -> String {
        switch abs(value) {
        case 100...: fixed(value, 0)
        case 10..<100: fixed(value, 1)
        case 0.1..<10: fixed(value, 2)
        case 0: "0"
        default: fixed(value, 3)
        }
    }

    public static func percent(_ part: Double, of whole: Double) -> String {
        whole > 0 ? number(part / whole * 100) + " %" : "-"
    }

    public static func megabytes(_ bytes: Int) -> String { number(Double(bytes) / 1_048_576) }

    public static func ratio(_ value: Double) -> String { fixed(value, value < 0.1 ? 3 : 2) + "×" }

    public static func fixed(_ value: Double, _ digits: Int) -> String {
        // Infinity and NaN are no numbers that a table can show.
        guard value.magnitude < 1e15 else { return "-" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let rounded = (abs(value) * scale).rounded()
        let whole = Int(rounded / scale)
        let sign = value < 0 && rounded > 0 ? "-" : ""
        if digits == 0 { return sign + "\(whole)" }
        let fraction = "\(Int(rounded) - whole * Int(scale))"
        return sign + "\(whole)." + String(repeating: "0", count: digits - fraction.count) + fraction
    }
}
