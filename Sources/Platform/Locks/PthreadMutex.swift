#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A POSIX mutex that protects a value, with the interface of the standard library's `Mutex`.
///
/// A running thread may acquire this lock before waiting threads. On Linux, the standard library's mutex is handed to the
/// longest waiting thread, even if that thread sleeps. If more threads than cores acquire it often and briefly, each
/// hand-over then waits for the scheduler.
///
/// `@unchecked Sendable` is right because the value is used only under the lock. The pointers are allocated and freed with
/// this value, which cannot be copied.
public struct PthreadMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let lock: UnsafeMutablePointer<pthread_mutex_t>
    @usableFromInline let value: UnsafeMutablePointer<Value>

    /// Creates a mutex around a value. Allocates memory for the system's mutex and the value.
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

    /// Runs `body` under the lock. Blocks the thread while another thread has the lock.
    ///
    /// A call inside `body` for the same mutex never returns.
    @inlinable @inline(__always)
    public borrowing func withLock<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }

    /// Runs `body` under the lock. Returns nil without running it if the lock is already held.
    @inlinable
    public borrowing func withLockIfAvailable<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R? {
        guard pthread_mutex_trylock(lock) == 0 else { return nil }
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
