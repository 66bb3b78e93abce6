import TestSupport
import Testing

/// Live results of random queries in every stack, compared with fetches after every step of a random sequence. A failure prints the
/// shortest failing sequence that was found, and its seed.
@Suite struct LiveResultExplorationTests {
    @Test(arguments: Combination.all)
    func `S141, S145: live results, their sections and their differences say what a fetch says after every step`(
        _ combination: Combination
    ) async throws {
        try await explore(combination, rounds: Rounds.of(1, long: 100), atOnce: 1)
    }

    /// The steps of a failure are not repeated in their order, so they may be more than necessary.
    @Test(arguments: Combination.all)
    func `S141, S145: live results say what a fetch says after several contexts have worked at the same time`(
        _ combination: Combination
    ) async throws {
        try await explore(combination, rounds: Rounds.of(1, long: 100), atOnce: 4)
    }

    /// Catches: live results that go on showing objects which a failed save has given back to a context that was reset meanwhile.
    @Test(arguments: Combination.all.filter { $0.stack == .nested })
    func `S141, S145: live results follow a reset during a save that fails`(_ combination: Combination) async throws {
        try await explore(combination, rounds: 1, atOnce: 4, steps: 80, from: 2_257_356_512_861_234_988)
    }

    private func explore(
        _ combination: Combination, rounds: Int, atOnce count: Int, steps: Int = Rounds.of(40, long: 80),
        from start: UInt64 = Seed.value
    ) async throws {
        for run in 0..<UInt64(rounds) {
            let seed = start &+ run
            var random = SeededGenerator(seed: seed)
            let steps = (0..<steps).map { _ in random.next() }
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "\(combination)") { steps in
                try await LiveResultExploration.run(steps, combination, seed: seed, atOnce: count)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }
}
