import Synchronization

/// A progress bar on standard error. It shows nothing if standard error is no terminal.
final class ProgressBar: Sendable {
    private let title: String
    private let show: (@Sendable (String) -> Void)?
    /// The hundredths that are shown.
    private let shown = Atomic<Int>(-1)

    init(_ title: String) {
        self.title = title
        show = Console.current.showProgress
    }

    /// Shows that `done` of `total` steps are completed. May be called on any thread.
    func update(_ done: Int, of total: Int) {
        guard let show, total > 0 else { return }
        let hundredths = min(100, Int(Double(done) / Double(total) * 100))
        guard shown.exchange(hundredths, ordering: .relaxed) != hundredths else { return }
        let filled = hundredths * 30 / 100
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
        show("\r[\(bar)] \(hundredths) % \(title)\u{1B}[K")
    }

    /// Shows the part that is done, from 0 to 1.
    func update(_ fraction: Double) { update(Int(fraction * 1000), of: 1000) }

    /// Shows a number of completed steps of an unknown total.
    func update(_ done: Int) {
        guard let show, done % 1000 == 0 else { return }
        show("\r\(title): \(done)\u{1B}[K")
    }

    /// Shows that work of an unknown length has begun.
    func showBusy() { show?("\r\(title) …\u{1B}[K") }

    /// Runs work of an unknown length, and shows for how many seconds it has run.
    func timing<R>(_ body: () async throws -> R) async rethrows -> R {
        guard let show else { return try await body() }
        showBusy()
        let start = ContinuousClock.now
        let ticker = Task { [title] in
            while true {
                try await Task.sleep(for: .seconds(1))
                show("\r\(title) … \((ContinuousClock.now - start).components.seconds) s\u{1B}[K")
            }
        }
        /// The line is cleared after the last text of the ticker.
        func end() async {
            ticker.cancel()
            _ = await ticker.result
            finish()
        }
        do {
            let result = try await body()
            await end()
            return result
        } catch {
            await end()
            throw error
        }
    }

    /// Removes the bar if it is shown, so that a line can be printed. The next step shows it again.
    func clear() {
        if shown.exchange(-1, ordering: .relaxed) != -1 { finish() }
    }

    /// Clears the line.
    func finish() { show?("\r\u{1B}[K") }
}
