internal import CPlatform

extension CurrentThread {
    /// A Boolean value that indicates whether the calling thread is the main thread. `gettid` or `pthread_main_np`
    package static var isMain: Bool { strata_is_main_thread() != 0 }
}
