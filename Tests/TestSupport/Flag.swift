import Foundation
import Synchronization

/// A flag that one thread sets while another waits for it without leaving its executor.
public final class Flag: Sendable {
    private let isSet = Atomic<Bool>(false)

    public init() {}

    public func set() { isSet.store(true, ordering: .releasing) }

    /// Blocks the calling thread until the flag is set. Returns false if it is not set within the limit.
    public func spin(atMost limit: Duration) -> Bool {
        let start = ContinuousClock.now
        while !isSet.load(ordering: .acquiring) {
            if ContinuousClock.now - start > limit { return false }
            // The thread stays blocked, and leaves the processor to other threads.
            usleep(100)
        }
        return true
    }
}
