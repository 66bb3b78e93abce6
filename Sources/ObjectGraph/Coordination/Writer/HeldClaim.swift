internal import Platform
import StoreInterface
import StoreModel

/// The claim of this process to the next commits, held while saves are pending. Changed on the writer's queue only.
final class HeldClaim: Sendable {
    private let claim = Mutex<(any SaveClaim)?>(nil)
    /// The observer of other processes' requests, kept from the first deferred save on.
    private let requests = Mutex<(any StoreWatch)?>(nil)

    var isHeld: Bool { claim.withLock { $0 != nil } }

    /// Whether another process waits for the claim.
    var isWanted: Bool { claim.withLock { $0 }?.isWanted ?? false }

    func hold(_ made: any SaveClaim) { claim.withLock { $0 = made } }

    func release() {
        let old = claim.withLock { claim in
            defer { claim = nil }
            return claim
        }
        old?.release()
    }

    /// Starts to observe requests of other processes, once.
    func watchRequests(_ start: () throws -> (any StoreWatch)?) throws {
        try requests.withLock { watch in
            if watch == nil { watch = try start() }
        }
    }

    func stopWatching() { requests.withLock { $0 = nil } }
}
