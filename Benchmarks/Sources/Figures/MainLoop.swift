internal import CLinuxHost
import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Runs the main thread: takes the main queue's jobs, as a run loop does, and notes when the thread was busy with them.
///
/// Two clock readings a wake-up, nothing else, so measuring costs the main thread well under a microsecond a job. Linux only:
/// elsewhere the main queue belongs to the system's own loop.
public enum MainLoop {
    private static let recorder = Mutex(Recorder())
    private static let exitStatus = Atomic<Int32>(-1)

    private struct Recorder {
        var isOn = false
        var intervals: [BusyInterval] = []
    }

    /// Runs `body` on the main actor and the main queue's jobs until `body` returns a status; gives that status.
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

    /// Returns when jobs have come, and takes the mark that says so.
    private static func wait(for handle: Int32) {
        var poll = pollfd(fd: handle, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, -1) < 0 {}
        var mark: UInt64 = 0
        _ = read(handle, &mark, MemoryLayout<UInt64>.size)
    }

    /// Forgets what was noted and notes from now on.
    public static func startRecording() {
        recorder.withLock { $0 = Recorder(isOn: true, intervals: []) }
    }

    /// Stops noting; gives when the main thread was busy, in order. The job that calls this is not among them if it runs on main.
    public static func stopRecording() -> [BusyInterval] {
        recorder.withLock { recorder in
            defer { recorder = Recorder() }
            return recorder.intervals
        }
    }
}

/// A time in which the main thread ran jobs without a pause: a new job would have waited for its end. Nanoseconds of the clock.
public struct BusyInterval: Sendable, Hashable, Codable {
    public var start: UInt64
    public var end: UInt64

    public init(start: UInt64, end: UInt64) {
        self.start = start
        self.end = end
    }

    public var length: UInt64 { end - start }
}
