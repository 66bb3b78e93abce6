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

    /// `pthread_atfork`: calls `body` in each forked child before anything else runs there.
    package static func afterForkInChild(_ body: @convention(c) () -> Void) { pthread_atfork(nil, nil, body) }

    /// Returns whether no process has an id; false if that cannot be determined. Calls `kill` without a signal.
    package static func isGone(_ process: Int32) -> Bool {
        guard kill(process, 0) != 0 else { return false }
        return errno == ESRCH
    }
}
