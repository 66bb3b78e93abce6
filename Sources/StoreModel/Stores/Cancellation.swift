internal import Platform

/// A flag that tells long work on a background queue that the task waiting for it was cancelled. In the other direction, it reports how much
/// of the work is done.
public final class Cancellation: Sendable {
    private let isCancelled = Atomic(false)
    private let progress: @Sendable (Double) -> Void
    /// The thousandths that were reported.
    private let reported = Atomic(0)

    /// Creates a flag that is not set.
    /// - Parameter progress: A closure called with the part of the work that is done, from 0 to 1, on the thread that works.
    public init(progress: @escaping @Sendable (Double) -> Void = { _ in }) { self.progress = progress }

    /// Sets the flag, from any thread. It cannot be reset. A second call does nothing.
    public func cancel() { isCancelled.store(true, ordering: .relaxed) }

    /// Reports the steps that are done. Called on one thread at a time. Calls the closure for each new thousandth only, and never for a
    /// smaller part than before.
    public func report(_ completed: Int, of total: Int) {
        guard total > 0 else { return }
        let thousandths = min(1000, Int(Double(completed) / Double(total) * 1000))
        guard thousandths > reported.load(ordering: .relaxed) else { return }
        reported.store(thousandths, ordering: .relaxed)
        progress(Double(thousandths) / 1000)
    }

    /// Throws `CancellationError` after ``cancel()``.
    public func check() throws {
        if isSet { throw CancellationError() }
    }

    /// Whether ``cancel()`` was called, for work that cannot throw where it asks.
    package var isSet: Bool { isCancelled.load(ordering: .relaxed) }

    /// Returns a part of the work, from one fraction of the whole to another.
    package func part(_ range: ClosedRange<Double>) -> WorkPart { WorkPart(work: self, range: range) }
}

/// A part of long work, whose steps are reported as steps of the whole.
package struct WorkPart: Sendable {
    fileprivate let work: Cancellation
    fileprivate let range: ClosedRange<Double>

    /// Reports the steps of the part that are done. Throws `CancellationError` after the work was cancelled.
    package func step(_ completed: Int, of total: Int) throws {
        try work.check()
        let fraction = total > 0 ? Double(completed) / Double(total) : 1
        work.report(Int((range.lowerBound + (range.upperBound - range.lowerBound) * fraction) * 1000), of: 1000)
    }
}
