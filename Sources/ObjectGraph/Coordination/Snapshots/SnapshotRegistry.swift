internal import Platform
import StoreInterface
import StoreModel

/// The registration of a context or `Snapshot` that uses a state. It ends when the lease is deallocated.
final class SnapshotLease: Sendable {
    private let snapshotRegistry: SnapshotRegistry
    private let number: UInt64

    fileprivate init(_ number: UInt64, _ snapshotRegistry: SnapshotRegistry) {
        self.number = number
        self.snapshotRegistry = snapshotRegistry
    }

    deinit { snapshotRegistry.remove(number) }

    func isRegistered(in other: SnapshotRegistry) -> Bool { snapshotRegistry === other }
    func rename(_ owner: String) { snapshotRegistry.rename(number, owner) }
    func move(to state: StoreState) { snapshotRegistry.move(number, to: state) }
    /// The state held by the lease. Returns nil after the lease has ended.
    var state: StoreState? { snapshotRegistry.state(number) }
}

/// The users of the states of one store, for ``PersistentStoreCoordinator/snapshots()`` and for checking the budget.
final class SnapshotRegistry: Sendable {
    private let shared = Mutex(Shared())
    let budget = SnapshotBudgetState()
    /// The snapshots that are acquired at their first read, or before the next commit of this process.
    let unacquired = UnacquiredSnapshots()

    private struct Shared {
        /// The holders by the numbers of their leases, which remove them.
        var holders: [UInt64: Holder] = [:]
        var next: UInt64 = 0
        /// The snapshots that the writer has published. Released snapshots are removed from time to time.
        var bases: [ObjectIdentifier: WeakBase] = [:]
        var sweepAt = 64
    }

    struct Holder {
        var owner: String
        var state: StoreState
        /// The address of a context; nil for a kept snapshot, which cannot be moved.
        var place: ContextAddress?
    }

    private struct WeakBase {
        weak var base: (any StoreSnapshot)?
        var taken: ContinuousClock.Instant
    }

    /// A snapshot in use, and its known holders.
    struct Live {
        var base: any StoreSnapshot
        var taken: ContinuousClock.Instant
        var holders: [Holder]
    }

    func add(_ owner: String, state: StoreState, place: ContextAddress? = nil) -> SnapshotLease {
        let number = shared.withLock { shared in
            shared.next += 1
            shared.holders[shared.next] = Holder(owner: owner, state: state, place: place)
            return shared.next
        }
        return SnapshotLease(number, self)
    }

    fileprivate func rename(_ number: UInt64, _ owner: String) { shared.withLock { $0.holders[number]?.owner = owner } }

    /// Changes the state of a holder. Its old state is released after the lock, because releasing the last reference ends a snapshot.
    fileprivate func move(_ number: UInt64, to state: StoreState) {
        _ = shared.withLock { shared -> StoreState? in
            guard let index = shared.holders.index(forKey: number) else { return nil }
            defer { shared.holders.values[index].state = state }
            return shared.holders.values[index].state
        }
    }

    fileprivate func remove(_ number: UInt64) {
        _ = shared.withLock { $0.holders.removeValue(forKey: number) }
    }

    /// The number of remembered snapshots, including released ones.
    var notedCount: Int { shared.withLock { $0.bases.count } }

    fileprivate func state(_ number: UInt64) -> StoreState? { shared.withLock { $0.holders[number]?.state } }

    /// Whether no context and no kept snapshot uses a state.
    var isUnused: Bool { shared.withLock { $0.holders.isEmpty } }

    /// Returns the addresses of the contexts among the holders.
    func places() -> [ContextAddress] { shared.withLock { $0.holders.values.compactMap(\.place) } }

    /// Returns the confined contexts of a coordinator among the holders, by name.
    func confined(of coordinator: PersistentStoreCoordinator) -> [(name: String, uses: StoreUses)] {
        shared.withLock { shared in
            shared.holders.values.compactMap { holder in
                guard let uses = holder.place?.confinement?.uses, uses.owner == ObjectIdentifier(coordinator) else { return nil }
                return (holder.owner, uses)
            }
        }
    }

    /// Returns all confined contexts among the holders, by name.
    func confined() -> [(name: String, uses: StoreUses)] {
        shared.withLock { shared in
            shared.holders.values.compactMap { holder in holder.place?.confinement.map { (holder.owner, $0.uses) } }
        }
    }

    /// Replaces the state of every kept snapshot by one that cannot be read.
    func endKept(_ ended: StoreState) {
        let old = shared.withLock { shared in
            let kept = shared.holders.filter { $0.value.place == nil }
            for number in kept.keys { shared.holders[number]?.state = ended }
            return kept
        }
        // The snapshots are released after the lock.
        withExtendedLifetime(old) {}
    }

    /// Replaces the state of every holder by that of a closed store.
    func close(_ closed: StoreState) {
        let old = shared.withLock { shared in
            let old = shared.holders.values.map(\.state)
            for number in shared.holders.keys { shared.holders[number]?.state = closed }
            return old
        }
        // The snapshots are released after the lock.
        withExtendedLifetime(old) {}
    }

    /// Remembers a snapshot that can be used from now on. Amortized O(1).
    func note(_ base: any StoreSnapshot) {
        shared.withLock { shared in
            // A store returns the same object for the same generation. A released snapshot may have had the same address.
            if shared.bases[ObjectIdentifier(base)]?.base != nil { return }
            if shared.bases.count >= shared.sweepAt {
                shared.bases = shared.bases.filter { $0.value.base != nil }
                shared.sweepAt = max(64, 2 * shared.bases.count)
            }
            shared.bases[ObjectIdentifier(base)] = WeakBase(base: base, taken: .now)
        }
    }

    /// Returns the live snapshots, oldest first, and the holders that have not read anything yet. O(live snapshots + holders).
    func live() -> (taken: [Live], resting: [Holder]) {
        let (bases, holders) = shared.withLock { shared in
            (
                shared.bases.values.compactMap { entry in entry.base.map { Live(base: $0, taken: entry.taken, holders: []) } },
                Array(shared.holders.values)
            )
        }
        var places: [ObjectIdentifier: Int] = [:]
        var live = bases.sorted { $0.taken < $1.taken }
        var resting: [Holder] = []
        for (place, entry) in live.enumerated() { places[ObjectIdentifier(entry.base)] = place }
        for holder in holders {
            let read = holder.state.storeBase
            let base = (read as? LazySnapshot).map(\.held) ?? read
            guard let base else {
                resting.append(holder)
                continue
            }
            guard let place = places[ObjectIdentifier(base)] else { continue }
            live[place].holders.append(holder)
        }
        return (live, resting)
    }
}
