#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The clocks that figures come from.
public enum Clock {
    /// Nanoseconds of a clock that never jumps.
    @inline(__always)
    public static func now() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }

    /// Nanoseconds of processor time that the main thread has used. Callable from any thread.
    public static func mainThreadCPU() -> UInt64 { nanoseconds(mainThreadClock) }

    /// Nanoseconds of processor time that all threads of the process have used.
    public static func processCPU() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    /// Must be called first on the main thread.
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
