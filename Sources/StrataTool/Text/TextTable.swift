/// A table of text with aligned columns.
struct TextTable {
    var header: [String]
    /// The columns that are aligned right.
    var numbers: Set<Int> = []
    var rows: [[String]] = []

    /// The greatest width of a cell, in characters. Longer texts are cut.
    private static let widest = 48

    /// The table, without a line end at its end.
    var text: String {
        let cells = ([header] + rows).map { $0.map(Self.shortened) }
        var widths = header.map { _ in 0 }
        for row in cells { for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) } }
        var lines = cells.map { line($0, widths) }
        lines.insert(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  "), at: 1)
        return lines.joined(separator: "\n")
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (column, cell) in cells.enumerated() {
            let space = String(repeating: " ", count: widths[column] - cell.count)
            if column > 0 { line += "  " }
            line += numbers.contains(column) ? space + cell : cell + space
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    /// Returns a text on one line, cut to the greatest width, without characters that move the cursor.
    private static func shortened(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(4 * widest)
        let plain = String(scalars).withoutControls()
        return plain.count > widest || scalars.count < text.unicodeScalars.count ? plain.prefix(widest - 1) + "…" : plain
    }
}

extension String {
    /// Returns the text with a blank for each control character, which a terminal would execute.
    /// - Parameter keepingLines: Whether line ends stay.
    func withoutControls(keepingLines: Bool = false) -> String {
        let scalars = unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control && !(keepingLines && scalar == "\n") ? UnicodeScalar(" ") : scalar
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
