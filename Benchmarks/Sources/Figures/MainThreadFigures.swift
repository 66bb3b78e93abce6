/// Figures of the main thread during a run, computed from the intervals in which it was busy.
public struct MainThreadFigures: Sendable, Hashable {
    /// The time in which the main executor could not run a new job, including waits.
    public var busySeconds: Double
    public var longestStallMilliseconds: Double
    public var missedFrames60: Int
    public var missedFrames120: Int

    /// - Parameter intervals: The busy intervals, in order and without overlap.
    public init(_ intervals: [BusyInterval]) {
        busySeconds = Double(intervals.reduce(0) { $0 + $1.length }) / 1e9
        longestStallMilliseconds = Double(intervals.map(\.length).max() ?? 0) / 1e6
        missedFrames60 = Self.missedFrames(intervals, hertz: 60)
        missedFrames120 = Self.missedFrames(intervals, hertz: 120)
    }

    /// Counts the frames that could not be drawn. A display asks for a frame at regular times. A frame is missed if main is
    /// busy from one such time to the next. The phase of the display is unknown, so each stall is assumed to begin at such a
    /// time, the worst case.
    static func missedFrames(_ intervals: [BusyInterval], hertz: Double) -> Int {
        let period = 1e9 / hertz
        return intervals.reduce(0) { $0 + Int(Double($1.length) / period) }
    }
}
