import Dispatch
import Platform

/// A flag that threads wait for, each blocked until it is set.
public final class Flag: Sendable {
    private let isSet = Atomic<Bool>(false)
    private let unset = DispatchGroup()

    public init() { unset.enter() }

    deinit { set() }

    public func set() {
        if !isSet.exchange(true, ordering: .acquiringAndReleasing) { unset.leave() }
    }

    /// Blocks the calling thread until the flag is set. Returns false if it is not set within the limit.
    public func wait(atMost limit: Duration) -> Bool {
        unset.wait(timeout: .now() + .nanoseconds(Int(limit / .nanoseconds(1)))) == .success
    }
}
