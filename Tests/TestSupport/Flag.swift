import Foundation
import Synchronization

/// Something that one thread sets and another waits for without giving up its executor.
public final class Flag: Sendable {
    private let isSet = Atomic<Bool>(false)

    public init() {}

    public func set() { isSet.store(true, ordering: .releasing) }

    /// Blocks the calling thread until the flag is set; false when it was not in time.
    public func spin(atMost limit: Duration) -> Bool {
        let start = ContinuousClock.now
        while !isSet.load(ordering: .acquiring) {
            if ContinuousClock.now - start > limit { return false }
            // The thread stays blocked, and the processor is left to whom it waits for.
            usleep(100)
        }
        return true
    }
}
