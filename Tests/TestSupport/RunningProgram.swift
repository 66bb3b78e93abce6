import Foundation
import Synchronization

/// A program that runs beside the tests, and whose input and output are pipes. It is killed when its last reference is released.
///
/// Errors are not shown. A program that is left by tests that have crashed would otherwise keep their output open, and whoever reads it would
/// wait for its end.
public final class RunningProgram: Sendable {
    private let process: pid_t
    /// The status of the ended program as `waitpid` returns it; nil while it runs.
    private let end = Mutex<Int32?>(nil)
    private let hasEnded = DispatchSemaphore(value: 0)
    private let (input, output) = (Pipe(), Pipe())

    /// Writes to the input of the program.
    public var standardInput: FileHandle { input.fileHandleForWriting }
    /// Reads what the program prints.
    public var standardOutput: FileHandle { output.fileHandleForReading }

    /// Starts a program.
    ///
    /// - Parameter name: A path, or a name to look up in `PATH`.
    public init(_ name: String, _ arguments: [String]) throws {
        let (read, write) = (input.fileHandleForReading, output.fileHandleForWriting)
        for handle in [read, input.fileHandleForWriting, output.fileHandleForReading, write] {
            _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        var actions = ChildProgram.noFileActions()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, read.fileDescriptor, 0)
        posix_spawn_file_actions_adddup2(&actions, write.fileDescriptor, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        process = try ChildProgram.spawn(name, arguments, &actions)
        // Otherwise the output would have no end.
        try write.close()
        try read.close()
        Thread.detachNewThread { [process, hasEnded, weak self] in
            var information = siginfo_t()
            // The process stays a zombie, so that its number is not given to another before it counts as ended.
            while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            self?.noteEnd()
            hasEnded.signal()
        }
    }

    deinit {
        if send(SIGKILL) { noteEnd() }
    }

    private func noteEnd() {
        end.withLock { end in
            guard end == nil else { return }
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            end = status
        }
    }

    /// Whether the program has not ended.
    public var isRunning: Bool { end.withLock { $0 == nil } }

    /// Sends a signal. Returns whether the program was running.
    @discardableResult
    public func send(_ signal: Int32) -> Bool {
        end.withLock { $0 == nil && kill(process, signal) == 0 }
    }

    /// Waits for the end of the program. Blocks the thread. Returns the exit status, or nil if a signal has ended the program.
    public func exitStatus() -> Int32? {
        waitForEnd(seconds: .infinity)
        return end.withLock { $0.flatMap { $0 & 0x7f == 0 ? $0 >> 8 & 0xff : nil } }
    }

    /// Waits for the end of the program. Blocks the thread. Returns whether it has ended in time.
    @discardableResult
    public func waitForEnd(seconds: Double) -> Bool {
        let limit: DispatchTime = seconds == .infinity ? .distantFuture : .now() + seconds
        guard hasEnded.wait(timeout: limit) == .success else { return false }
        // For the next one who waits.
        hasEnded.signal()
        return true
    }
}
