/// The locks and atomics of the standard library. Under the thread sanitizer, `Mutex` is ``PthreadMutex``.
@_exported import Synchronization

#if STRATA_THREAD_SANITIZER
    /// The thread sanitizer does not detect hand-overs of the standard library's mutex, and reports races between its users: see the
    /// program `Tests/Races/LockedValue.swift`.
    public typealias Mutex<Value: ~Copyable> = PthreadMutex<Value>
#endif
