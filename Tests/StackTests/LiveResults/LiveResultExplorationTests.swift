import TestSupport
import Testing

/// Live results of random queries in every stack, compared with fetches after every step of a random sequence. A failure prints the
/// shortest failing sequence that was found, and its seed.
@Suite struct LiveResultExplorationTests {
    @Test(arguments: Combination.all)
    func `S141, S145: live results, their sections and their differences say what a fetch says after every step`(
        _ combination: Combination
    ) async throws {
        for run in 0..<UInt64(Rounds.of(2, long: 100)) {
            let seed = Seed.value &+ run
            var random = SeededGenerator(seed: seed)
            let steps = (0..<80).map { _ in random.next() }
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "\(combination)") { steps in
                try await LiveResultExploration.run(steps, combination, seed: seed)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }
}
