#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The calling thread.
public enum CurrentThread {
    /// A number that no other running thread has. About 1 ns.
    @inlinable public static var identifier: UInt {
        #if canImport(Glibc)
            UInt(pthread_self())
        #else
            UInt(bitPattern: pthread_self())
        #endif
    }

    /// `usleep`
    package static func sleep(microseconds: UInt32) { usleep(microseconds) }

    /// Runs `body` with SIGPIPE blocked: a write to a pipe or socket without a reader fails and does not kill the process.
    /// Threads that `body` creates inherit this.
    package static func withoutBrokenPipeSignal<R>(_ body: () throws -> R) rethrows -> R {
        var blocked = sigset_t()
        var before = sigset_t()
        sigemptyset(&blocked)
        sigaddset(&blocked, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        defer {
            // A signal raised meanwhile is pending for this thread. It is consumed here, because restoring the mask would deliver
            // it.
            var pending = sigset_t()
            if sigismember(&before, SIGPIPE) == 0, sigpending(&pending) == 0, sigismember(&pending, SIGPIPE) == 1 {
                var taken: Int32 = 0
                sigwait(&blocked, &taken)
            }
            pthread_sigmask(SIG_SETMASK, &before, nil)
        }
        return try body()
    }
}

/// One pointer per thread, initially nil.
public struct ThreadPointer: Sendable {
    @usableFromInline let key: pthread_key_t

    /// Creates the storage, which is never deleted. Traps if the process has none left.
    public init() {
        var key = pthread_key_t()
        // No destructor: the owner of the memory frees it.
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "the process has no thread-specific storage left (code \(code))")
        self.key = key
    }

    /// The calling thread's pointer. The memory that it points to is not managed.
    @inlinable public var current: UnsafeMutableRawPointer? {
        get { pthread_getspecific(key) }
        nonmutating set { pthread_setspecific(key, newValue) }
    }
}
