internal import CLinuxHost
import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Runs the jobs of the main queue, as a run loop does, and records when the main thread was busy with them.
///
/// Each wake-up costs two clock readings, so measuring costs the main thread well under a microsecond per job. Linux only: on
/// other systems the main queue belongs to the system's own loop.
public enum MainLoop {
    private static let recorder = Mutex(BusyRecorder())
    private static let exitStatus = Atomic<Int32>(-1)

    /// Runs `body` on the main actor, and the jobs of the main queue until `body` returns a status. Returns that status.
    ///
    /// Must be called on the main thread, from a `main` that is not `async`.
    public static func run(_ body: @escaping @MainActor @Sendable () async -> Int32) -> Int32 {
        Task { @MainActor in
            exitStatus.store(await body(), ordering: .releasing)
        }
        let handle = _dispatch_get_main_queue_handle_4CF()
        while true {
            takeJobs()
            let status = exitStatus.load(ordering: .acquiring)
            if status >= 0 { return status }
            wait(for: handle)
        }
    }

    private static func takeJobs() {
        recorder.withLock { $0.begin(at: Clock.now()) }
        _dispatch_main_queue_callback_4CF(nil)
        recorder.withLock { $0.end(at: Clock.now()) }
    }

    /// Returns when jobs have arrived, and clears the event that announced them.
    private static func wait(for handle: Int32) {
        var poll = pollfd(fd: handle, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, -1) < 0 {}
        var mark: UInt64 = 0
        _ = read(handle, &mark, MemoryLayout<UInt64>.size)
    }

    /// Discards all recorded intervals and starts recording.
    ///
    /// - Parameter time: The time of the clock at which the recording starts.
    public static func startRecording(at time: UInt64) {
        recorder.withLock { $0.start(at: time) }
    }

    /// Stops recording and returns the intervals in which the main thread was busy, in order. Jobs that still run at `time` count
    /// up to then.
    ///
    /// - Parameter time: The time of the clock at which the recording ends.
    public static func stopRecording(at time: UInt64) -> [BusyInterval] {
        recorder.withLock { $0.stop(at: time) }
    }
}

/// Collects the busy intervals between two times. Intervals that reach over one of them are cut.
struct BusyRecorder {
    private var started: UInt64?
    /// The time at which the jobs began that run now.
    private var busySince: UInt64?
    private var intervals: [BusyInterval] = []

    mutating func start(at time: UInt64) {
        (started, intervals) = (time, [])
    }

    mutating func begin(at time: UInt64) { busySince = time }

    mutating func end(at time: UInt64) {
        if let busySince { add(from: busySince, to: time) }
        busySince = nil
    }

    mutating func stop(at time: UInt64) -> [BusyInterval] {
        if let busySince { add(from: busySince, to: time) }
        let found = intervals.filter { $0.start < time }.map { BusyInterval(start: $0.start, end: min($0.end, time)) }
        (started, intervals) = (nil, [])
        return found
    }

    private mutating func add(from start: UInt64, to end: UInt64) {
        guard let started, end > started else { return }
        intervals.append(BusyInterval(start: max(start, started), end: end))
    }
}

/// An interval in which the main thread ran jobs without a pause, in nanoseconds of the clock. A new job would have waited for
/// its end.
public struct BusyInterval: Sendable, Hashable, Codable {
    public var start: UInt64
    public var end: UInt64

    public init(start: UInt64, end: UInt64) {
        self.start = start
        self.end = end
    }

    public var length: UInt64 { end - start }
}
