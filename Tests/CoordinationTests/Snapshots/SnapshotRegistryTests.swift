import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct SnapshotRegistryTests {
    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let registry = SnapshotRegistry()

    /// Commits an empty save, so that the next snapshot is another one.
    private func commit() throws { try store.saveElsewhere(Layer(schema: Music.model.storeSchema)) }

    /// Returns a noted snapshot of the newest state.
    private func snapshot() throws -> any StoreSnapshot {
        let snapshot = try store.snapshot()
        registry.note(snapshot)
        return snapshot
    }

    private func state(_ snapshot: any StoreSnapshot) -> StoreState { StoreState(base: snapshot, sequence: .zero) }

    private var owners: [[String]] { registry.live().taken.map { $0.holders.map(\.owner).sorted() } }

    @Test func `S152: each live snapshot is listed with its holders, oldest first`() throws {
        let first = try snapshot()
        try commit()
        let second = try snapshot()
        let leases = [("a", first), ("b", second), ("c", first)].map { registry.add($0, state: state($1)) }
        #expect(owners == [["a", "c"], ["b"]])
        leases[0].rename("d")
        #expect(owners == [["c", "d"], ["b"]])
        leases[0].move(to: state(second))
        #expect(owners == [["c"], ["b", "d"]])
        #expect(leases[0].state?.base === second)
    }

    @Test func `S150: a lease that is released ends, and its snapshot with it`() throws {
        weak var released: (any StoreSnapshot)?
        do {
            let first = try snapshot()
            released = first
            try commit()
            let lease = registry.add("a", state: state(first))
            #expect(owners == [["a"]])
            withExtendedLifetime(lease) {}
        }
        #expect(released == nil)
        #expect(registry.live().taken.isEmpty && registry.live().resting.isEmpty)
    }

    @Test func `S154: a holder that has read nothing holds no snapshot`() throws {
        let lazy = LazySnapshot(store, generation: 0) { [registry] in registry.note($0) }
        let lease = registry.add("a", state: state(lazy))
        #expect(registry.live().taken.isEmpty && registry.live().resting.map(\.owner) == ["a"])
        _ = try lazy.take()
        #expect(owners == [["a"]] && registry.live().resting.isEmpty)
        withExtendedLifetime(lease) {}
    }

    /// Catches: a list that grows with every save.
    @Test func `S152: released snapshots are forgotten`() throws {
        let kept = try snapshot()
        for _ in 0..<1_000 {
            try commit()
            _ = try snapshot()
        }
        #expect(registry.notedCount <= 65)
        #expect(registry.live().taken.contains { $0.base === kept })
    }

    @Test func `S167: ending kept snapshots leaves contexts as they are, and closing ends all`() throws {
        let first = try snapshot()
        let place = ContextAddress(executor: nil, below: nil)
        let leases = [registry.add("kept", state: state(first)), registry.add("context", state: state(first), place: place)]
        let ended = state(first).closed(store)
        registry.endKept(ended)
        #expect(leases[0].state === ended && leases[1].state?.base === first)
        #expect(owners == [["context"]])
        #expect(registry.places().count == 1 && registry.places()[0] === place)
        registry.close(ended)
        #expect(leases[1].state === ended && owners == [[]])
    }
}
