import ObjectGraph
import Platform
import StoreInterface
import StoreModel

/// Collects notices from any executor.
public final class Counter: Sendable {
    private let notices = Mutex<[ContextNotice]>([])

    public init() {}

    public func note(_ notice: ContextNotice) { notices.withLock { $0.append(notice) } }

    public var all: [ContextNotice] { notices.withLock { $0 } }

    public func count(_ kind: ContextNotice.Kind) -> Int { all.filter { $0.kind == kind }.count }
}

/// A number that many threads add to, and the highest value that it had.
public final class PeakCounter: Sendable {
    private let state = Mutex((now: 0, peak: 0))

    public init() {}

    public func add(_ number: Int) {
        state.withLock { state in
            state.now += number
            state.peak = max(state.peak, state.now)
        }
    }

    public var now: Int { state.withLock { $0.now } }
    public var peak: Int { state.withLock { $0.peak } }
}
