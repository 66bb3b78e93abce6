/// What the main thread did during a run, from the times in which it was busy.
public struct MainThreadFigures: Sendable, Hashable {
    /// Time in which the main executor could not take a new job, waits included.
    public var busySeconds: Double
    public var longestStallMilliseconds: Double
    public var missedFrames60: Int
    public var missedFrames120: Int

    /// - Parameter intervals: in order, without overlap.
    public init(_ intervals: [BusyInterval]) {
        busySeconds = Double(intervals.reduce(0) { $0 + $1.length }) / 1e9
        longestStallMilliseconds = Double(intervals.map(\.length).max() ?? 0) / 1e6
        missedFrames60 = Self.missedFrames(intervals, hertz: 60)
        missedFrames120 = Self.missedFrames(intervals, hertz: 120)
    }

    /// Frames that could not be drawn: a display asks at regular times, and asks in vain when main is busy from then to the next
    /// time. The phase of the display is not known, so each stall is taken to begin at such a time: the worst case.
    static func missedFrames(_ intervals: [BusyInterval], hertz: Double) -> Int {
        let period = 1e9 / hertz
        return intervals.reduce(0) { $0 + Int(Double($1.length) / period) }
    }
}
