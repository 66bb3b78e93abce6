import Foundation

/// The input and output of a run: the standard streams, or a recording for tests.
public struct Console: Sendable {
    /// Writes text to standard output.
    public var write: @Sendable (String) -> Void
    /// Writes a line to standard error.
    public var complain: @Sendable (String) -> Void
    /// Writes text over the last line of standard error; nil if standard error is no terminal.
    public var showProgress: (@Sendable (String) -> Void)?
    /// Returns the next line of standard input, or nil at its end.
    public var readLine: @Sendable () -> String?

    /// Creates a console from its functions.
    public init(
        write: @escaping @Sendable (String) -> Void, complain: @escaping @Sendable (String) -> Void,
        showProgress: (@Sendable (String) -> Void)? = nil, readLine: @escaping @Sendable () -> String? = { nil }
    ) {
        self.write = write
        self.complain = complain
        self.showProgress = showProgress
        self.readLine = readLine
    }

    /// The standard streams of the process.
    public static let standard: Console = {
        let complain: @Sendable (String) -> Void = { FileHandle.standardError.write(Data($0.utf8)) }
        return Console(
            write: { FileHandle.standardOutput.write(Data($0.utf8)) }, complain: { complain($0 + "\n") },
            showProgress: isatty(STDERR_FILENO) == 1 ? complain : nil, readLine: { Swift.readLine() })
    }()

    /// The console of the running verb.
    @TaskLocal static var current = Console.standard

    /// Writes a line to standard output.
    static func print(_ line: String) { current.write(line + "\n") }
}
