#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The calling process.
package enum CurrentProcess {
    /// `getpid`
    package static var identifier: Int32 { getpid() }

    /// The processor time of all threads in nanoseconds: `clock_gettime` of `CLOCK_PROCESS_CPUTIME_ID`.
    package static var processorTime: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// `pthread_atfork`: calls `body` in each forked child before anything else runs there.
    package static func afterForkInChild(_ body: @convention(c) () -> Void) { pthread_atfork(nil, nil, body) }

    /// Returns whether no process has an id; false if that cannot be determined. Calls `kill` without a signal.
    package static func isGone(_ process: Int32) -> Bool {
        guard kill(process, 0) != 0 else { return false }
        return errno == ESRCH
    }
}
