/// Measures one run. Begin when everything is prepared. End when the work is done, before the result is checked.
public struct Measurement: Sendable {
    private let start: UInt64
    private let cpu: UInt64
    private let mainCPU: UInt64
    private let resident: Int

    private init() {
        Memory.resetPeak()
        resident = Memory.residentBytes()
        cpu = Clock.processCPU()
        mainCPU = Clock.mainThreadCPU()
        start = Clock.now()
        MainLoop.startRecording(at: start)
    }

    /// Begins a measurement after the main thread has run all its waiting jobs, so that no earlier work is counted.
    public static func begin() async -> Measurement {
        await MainActor.run {}
        return Measurement()
    }

    /// Ends the measurement. A job that still runs on main, such as the one that has shown the last change, counts up to now.
    public func end(spans: [Span] = []) async -> RunFigures {
        let end = Clock.now()
        let mainCPUUsed = Clock.mainThreadCPU() - mainCPU
        let cpuUsed = Clock.processCPU() - cpu
        let busy = MainLoop.stopRecording(at: end)
        let peak = Memory.peakBytes()
        return RunFigures(
            start: start, totalSeconds: Double(end - start) / 1e9, processCPUSeconds: Double(cpuUsed) / 1e9,
            mainCPUSeconds: Double(mainCPUUsed) / 1e9, main: MainThreadFigures(busy), busy: busy, spans: spans,
            peakMemoryBytes: max(0, peak - resident), residentAfterBytes: max(0, Memory.residentBytes() - resident))
    }
}

/// An interval of work on another lane than main: a batch of work, or a save. In nanoseconds of the clock.
public struct Span: Sendable, Hashable {
    public enum Kind: Sendable, Hashable { case work, save }

    public var lane: String
    public var kind: Kind
    public var start: UInt64
    public var end: UInt64

    public init(lane: String, kind: Kind, start: UInt64, end: UInt64) {
        self.lane = lane
        self.kind = kind
        self.start = start
        self.end = end
    }
}

/// The figures of one run.
public struct RunFigures: Sendable {
    public var start: UInt64
    public var totalSeconds: Double
    /// The processor time of all threads.
    public var processCPUSeconds: Double
    public var mainCPUSeconds: Double
    public var main: MainThreadFigures
    public var busy: [BusyInterval]
    public var spans: [Span]
    /// The peak of resident memory, less the memory that was resident before the run. The latter is mainly the data to import.
    public var peakMemoryBytes: Int
    /// The memory that is resident at the end, less the memory that was resident before.
    public var residentAfterBytes: Int
    public var fileBytes = 0
    public var saves = 0
    /// The requests that contexts sent to their parents, by kind and level.
    public var hops: [String: Int] = [:]
    /// Further measurements of a workload in milliseconds, by name.
    public var extra: [String: Double] = [:]
}
