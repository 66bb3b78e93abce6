import StoreInterface
import StoreModel

/// One state of a store as contexts see it: a snapshot, and over it the saves that are not yet on disk.
///
/// Immutable. Sharing a state shares its snapshot (one read transaction). Releasing the last reference ends it.
final class StoreState: Sendable {
    let base: any StoreSnapshot
    /// Deferred saves, newest first. A layer may contain several folded saves.
    let deferred: [Layer]
    /// The number of saves in ``deferred``.
    let pendingSaves: Int
    /// The newest step of the writer in this state. It orders the states of one writer.
    let sequence: SaveSequence
    /// The newest save in the file that the state is known to contain. A base acquired later may contain newer saves of other
    /// processes. The state then counts as older, so that no check treats those saves as known.
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

    /// The generation of the newest save in this state. Pending saves count as one each, until the store numbers them at the commit.
    var generation: Generation { committed.advanced(by: pendingSaves) }

    var view: LayeredView { LayeredView(base: base, layers: deferred) }

    /// Returns the state after one more save, which is in memory.
    func adding(_ layer: Layer) -> StoreState {
        StoreState(
            base: base, committed: committed, deferred: [layer] + deferred, pendingSaves: pendingSaves + 1,
            sequence: sequence.next)
    }

    /// Returns the state without the pending saves whose layers are left out. Each of these layers contains one save.
    func keeping(_ kept: [Layer]) -> StoreState {
        StoreState(
            base: base, committed: committed, deferred: kept, pendingSaves: pendingSaves - (deferred.count - kept.count),
            sequence: sequence)
    }

    /// Acquires the snapshot, so that the state does not change when other processes save. If the store cannot be read, the first read
    /// throws.
    func takeBase() { _ = try? (storeBase as? LazySnapshot)?.take() }

    /// Returns a state with the same saves, read from another snapshot.
    func reading(_ base: any StoreSnapshot) -> StoreState {
        StoreState(
            base: base, committed: committed, deferred: deferred, pendingSaves: pendingSaves, sequence: sequence)
    }
}

/// An accepted save that is not in the file yet, with its history record.
struct PendingSave: Sendable {
    var sequence: SaveSequence
    var changes: ChangeSet
    /// The policy and the rules for a second check of the save.
    var terms: SaveTerms
    /// The save alone, as it was accepted. Readers may see it folded with other saves.
    var layer: Layer
    /// The state over which the save was accepted, without the saves that are still pending before this one. nil if the file contains that
    /// state. If a flush has left a save out or changed it, the file differs, and the save is checked again by its ``terms``.
    var accepted: StoreState?
}

/// A state of a store, which you can keep and read in contexts: `coordinator.snapshot()`, `context.snapshot`.
///
/// While a copy of it exists, the pages of its generation are not reused.
///
/// ```swift
/// let before = try container.coordinator.snapshot(owner: "report")
/// let report = container.coordinator.newBackgroundContext(reading: before)
/// let count = try await report.perform { try $0.count(FetchRequest<Track>()) }
/// ```
public struct Snapshot: Sendable {
    /// The state to read; an empty state after the store was closed.
    var state: StoreState { pin.state ?? empty }
    private let empty: StoreState
    /// The identity of the snapshot's store.
    public let store: StoreIdentity
    /// The registration among the live snapshots, shared by all copies.
    let pin: SnapshotLease

    init(_ state: StoreState, owner: String, of writer: StoreWriter) {
        state.takeBase()
        empty = state.closed(writer.store)
        store = writer.store.identity
        pin = writer.snapshotRegistry.add(owner, state: state)
    }

    /// The newest save that the snapshot contains.
    public var generation: Generation { state.generation }

    /// Returns the state among those of a writer. Sequences order the states of one writer. Each container of an SQLite file has its own
    /// writer, so that the state of another one counts as older than all of this writer's, and every save over it checks versions.
    ///
    /// - Precondition: A snapshot of another writer has no saves that are not on disk. Only a container that was released without closing it
    ///   leaves such a snapshot behind.
    func state(for writer: StoreWriter) -> StoreState {
        let state = state
        if pin.isRegistered(in: writer.snapshotRegistry) { return state }
        precondition(
            state.pendingSaves == 0,
            "cannot read a snapshot of a released container that has saves which are not on disk; flush before you take it")
        return StoreState(base: state.base, committed: state.committed, sequence: .zero)
    }
}

extension Snapshot: CustomStringConvertible {
    /// The number of the newest save in the snapshot.
    public var description: String { "snapshot after save \(state.generation)" }
}
