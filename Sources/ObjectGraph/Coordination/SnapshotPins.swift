import Locking
import StoreInterface

/// One holder of a state: a context, or a `Snapshot` that somebody keeps. Alive as long as the holder.
final class SnapshotPin: Sendable {
    private let box: Mutex<Box>
    private let pins: SnapshotPins
    private let number: UInt64
    /// Where a context lives; nil for a kept snapshot, which nobody can move.
    let place: ContextPlace?

    private struct Box {
        var owner: String
        /// The holder itself keeps it alive.
        weak var state: StoreState?
    }

    fileprivate init(_ owner: String, _ state: StoreState, _ place: ContextPlace?, _ number: UInt64, _ pins: SnapshotPins) {
        box = Mutex(Box(owner: owner, state: state))
        self.place = place
        self.number = number
        self.pins = pins
    }

    deinit { pins.remove(number) }

    var owner: String {
        get { box.withLock { $0.owner } }
        set { box.withLock { $0.owner = newValue } }
    }

    var state: StoreState? {
        get { box.withLock { $0.state } }
        set { box.withLock { $0.state = newValue } }
    }
}

/// Who holds which states of one store: what ``PersistentStoreCoordinator/snapshots()`` reads, and what a budget is held against.
final class SnapshotPins: Sendable {
    private let shared = Mutex(Shared())
    let budget = SnapshotBudgetState()

    private struct Shared {
        var pins: [UInt64: WeakPin] = [:]
        var next: UInt64 = 0
        /// The snapshots that the writer has published, oldest first; those that are gone are swept now and then.
        var bases: [WeakBase] = []
        var sweepAt = 64
    }

    private struct WeakPin { weak var pin: SnapshotPin? }

    private struct WeakBase {
        weak var base: (any StoreSnapshot)?
        var taken: ContinuousClock.Instant
    }

    /// A snapshot that somebody holds, and those of its holders that are known.
    struct Live {
        var base: any StoreSnapshot
        var taken: ContinuousClock.Instant
        var pins: [SnapshotPin]
    }

    func add(_ owner: String, _ state: StoreState, _ place: ContextPlace? = nil) -> SnapshotPin {
        shared.withLock { shared in
            shared.next += 1
            let pin = SnapshotPin(owner, state, place, shared.next, self)
            shared.pins[shared.next] = WeakPin(pin: pin)
            return pin
        }
    }

    fileprivate func remove(_ number: UInt64) {
        _ = shared.withLock { $0.pins.removeValue(forKey: number) }
    }

    /// Remembers a snapshot that others can hold from now on. Amortised O(1).
    func note(_ base: any StoreSnapshot) {
        shared.withLock { shared in
            if shared.bases.count >= shared.sweepAt {
                shared.bases.removeAll { $0.base == nil }
                shared.sweepAt = max(64, 2 * shared.bases.count)
            }
            shared.bases.append(WeakBase(base: base, taken: .now))
        }
    }

    /// O(live snapshots + pins).
    func live() -> [Live] {
        let (bases, pins) = shared.withLock { shared in
            (
                shared.bases.compactMap { entry in entry.base.map { Live(base: $0, taken: entry.taken, pins: []) } },
                shared.pins.values.compactMap(\.pin)
            )
        }
        var places: [ObjectIdentifier: Int] = [:]
        var live: [Live] = []
        // Two states can share a snapshot.
        for entry in bases where places[ObjectIdentifier(entry.base)] == nil {
            places[ObjectIdentifier(entry.base)] = live.count
            live.append(entry)
        }
        for pin in pins {
            guard let base = pin.state?.base, let place = places[ObjectIdentifier(base)] else { continue }
            live[place].pins.append(pin)
        }
        return live
    }
}
