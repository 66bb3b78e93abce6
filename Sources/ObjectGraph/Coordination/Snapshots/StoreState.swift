import StoreInterface

/// One state of a store as contexts see it: a snapshot, and over it the saves that are not yet on disk.
///
/// Immutable; sharing it shares the snapshot (one read transaction). Dropping the last reference frees it.
final class StoreState: Sendable {
    let base: any StoreSnapshot
    /// Deferred saves, newest first; a layer may be several, folded.
    let deferred: [Layer]
    /// How many saves ``deferred`` stands for.
    let pendingSaves: Int
    /// The newest step of the writer in this state: orders the states of one writer.
    let sequence: SaveSequence
    /// The newest save in the file that the state holds. A base that is taken later may hold newer ones of other processes; the state
    /// counts as older then, so that no check takes them for known.
    let committed: Generation

    init(
        base: any StoreSnapshot, committed: Generation? = nil, deferred: [Layer] = [], pendingSaves: Int = 0,
        sequence: SaveSequence
    ) {
        self.base = base
        self.committed = committed ?? base.generation
        self.deferred = deferred
        self.pendingSaves = pendingSaves
        self.sequence = sequence
    }

    /// The generation that the newest save in this state has, or will have when it is committed.
    var generation: Generation { committed + UInt64(pendingSaves) }

    var view: LayeredView { LayeredView(base: base, layers: deferred) }

    /// The state after one more save, which is held in memory.
    func adding(_ layer: Layer) -> StoreState {
        StoreState(
            base: base, committed: committed, deferred: [layer] + deferred, pendingSaves: pendingSaves + 1,
            sequence: sequence.next)
    }

    /// Makes the state one that does not change any more, whatever other processes save. A store that cannot be read says so at the
    /// first read.
    func takeBase() { _ = try? (base as? LazySnapshot)?.take() }

    /// The same saves read from another snapshot.
    func reading(_ base: any StoreSnapshot) -> StoreState {
        StoreState(
            base: base, committed: committed, deferred: deferred, pendingSaves: pendingSaves, sequence: sequence)
    }
}

/// An accepted save that is not in the file: its line in the history.
struct PendingSave: Sendable {
    var sequence: SaveSequence
    var changes: ChangeSet
    /// The relationships of the model that it was made with.
    var rules: RelationshipRules
    /// The save alone, as it was accepted: what readers see may be folded with other saves.
    var layer: Layer
    /// Saves, newest first, that it was accepted upon and that could not be written: it is checked anew without them.
    var leftOut: [Layer] = []
}

/// A state of a store that may be kept, and given to contexts to read: `coordinator.snapshot()`, `context.snapshot`.
///
/// It keeps the pages of its generation from being reused as long as it is held.
public struct Snapshot: Sendable {
    /// The state that is read; an empty one after the store was closed.
    var state: StoreState { pin.state ?? empty }
    private let empty: StoreState
    /// The store that it is a state of.
    public let store: StoreIdentity
    /// Names the snapshot among the live ones, as long as a copy of it is held.
    let pin: SnapshotLease

    init(_ state: StoreState, owner: String, of writer: StoreWriter) {
        state.takeBase()
        empty = state.closed(writer.store)
        store = writer.store.identity
        pin = writer.pins.add(owner, state)
    }

    /// The newest save that the snapshot holds.
    public var generation: Generation { state.generation }
}
