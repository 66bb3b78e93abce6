internal import Platform
import StoreInterface
import StoreModel

/// Waits until a store is closed. The last reference to it may be released on the writer's queue.
final class StoreRelease {
    private weak var store: (any ObjectStore)?

    func watch(_ store: any ObjectStore) { self.store = store }

    func wait() throws {
        for _ in 0..<2000 where store != nil { CurrentThread.sleep(microseconds: 5_000) }
        guard store == nil else {
            throw StoreError(
                .inUseElsewhere, "a migration stage failed: its closure kept the context. Release the context and its objects.")
        }
    }
}
