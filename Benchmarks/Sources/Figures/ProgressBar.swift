import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A progress bar on standard error. It prints nothing if standard error is not a terminal.
public final class ProgressBar: Sendable {
    public enum Style: Sendable { case bar, silent }

    private let total: Int
    private let isShown: Bool
    private let done = Atomic<Int>(0)

    public init(steps: Int, style: Style) {
        total = max(1, steps)
        isShown = style == .bar && isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
    }

    /// Completes one step. `name` describes the next step.
    public func step(_ name: String) {
        let count = min(total, done.add(1, ordering: .relaxed).oldValue)
        guard isShown else { return }
        let filled = count * 30 / total
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
        Self.write("\r[\(bar)] \(count)/\(total) \(name)\u{1B}[K")
    }

    /// Clears the line.
    public func finish() {
        if isShown { Self.write("\r\u{1B}[K") }
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
