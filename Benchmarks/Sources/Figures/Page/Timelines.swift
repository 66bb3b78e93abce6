/// Draws the run with the median total of each configuration, all on the same scale. Main has a lane, and each background context has one.
struct Timelines {
    private struct Line {
        var row: Report.Row
        var run: RunFigures
        var lanes: [Lane]
    }

    /// A background context, or many of them.
    private struct Lane {
        var label: String
        var spans: [Span]
        var contexts = 1

        func columns(_ run: RunFigures, _ width: Double, saves: Bool) -> BusyColumns {
            let intervals = spans.filter { !saves || $0.kind == .save }.map { BusyInterval(start: $0.start, end: $0.end) }
            return BusyColumns(intervals, start: run.start, end: run.end, width: width, lanes: contexts)
        }
    }

    private let lines: [Line]
    private let axis: TimeAxis

    /// The largest size of all lines together, unless even the fewest columns need more.
    private static let mostBytes = 36_000
    /// The numbers of columns to choose from. A page of 1,200 pixels has about two pixels per column at the first.
    private static let columns = [480, 360, 240, 160, 100, 60]
    /// Contexts have a lane each up to this number. Above it they share one.
    private static let mostLanes = 4
    /// The height of a lane and the gap below it, in units of ``BusyColumns/fullHeight``.
    private static let laneHeight = 48

    init(_ rows: [Report.Row]) {
        lines = rows.compactMap { row in
            let sorted = row.timelines.sorted { $0.totalSeconds < $1.totalSeconds }
            return sorted.dropFirst(sorted.count / 2).first.map { Line(row: row, run: $0, lanes: Self.lanes($0)) }
        }
        axis = TimeAxis(seconds: max(1e-6, lines.map(\.run.totalSeconds).max() ?? 0), most: 7)
    }

    private static func lanes(_ run: RunFigures) -> [Lane] {
        var lanes: [Lane] = []
        var positions: [String: Int] = [:]
        for span in run.spans {
            let position = positions[span.lane] ?? lanes.count
            if position == lanes.count { lanes.append(Lane(label: span.lane, spans: [])) }
            positions[span.lane] = position
            lanes[position].spans.append(span)
        }
        if lanes.count <= mostLanes { return lanes }
        return [Lane(label: "\(lanes.count) contexts", spans: run.spans, contexts: lanes.count)]
    }

    /// Returns the lines, grouped by store. Empty if there are none.
    func html() -> String {
        if lines.isEmpty { return "" }
        var columns = 0
        var drawn: [String] = []
        for count in Self.columns {
            columns = count
            drawn = lines.map { html($0, columns: count) }
            if drawn.reduce(0, { $0 + $1.utf8.count }) <= Self.mostBytes { break }
        }
        var groups: [(name: String, lines: [String])] = []
        for (line, text) in zip(lines, drawn) {
            let position = groups.firstIndex { $0.name == line.row.storeName } ?? groups.count
            if position == groups.count { groups.append((line.row.storeName, [])) }
            groups[position].lines.append(text)
        }
        let figures = groups.map { group in
            """
            <h3>\(Report.escaped(group.name))</h3><figure style="--step:\(TimeAxis.percent(axis.stepShare))">
            \(group.lines.joined(separator: "\n"))
            <div class="lanes"><span>time, \(axis.unit)</span>\(axis.html())</div></figure>
            """
        }
        let width = Shown.time(axis.seconds / Double(columns))
        return """
            <h2>Time lines</h2><p>The repeat with the median total of each configuration, all on one scale. Each lane is cut into \
            columns of \(width). A column is filled to the share of its time in which the lane was busy, from 0 % at the base to 100 % at \
            full height. The filled area is thus the busy time.</p>
            \(figures.joined(separator: "\n"))
            """
    }

    private func html(_ line: Line, columns: Int) -> String {
        let run = line.run
        let width = axis.seconds * 1e9 / Double(columns)
        let length = Shown.fixed(Double(run.end - run.start) / width, 1)
        var drawing = ""
        func draw(_ columns: BusyColumns, lane: Int, _ kind: String) {
            let path = columns.path(top: lane * Self.laneHeight)
            if !path.isEmpty { drawing += "<path class=\"\(kind)\" d=\"\(path)\"/>" }
        }
        for lane in 0...line.lanes.count {
            drawing +=
                "<rect y=\"\(lane * Self.laneHeight)\" width=\"\(length)\" height=\"\(BusyColumns.fullHeight)\"/>"
        }
        draw(BusyColumns(run.busy, start: run.start, end: run.end, width: width), lane: 0, "main")
        for (number, lane) in line.lanes.enumerated() {
            // Saves are drawn over the sum of work and saves, so that the visible rest is the work.
            draw(lane.columns(run, width, saves: false), lane: number + 1, "work")
            draw(lane.columns(run, width, saves: true), lane: number + 1, "save")
        }
        let labels = ["main"] + line.lanes.map { Report.escaped($0.label) }
        let stack = Report.escaped(line.row.stack ?? line.row.benchmark)
        let height = labels.count * Self.laneHeight
        return """
            <p><b>\(stack)</b> \(Shown.time(run.totalSeconds)), main busy \
            \(Shown.percent(run.main.busySeconds, of: run.totalSeconds)), longest stall \
            \(Shown.time(run.main.longestStallMilliseconds / 1e3))</p><div class="lanes"><span>\(labels.joined(separator: "<br>"))</span>\
            <svg viewBox="0 0 \(columns) \(height)" preserveAspectRatio="none" style="height:\(height / 2)px" role="img">\
            <title>\(stack), \(Report.escaped(line.row.storeName))</title><desc>\(Report.escaped(description(line)))</desc>\(drawing)</svg></div>
            """
    }

    /// Describes a line in words, for those who do not see it.
    private func description(_ line: Line) -> String {
        let run = line.run
        let lanes = line.lanes.map { lane in
            let shares = [false, true].map { saves in
                lane.spans.filter { !saves || $0.kind == .save }.reduce(0) { $0 + Double($1.end - min($1.start, $1.end)) / 1e9 }
                    / Double(lane.contexts)
            }
            return "\(lane.label) works for \(Shown.percent(shares[0] - shares[1], of: run.totalSeconds)) and saves for "
                + "\(Shown.percent(shares[1], of: run.totalSeconds)) of the time."
        }
        return (["Main is busy \(run.busy.count) times."] + lanes).joined(separator: " ")
    }
}

extension RunFigures {
    /// The end of the run, in nanoseconds of the clock.
    var end: UInt64 { start + UInt64(max(0, totalSeconds) * 1e9) }
}
