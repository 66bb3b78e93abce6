extension Report {
    /// Returns a bar chart of the rows that have a stack: the total, and the time in which main was busy. It is a table with the figures,
    /// so that it can be read without the bars. Empty if no row has a stack.
    func summary() -> String {
        let rows = runs.filter { $0.stack != nil && $0.totalSeconds != nil }
        guard !rows.isEmpty else { return "" }
        let totals = Self.axis(rows.compactMap(\.totalSeconds))
        let busy = Self.axis(rows.compactMap(\.mainBusySeconds))
        var stacks: [String] = []
        for case let stack? in rows.map(\.stack) where !stacks.contains(stack) { stacks.append(stack) }
        let groups = stacks.map { stack in
            let bars = rows.filter { $0.stack == stack }.map { row in
                "<tr><th scope=\"row\">\(Self.escaped(row.storeName))</th>"
                    + Self.bar(row.totalSeconds, on: totals) + Self.bar(row.mainBusySeconds, on: busy, kind: " class=\"main\"")
                    + "</tr>"
            }
            return "<tbody><tr><th scope=\"rowgroup\" colspan=\"3\">\(Self.escaped(stack))</th></tr>\n"
                + bars.joined(separator: "\n") + "</tbody>"
        }
        return """
            <h2>At a glance</h2><p>\(Self.escaped(Self.sentence(rows)))</p>\(Self.legend)
            <table class="bars"><thead><tr><th scope="col">stack, store</th><th scope="col">total, \(totals.unit)</th>\
            <th scope="col">main busy, \(busy.unit)</th></tr><tr aria-hidden="true"><td></td>\
            <td><div><b></b>\(totals.html())</div></td><td><div><b></b>\(busy.html())</div></td></tr></thead>
            \(groups.joined(separator: "\n"))</table>
            """
    }

    private static func axis(_ spreads: [Spread]) -> TimeAxis {
        TimeAxis(seconds: max(1e-6, spreads.map(\.max).max() ?? 0), most: 4)
    }

    private static func bar(_ spread: Spread?, on axis: TimeAxis, kind: String = "") -> String {
        guard let spread else { return "<td>-</td>" }
        let range =
            spread.max > spread.min
            ? "<u style=\"left:\(axis.percent(spread.min));width:\(axis.percent(spread.max - spread.min))\"></u>" : ""
        return "<td><div><b>\(axis.number(spread.median))</b><span\(kind)><i style=\"width:\(axis.percent(spread.median))\"></i>"
            + "\(range)</span></div></td>"
    }

    /// Names the fastest and the slowest configuration, and those whose main thread was busy for the shortest and the longest time.
    private static func sentence(_ rows: [Row]) -> String {
        func ends(_ figure: (Row) -> Double?) -> (least: Row, most: Row, leastSeconds: Double, mostSeconds: Double)? {
            let known = rows.compactMap { row in figure(row).map { (row: row, seconds: $0) } }
            guard let least = known.min(by: { $0.seconds < $1.seconds }), let most = known.max(by: { $0.seconds < $1.seconds })
            else { return nil }
            return (least.row, most.row, least.seconds, most.seconds)
        }
        var sentences: [String] = []
        if let total = ends({ $0.totalSeconds?.median }) {
            sentences.append(
                "Totals range from \(Shown.time(total.leastSeconds)) (\(total.least.name)) to \(Shown.time(total.mostSeconds)) "
                    + "(\(total.most.name)).")
        }
        if let busy = ends({ $0.mainBusySeconds?.median }) {
            sentences.append(
                "The main thread was busy for \(Shown.time(busy.leastSeconds)) (\(busy.least.name)) to \(Shown.time(busy.mostSeconds)) "
                    + "(\(busy.most.name)).")
        }
        return sentences.joined(separator: " ")
    }

    /// Explains the colors of all charts of the page.
    private static let legend = """
        <ul class="legend"><li class="main">main thread busy</li><li class="work">total; in time lines, work of background contexts</li>\
        <li class="save">saves</li><li class="range">fastest to slowest repeat</li></ul>
        """
}

extension Report.Row {
    /// The store, and its routing where there is a choice.
    var storeName: String { [store, store == "sqlite" ? routing : nil].compactMap(\.self).joined(separator: ", ") }

    /// The stack and the store.
    var name: String { [stack, storeName].compactMap(\.self).joined(separator: ", ") }
}

extension Shown {
    /// Returns a time with its unit.
    static func time(_ seconds: Double) -> String {
        if seconds >= 1 { return number(seconds) + " s" }
        return seconds >= 1e-3 || seconds == 0 ? number(seconds * 1e3) + " ms" : number(seconds * 1e6) + " µs"
    }
}
