import StoreInterface

/// One state of a store as contexts see it: a snapshot, and over it the saves that are not yet on disk.
///
/// Immutable; sharing it shares the snapshot (one read transaction). Dropping the last reference frees it.
final class StoreState: Sendable {
    let base: any StoreSnapshot
    /// Deferred saves, newest first; a layer may be several, folded.
    let deferred: [Layer]
    /// The newest save in this state.
    let generation: Generation

    init(base: any StoreSnapshot, deferred: [Layer] = [], generation: Generation? = nil) {
        self.base = base
        self.deferred = deferred
        self.generation = generation ?? max(base.generation, deferred.first?.generation ?? 0)
    }

    var view: LayeredView { LayeredView(base: base, layers: deferred) }

    /// The state after one more save, which is held in memory.
    func adding(_ layer: Layer) -> StoreState {
        StoreState(base: base, deferred: [layer] + deferred, generation: layer.generation)
    }
}

/// A state of a store that may be kept, and given to contexts to read: `coordinator.snapshot()`, `context.snapshot`.
///
/// It keeps the pages of its generation from being reused as long as it is held.
public struct Snapshot: Sendable {
    let state: StoreState
    /// The store that it is a state of.
    public let store: StoreIdentity
    /// Names the snapshot among the live ones, as long as a copy of it is held.
    let pin: SnapshotPin

    init(_ state: StoreState, owner: String, of writer: StoreWriter) {
        self.state = state
        store = writer.store.identity
        pin = writer.pins.add(owner, state)
    }

    /// The newest save that the snapshot holds.
    public var generation: Generation { state.generation }
}
