/// Locks and atomics: those of the standard library. Under the thread sanitizer `Mutex` is ``PthreadMutex``.
@_exported import Synchronization

#if STRATA_THREAD_SANITIZER
    /// The sanitizer does not see the hand-overs of the standard library's, and reports races between all who take turns in it.
    public typealias Mutex<Value: ~Copyable> = PthreadMutex<Value>
#endif
