/// Locks and atomics: those of the standard library. Under the thread sanitizer `Mutex` is one of ours.
@_exported import Synchronization

#if STRATA_THREAD_SANITIZER
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// The standard library's `Mutex` over a lock of POSIX. The sanitizer knows that one; it does not see the other's hand-overs and
    /// reports races between all who take turns in it.
    ///
    /// `@unchecked Sendable` is right because the value is used under the lock only. The pointers are right because they are made
    /// and freed with this value, which cannot be copied.
    public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
        private let lock: UnsafeMutablePointer<pthread_mutex_t>
        private let value: UnsafeMutablePointer<Value>

        public init(_ initial: consuming sending Value) {
            lock = .allocate(capacity: 1)
            pthread_mutex_init(lock, nil)
            value = .allocate(capacity: 1)
            value.initialize(to: initial)
        }

        deinit {
            value.deinitialize(count: 1)
            value.deallocate()
            pthread_mutex_destroy(lock)
            lock.deallocate()
        }

        public borrowing func withLock<R: ~Copyable, E: Error>(
            _ body: (inout sending Value) throws(E) -> sending R
        ) throws(E) -> sending R {
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            return try body(&value.pointee)
        }
    }
#endif
