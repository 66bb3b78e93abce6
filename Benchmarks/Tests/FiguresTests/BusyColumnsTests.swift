import Testing

@testable import Figures

/// The drawn area of a time line, against the busy time that it stands for.
@Suite struct BusyColumnsTests {
    private static func interval(_ start: UInt64, _ end: UInt64) -> BusyInterval { BusyInterval(start: start, end: end) }

    @Test func `an interval is shared among the columns that it covers`() {
        let columns = BusyColumns([Self.interval(105, 125), Self.interval(125, 130)], start: 100, end: 140, width: 10)
        #expect(columns.shares == [0.5, 1, 1, 0])
        #expect(columns.heights == [20, 40, 40, 0])
        #expect(columns.path(top: 0) == "M0 40v-20h1v-20h2v40h1z")
        #expect(columns.path(top: 48).hasPrefix("M0 88v-20h1"))
    }

    @Test func `the parts of intervals outside of the run do not count`() {
        let intervals = [Self.interval(0, 105), Self.interval(135, 1_000), Self.interval(2_000, 3_000), Self.interval(50, 100)]
        #expect(BusyColumns(intervals, start: 100, end: 140, width: 10).shares == [0.5, 0, 0, 0.5])
        #expect(BusyColumns(intervals, start: 100, end: 100, width: 10).shares == [0])
        #expect(BusyColumns([], start: 100, end: 140, width: 10).path(top: 0).isEmpty)
    }

    @Test func `a column shared by lanes is full if all of them are busy`() {
        let intervals = [Self.interval(0, 10), Self.interval(0, 10), Self.interval(10, 20)]
        #expect(BusyColumns(intervals, start: 0, end: 20, width: 10, lanes: 2).shares == [1, 0.5])
    }

    /// As many short jobs as there are columns: a mark per job would fill a third of the lane and more.
    @Test func `a thread that is busy for 0.8 percent fills 0.8 percent of its lane`() throws {
        let jobs = (0..<480).map { Self.interval(UInt64($0) * 1_000 + 500, UInt64($0) * 1_000 + 508) }
        let columns = BusyColumns(jobs, start: 0, end: 480_000, width: 1_000)
        let area = try Outline(columns.path(top: 0)).area
        #expect(abs(area / (480 * 40) - 0.008) < 0.5 / (480 * 40))
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func `the filled area is the busy time`(seed: UInt64) throws {
        var random = Numbers(state: seed)
        let scale = random.below(5_000) + 1
        var intervals: [BusyInterval] = []
        var now: UInt64 = 1_000_000
        let start = now
        while now < start + 1_000_000 {
            let begin = now + random.below(scale)
            now = begin + random.below(random.below(10) == 0 ? 40 * scale : scale / 3 + 1) + 1
            intervals.append(Self.interval(begin, now))
        }
        let end = now + random.below(scale)
        let width = Double(end - start) / Double(random.below(600) + 1)
        let columns = BusyColumns(intervals, start: start, end: end, width: width)
        let busy = Double(intervals.reduce(0) { $0 + $1.length })
        #expect(abs(columns.shares.reduce(0, +) * width - busy) < busy * 1e-9 + 1e-3, "seed \(seed)")

        let path = columns.path(top: 0)
        let outline = try Outline(path)
        // The path counts in columns and in fortieths of a lane. Rounding may leave half a unit of one column.
        #expect(abs(outline.area - busy / width * Double(BusyColumns.fullHeight)) <= 0.5 + 1e-6, "seed \(seed)")
        #expect(outline.heights == columns.heights, "seed \(seed)")
        for (height, share) in zip(columns.heights, columns.shares) {
            #expect(
                abs(Double(height) - share * Double(BusyColumns.fullHeight)) <= 1 && (share > 0 || height == 0), "seed \(seed)")
        }
    }

    @Test(arguments: [
        (0.0961, 5, "ms", ["0", "20", "40", "60", "80"]), (1.0, 5, "s", ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.00042, 3, "µs", ["0", "200", "400"]), (67, 3, "s", ["0", "50"]), (0.3, 3, "ms", ["0", "100", "200", "300"]),
    ])
    func `an axis has round ticks and a unit`(seconds: Double, most: Int, unit: String, labels: [String]) {
        let axis = TimeAxis(seconds: seconds, most: most)
        #expect(axis.unit == unit)
        #expect(axis.ticks.map(\.label) == labels)
        #expect(axis.ticks.allSatisfy { (0...1.000_001).contains($0.share) })
        #expect(axis.percent(seconds / 8) == "12.50%" && axis.percent(2 * seconds) == "100%")
    }
}

/// The outline of columns, read back from the text of a path.
private struct Outline {
    /// The height of each column above the base line.
    var heights: [Int] = []

    var area: Double { Double(heights.reduce(0, +)) }

    init(_ path: String) throws {
        guard !path.isEmpty else { return }
        try #require(path.hasPrefix("M0 40") && path.hasSuffix("z"))
        var height = 0
        var rest = path.dropFirst(5).dropLast()
        while let command = rest.first {
            rest = rest.dropFirst()
            let end = rest.firstIndex { $0 == "h" || $0 == "v" } ?? rest.endIndex
            let number = try #require(Int(rest[..<end]))
            rest = rest[end...]
            if command == "v" { height -= number } else { heights += Array(repeating: height, count: number) }
        }
        #expect(height == 0 || path.hasSuffix("v\(height)z"))
    }
}

/// A generator with a seed.
struct Numbers {
    var state: UInt64

    mutating func below(_ bound: UInt64) -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return bound == 0 ? 0 : (state >> 20) % bound
    }
}
