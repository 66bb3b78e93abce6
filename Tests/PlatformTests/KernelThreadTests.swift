#if os(Linux)
    import Foundation
    import Platform
    import TestSupport
    import Testing

    /// The states of threads, by which background contexts get another thread or do not.
    @Suite(.timeLimit(.minutes(10))) struct KernelThreadTests {
        private final class Started: Sendable {
            private let found = Mutex<(thread: KernelThread, isNamed: Bool)?>(nil)

            func note(isNamed: Bool) {
                found.withLock { $0 = (thread: KernelThread.current, isNamed: isNamed) }
            }

            var thread: KernelThread? { found.withLock { $0?.thread } }
            var isNamed: Bool { found.withLock { $0?.isNamed ?? false } }
        }

        /// Sets the name of the calling thread that the kernel shows.
        private static func rename(_ name: String) -> Bool {
            guard let file = try? OpenFile("/proc/thread-self/comm", access: .write) else { return false }
            defer { file.close() }
            do {
                try Array(name.utf8).withUnsafeBytes { try file.write($0) }
                return true
            } catch {
                return false
            }
        }

        @Test func `the calling thread is runnable`() {
            #expect(KernelThread.current.isRunnable == true)
        }

        /// Catches: a state that is read after the first parenthesis, which may belong to the thread's name.
        @Test(arguments: ["waiting", "a) R (b"])
        func `a thread is not runnable while it waits, whatever its name, and has no state after its end`(name: String)
            async throws
        {
            let (started, release) = (Started(), DispatchSemaphore(value: 0))
            Thread.detachNewThread {
                started.note(isNamed: Self.rename(name))
                release.wait()
            }
            try await until("the thread has begun") { started.thread != nil }
            let thread = try #require(started.thread)
            #expect(started.isNamed)
            try await until("the thread waits") { thread.isRunnable == false }
            release.signal()
            try await until("the thread has ended") { thread.isRunnable == nil }
        }
    }
#endif
