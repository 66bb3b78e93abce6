import ObjectGraph
import StoreModel
import TestSupport
import Testing

/// The history against a list of saves.
@Suite struct HistoryExplorerTests {
    /// Two containers on one store save, and the store is copied, restored, suspended, migrated and compacted.
    @MainActor @Test(arguments: StoreKind.allCases)
    func `S160: the history is a list of the saves, whatever else is done with the store (S168)`(_ kind: StoreKind) async throws {
        for round in 0..<Rounds.of(2, long: 60) {
            let seed = Seed.value &+ UInt64(round)
            print("HistoryExplorer \(kind): STRATA_SEED=\(seed)")
            var explorer = try await HistoryExplorer(kind, seed: seed)
            for _ in 0..<80 { try await explorer.step() }
            try await explorer.finish()
        }
    }
}
