/// A time line cut into columns of equal width, with the share of each column in which something was busy.
///
/// Drawn as a path, the filled area is the busy time: a main thread that is busy for 1 % of a run fills 1 % of its lane, no matter
/// how many short jobs that was.
struct BusyColumns {
    /// The height of a column that is busy throughout, in units of the path.
    static let fullHeight = 40

    /// The busy share of each column, from 0 to 1.
    private(set) var shares: [Double]

    /// - Parameters:
    ///   - intervals: The busy intervals of all lanes, in nanoseconds of the clock. Those of one lane do not overlap. Parts outside of
    ///     `start` and `end` do not count.
    ///   - width: The nanoseconds per column. Must be above 0.
    ///   - lanes: The number of lanes that the intervals come from. A column is full if all of them are busy.
    init(_ intervals: [BusyInterval], start: UInt64, end: UInt64, width: Double, lanes: Int = 1) {
        let length = Double(end - min(start, end)) / width
        let count = max(1, Int(length.rounded(.up)))
        var busy = Array(repeating: 0.0, count: count)
        for interval in intervals where interval.end > start && interval.start < end {
            let from = Double(max(interval.start, start) - start) / width
            let to = Double(min(interval.end, end) - start) / width
            for column in min(Int(from), count - 1)...min(Int(to), count - 1) {
                busy[column] += max(0, min(to, Double(column + 1)) - max(from, Double(column)))
            }
        }
        shares = busy.map { min(1, $0 / Double(max(1, lanes))) }
    }

    /// The height of each column as a whole number.
    ///
    /// A column's rounding error is carried into the next busy column. All columns together are thus at most half a unit wrong,
    /// and idle columns stay empty.
    var heights: [Int] {
        var error = 0.0
        return shares.map { share in
            if share == 0 { return 0 }
            let exact = share * Double(Self.fullHeight) + error
            let height = min(Self.fullHeight, max(0, Int((exact + 0.5).rounded(.down))))
            error = exact - Double(height)
            return height
        }
    }

    /// Returns the outline of the columns, as the `d` attribute of a path. Each column is one unit wide. The base line is at
    /// `fullHeight` below `top`. Empty if all heights are 0.
    func path(top: Int) -> String {
        let heights = heights
        var path = ""
        var height = 0
        var column = 0
        while column < heights.count {
            let next = heights[column...].firstIndex { $0 != heights[column] } ?? heights.count
            if heights[column] != height { path += "v\(height - heights[column])" }
            height = heights[column]
            path += "h\(next - column)"
            column = next
        }
        if height != 0 { path += "v\(height)" }
        return path.contains("v") ? "M0 \(top + Self.fullHeight)" + path + "z" : ""
    }
}
