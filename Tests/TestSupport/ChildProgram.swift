import Foundation

/// Runs another program and returns what it prints.
///
/// Foundation's `Process` is not used: it lists the open files of this process while other tests open more, and may then write behind
/// its buffer.
public enum ChildProgram {
    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    /// The end of a program: its exit status, or nil if a signal ended it, and everything that it printed.
    public struct Result: Sendable {
        public var status: Int32?
        public var output: String
    }

    /// Runs a program and waits for its end. Blocks the thread.
    ///
    /// - Parameter name: A path, or a name to look up in `PATH`.
    public static func run(_ name: String, _ arguments: [String]) throws -> Result {
        let printed = FileManager.default.temporaryDirectory.appendingPathComponent("strata-\(UUID().uuidString).txt")
        defer { try? FileManager.default.removeItem(at: printed) }
        var actions = noFileActions()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, printed.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let process = try spawn(name, arguments, &actions)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw Failure(description: "\(name): \(String(cString: strerror(errno)))") }
        }
        return Result(
            status: status & 0x7f == 0 ? status >> 8 & 0xff : nil,
            output: String(decoding: (try? Data(contentsOf: printed)) ?? Data(), as: UTF8.self))
    }

    #if canImport(Darwin)
        typealias FileActions = posix_spawn_file_actions_t?
        typealias Attributes = posix_spawnattr_t?
        static func noFileActions() -> FileActions { nil }
        private static func noAttributes() -> Attributes { nil }
    #else
        typealias FileActions = posix_spawn_file_actions_t
        typealias Attributes = posix_spawnattr_t
        static func noFileActions() -> FileActions { FileActions() }
        private static func noAttributes() -> Attributes { Attributes() }
    #endif

    /// Starts a program. It gets no signal settings of this process: threads of Dispatch block most signals, and tests may ignore some.
    static func spawn(_ name: String, _ arguments: [String], _ actions: inout FileActions) throws -> pid_t {
        var attributes = noAttributes()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        let variables = ProcessInfo.processInfo.environment
        var process = pid_t()
        let code = withTexts([name] + arguments) { arguments in
            withTexts(variables.map { "\($0)=\($1)" }) { posix_spawnp(&process, name, &actions, &attributes, arguments, $0) }
        }
        guard code == 0 else { throw Failure(description: "\(name): \(String(cString: strerror(code)))") }
        return process
    }

    /// Returns the path of a program that is built beside the tests.
    public static func built(_ name: String) throws -> String {
        let executable = Bundle.main.executableURL ?? URL(filePath: CommandLine.arguments[0])
        let program = executable.resolvingSymlinksInPath().deletingLastPathComponent().appending(path: name).path
        guard FileManager.default.fileExists(atPath: program) else {
            throw Failure(description: "\(program) is missing: build it beside the tests")
        }
        return program
    }

    /// Calls `body` with a list of C strings that ends with nil.
    private static func withTexts<R>(_ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> R) -> R {
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return body(copies + [nil])
    }
}
