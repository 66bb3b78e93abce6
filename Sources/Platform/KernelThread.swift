internal import CPlatform

#if canImport(Darwin)
    import Darwin
#endif

/// A thread of this process, by the number that the kernel gives it. A later thread may get the number of one that has ended.
package struct KernelThread: Sendable, Hashable {
    private let number: UInt32

    /// The calling thread: `gettid` on Linux, `pthread_mach_thread_np` on Apple's systems. A system call on Linux.
    package static var current: KernelThread {
        #if canImport(Darwin)
            KernelThread(number: pthread_mach_thread_np(pthread_self()))
        #else
            KernelThread(number: UInt32(bitPattern: strata_thread_identifier()))
        #endif
    }

    /// Whether the thread runs or waits for a processor only; nil if the thread has ended, or the system does not say.
    ///
    /// A thread that waits for a lock, a semaphore, another thread or the disk is not runnable. One that was interrupted is.
    ///
    /// On Linux this reads the state in `/proc/self/task/TID/stat`, with some system calls. It is nil if `/proc` is not mounted, or if the
    /// process has no descriptor left. On Apple's systems it is the run state of `thread_info`.
    package var isRunnable: Bool? {
        #if canImport(Darwin)
            var info = thread_basic_info()
            var count = mach_msg_type_number_t(MemoryLayout<thread_basic_info>.size / MemoryLayout<integer_t>.size)
            let words = Int(count)
            let code = withUnsafeMutablePointer(to: &info) { info in
                info.withMemoryRebound(to: integer_t.self, capacity: words) {
                    thread_info(number, thread_flavor_t(THREAD_BASIC_INFO), $0, &count)
                }
            }
            return code == KERN_SUCCESS ? info.run_state == TH_STATE_RUNNING : nil
        #else
            guard let file = try? OpenFile("/proc/self/task/\(number)/stat", access: .read) else { return nil }
            defer { file.close() }
            return withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { buffer -> Bool? in
                guard let count = try? file.read(into: buffer) else { return nil }
                // The state follows the name of the thread, which is in parentheses and may contain any character.
                guard let end = buffer[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else { return nil }
                return buffer[end + 2] == UInt8(ascii: "R")
            }
        #endif
    }
}
