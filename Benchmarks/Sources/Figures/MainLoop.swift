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
    private static let recorder = Mutex(Recorder())
    private static let exitStatus = Atomic<Int32>(-1)

    private struct Recorder {
        var isOn = false
        var intervals: [BusyInterval] = []
    }

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
        let start = Clock.now()
        _dispatch_main_queue_callback_4CF(nil)
        let end = Clock.now()
        recorder.withLock { recorder in
            if recorder.isOn { recorder.intervals.append(BusyInterval(start: start, end: end)) }
        }
    }

    /// Returns when jobs have arrived, and clears the event that announced them.
    private static func wait(for handle: Int32) {
        var poll = pollfd(fd: handle, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, -1) < 0 {}
        var mark: UInt64 = 0
        _ = read(handle, &mark, MemoryLayout<UInt64>.size)
    }

    /// Discards all recorded intervals and starts recording.
    public static func startRecording() {
        recorder.withLock { $0 = Recorder(isOn: true, intervals: []) }
    }

    /// Stops recording and returns the intervals in which the main thread was busy, in order. If the calling job runs on main,
    /// it is not included.
    public static func stopRecording() -> [BusyInterval] {
        recorder.withLock { recorder in
            defer { recorder = Recorder() }
            return recorder.intervals
        }
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
