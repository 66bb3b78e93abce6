extension Report {
    /// Returns one self-contained page: the tables, and for each configuration a timeline of the run with the median total.
    public func html(title: String) -> String {
        var body = "<h1>\(Self.escaped(title))</h1><p>\(Self.escaped(machine.command))</p><p>\(Self.escaped(machine.summary))</p>"
        if runs.contains(where: { $0.stack != nil }) { body += Self.html(stackTable()) }
        if runs.contains(where: { $0.operation != nil }) { body += Self.html(operationTable()) }
        for note in notes { body += "<p>\(Self.escaped(note))</p>" }
        let longest = runs.flatMap(\.timelines).map(\.totalSeconds).max() ?? 1
        for row in runs {
            guard
                let run = row.timelines.sorted(by: { $0.totalSeconds < $1.totalSeconds }).dropFirst(row.timelines.count / 2).first
            else { continue }
            let name = [row.stack, row.store, row.routing, row.operation, row.engine].compactMap(\.self).joined(separator: ", ")
            body += "<h2>\(Self.escaped(name))</h2>" + Timeline(run, longestSeconds: longest).svg()
        }
        return """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>\(Self.escaped(title))</title><style>
            body{font:14px/1.5 system-ui,sans-serif;margin:2em;color:#222}table{border-collapse:collapse;margin:1em 0}
            th,td{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:right}th:nth-child(-n+3),td:nth-child(-n+3){text-align:left}
            h2{font-size:15px;margin:1.5em 0 .3em}svg{display:block}</style></head><body>\(body)</body></html>

            """
    }

    private static func html(_ table: TextTable) -> String {
        let head = table.header.map { "<th>\(escaped($0))</th>" }.joined()
        let rows = table.rows.map { "<tr>" + $0.map { "<td>\(escaped($0))</td>" }.joined() + "</tr>" }.joined(separator: "\n")
        return "<table><thead><tr>\(head)</tr></thead><tbody>\(rows)</tbody></table>"
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }
}

/// Draws one run. The main thread has a blue lane, each other lane is grey, and saves are orange.
struct Timeline {
    private let run: RunFigures
    private let scale: Double
    private static let width = 1000.0
    private static let left = 130.0
    private static let height = 20

    /// - Parameter longestSeconds: The time that the full width represents. It is the same for all runs, so that they can be
    ///   compared.
    init(_ run: RunFigures, longestSeconds: Double) {
        self.run = run
        scale = Self.width / (longestSeconds * 1e9)
    }

    func svg() -> String {
        var lanes: [String] = []
        for span in run.spans where !lanes.contains(span.lane) { lanes.append(span.lane) }
        let rows = lanes.count + 1
        var parts = [label("main", row: 0)]
        parts += merged(run.busy).map { bar($0.start, $0.end, row: 0, color: "#1f6feb", title: "main busy") }
        for (row, lane) in lanes.enumerated() {
            parts.append(label(lane, row: row + 1))
            for span in run.spans where span.lane == lane {
                let color = span.kind == .save ? "#e8832a" : "#999"
                parts.append(bar(span.start, span.end, row: row + 1, color: color, title: span.kind == .save ? "save" : "work"))
            }
        }
        let total = Shown.number(run.totalSeconds)
        parts.append(
            "<text x=\"\(Self.left)\" y=\"\(rows * Self.height + 14)\" font-size=\"11\">\(total) s in all; blue: main busy, "
                + "grey: work, orange: saves</text>")
        let width = Int(Self.left + Self.width) + 10
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(rows * Self.height + 20)\">"
            + parts.joined() + "</svg>"
    }

    private func label(_ name: String, row: Int) -> String {
        let y = row * Self.height
        return "<text x=\"0\" y=\"\(y + 14)\" font-size=\"12\">\(Report.escaped(name))</text>"
            + "<rect x=\"\(Self.left)\" y=\"\(y + 2)\" width=\"\(Self.width)\" height=\"\(Self.height - 4)\" fill=\"#f4f4f4\"/>"
    }

    private func bar(_ start: UInt64, _ end: UInt64, row: Int, color: String, title: String) -> String {
        let from = Double(start &- min(start, run.start)) * scale
        let length = max(0.5, Double(end - start) * scale)
        let milliseconds = Shown.number(Double(end - start) / 1e6)
        return
            "<rect x=\"\(Shown.fixed(Self.left + from, 2))\" y=\"\(row * Self.height + 2)\" width=\"\(Shown.fixed(length, 2))\" "
            + "height=\"\(Self.height - 4)\" fill=\"\(color)\"><title>\(title) \(milliseconds) ms</title></rect>"
    }

    /// Joins intervals that are closer together than a fifth of a point, so that pages stay small.
    private func merged(_ intervals: [BusyInterval]) -> [BusyInterval] {
        var result: [BusyInterval] = []
        for interval in intervals {
            if let last = result.last, Double(interval.start - last.end) * scale < 0.2 {
                result[result.count - 1].end = interval.end
            } else {
                result.append(interval)
            }
        }
        return result
    }
}
