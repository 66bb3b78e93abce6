#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A lock that protects a value, and that lets a thread wait until other threads have changed the value.
///
/// `@unchecked Sendable` is right because the value is used only under the lock. The pointers are allocated and freed with
/// this value, which cannot be copied.
public struct ConditionLock<Value>: ~Copyable, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let changes: UnsafeMutablePointer<pthread_cond_t>
    private let value: UnsafeMutablePointer<Value>

    /// Creates a lock around a value. Allocates memory for the system's mutex and condition.
    public init(_ initial: sending Value) {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        changes = .allocate(capacity: 1)
        pthread_cond_init(changes, nil)
        value = .allocate(capacity: 1)
        value.initialize(to: initial)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_cond_destroy(changes)
        changes.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    /// Runs `body` under the lock until it returns a result: immediately, and again after each change by another thread.
    public borrowing func wait<R, E: Error>(for body: (inout Value) throws(E) -> R?) throws(E) -> R {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        while true {
            if let result = try body(&value.pointee) {
                pthread_cond_broadcast(changes)
                return result
            }
            pthread_cond_wait(changes, lock)
        }
    }

    /// Runs `body` under the lock, and then wakes all waiting threads.
    public borrowing func withLock<R, E: Error>(_ body: (inout Value) throws(E) -> R) throws(E) -> R {
        try wait { value throws(E) -> R? in .some(try body(&value)) }
    }
}
