internal import Platform
import StoreInterface
import StoreModel

/// Snapshots of states that no context has read yet. They must be acquired before the next commit, after which their state is gone.
final class UnacquiredSnapshots: Sendable {
    private struct WeakSnapshot {
        weak var snapshot: LazySnapshot?
    }

    private let waiting = Mutex<[WeakSnapshot]>([])
    /// Whether a check is scheduled that releases the snapshot of the writer's state.
    let isResting = Atomic(false)

    func add(_ snapshot: LazySnapshot) {
        waiting.withLock { waiting in
            if waiting.count >= 64 { waiting.removeAll { $0.snapshot?.current != nil || $0.snapshot == nil } }
            waiting.append(WeakSnapshot(snapshot: snapshot))
        }
    }

    /// Acquires all of them. If one cannot be acquired, this throws and a later call tries all again.
    func acquire() throws {
        let taken = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting.compactMap(\.snapshot)
        }
        do {
            for snapshot in taken { try snapshot.take() }
        } catch {
            waiting.withLock { $0 += taken.map { WeakSnapshot(snapshot: $0) } }
            throw error
        }
    }

    func removeAll() { waiting.withLock { $0 = [] } }
}
