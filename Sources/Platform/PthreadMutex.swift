#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A lock of POSIX around a value, with the interface of the standard library's `Mutex`.
///
/// Who comes along may take it before those who wait. On Linux the standard library's is handed to the one who waits longest, awake or
/// not: many threads that take turns for a moment each, more of them than cores, then wait for the scheduler at every turn.
///
/// `@unchecked Sendable` is right because the value is used under the lock only. The pointers are right because they are made
/// and freed with this value, which cannot be copied.
public struct PthreadMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let lock: UnsafeMutablePointer<pthread_mutex_t>
    @usableFromInline let value: UnsafeMutablePointer<Value>

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

    @inlinable @inline(__always)
    public borrowing func withLock<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }

    /// nil, and nothing is done, while another holds the lock.
    @inlinable
    public borrowing func withLockIfAvailable<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R? {
        guard pthread_mutex_trylock(lock) == 0 else { return nil }
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
