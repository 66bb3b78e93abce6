#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The clocks of all measurements.
public enum Clock {
    /// Returns nanoseconds of a monotonic clock.
    @inline(__always)
    public static func now() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }

    /// Returns the processor time of the main thread in nanoseconds. Callable from any thread.
    public static func mainThreadCPU() -> UInt64 { nanoseconds(mainThreadClock) }

    /// Returns the processor time of all threads of the process in nanoseconds.
    public static func processCPU() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    /// Records which thread is the main thread. Call this on the main thread before any measurement.
    public static func rememberMainThread() { _ = mainThreadClock }

    private static let mainThreadClock: clockid_t = {
        var clock = clockid_t()
        let status = pthread_getcpuclockid(pthread_self(), &clock)
        precondition(status == 0, "the main thread has no clock: \(status)")
        return clock
    }()

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
