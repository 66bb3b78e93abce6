import Foundation

/// The input and output of a run: the standard streams, or a recording for tests.
public struct Console: Sendable {
    /// Writes text to standard output. Throws if the text cannot be written, because the disk is full, for instance.
    public var write: @Sendable (String) throws -> Void
    /// Writes a line to standard error.
    public var complain: @Sendable (String) -> Void
    /// Writes text over the last line of standard error; nil if standard error is no terminal.
    public var showProgress: (@Sendable (String) -> Void)?
    /// Returns the next line of standard input, or nil at its end.
    public var readLine: @Sendable () -> String?

    /// Creates a console from its functions.
    public init(
        write: @escaping @Sendable (String) throws -> Void, complain: @escaping @Sendable (String) -> Void,
        showProgress: (@Sendable (String) -> Void)? = nil, readLine: @escaping @Sendable () -> String? = { nil }
    ) {
        self.write = write
        self.complain = complain
        self.showProgress = showProgress
        self.readLine = readLine
    }

    /// The standard streams of the process.
    public static let standard: Console = {
        // An error that cannot be shown has no other place to go.
        let complain: @Sendable (String) -> Void = { try? StandardStream.write($0, to: STDERR_FILENO) }
        return Console(
            write: { try StandardStream.write($0, to: STDOUT_FILENO) }, complain: { complain($0 + "\n") },
            showProgress: isatty(STDERR_FILENO) == 1 ? complain : nil, readLine: { Swift.readLine() })
    }()

    /// The console of the running verb.
    @TaskLocal static var current = Console.standard

    /// Writes a line to standard output.
    static func print(_ line: String) throws { try current.write(line + "\n") }

    /// Writes a line for people to standard output, with a blank for each control character of the names in it.
    static func show(_ line: String) throws { try print(line.withoutControls()) }

    /// Writes a note to standard error, with a blank for each control character of the names in it.
    static func note(_ line: String) { current.complain(line.withoutControls()) }
}

/// Writing to the standard streams. `FileHandle.write(_:)` would stop the program at an error.
private enum StandardStream {
    /// - Throws: ``ToolError`` with the reason. If the reader of a pipe has ended, the error has no text: that is no failure to report.
    static func write(_ text: String, to descriptor: Int32) throws {
        var bytes = ArraySlice(Array(text.utf8))
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes.removeFirst(count)
                continue
            }
            let code = errno
            switch code {
            case EINTR: continue
            case EPIPE: throw ToolError.printedFindings
            default:
                throw ToolError.failed(
                    "cannot write the output: \(String(cString: strerror(code))). Write it to a place with free space")
            }
        }
    }
}
