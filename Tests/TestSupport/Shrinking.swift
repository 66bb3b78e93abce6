/// Finds the shortest part of a failing sequence of steps, by leaving out parts of half the length, then of a quarter, and so on.
///
/// Every part of a sequence must be a sequence that can be run. A thrown error counts as a failure.
public enum Shrinking {
    /// Runs a sequence of steps. Returns nil if nothing fails. Otherwise returns the seed, the failure of the shortest part that was found,
    /// and its steps, one per line.
    ///
    /// - Parameters:
    ///   - steps: The steps to run.
    ///   - seed: The seed that the steps were made from.
    ///   - place: The store and the circumstances, in words.
    ///   - run: Runs steps on new contexts. Returns the first failure in words, or nil.
    public static func failure<Step: Sendable & CustomStringConvertible>(
        of steps: [Step], seed: UInt64, on place: String, run: ([Step]) async throws -> String?
    ) async -> String? {
        guard let failure = await Self.failure(of: steps, run) else { return nil }
        let (shortest, found) = await shortest(steps, failure, run: run)
        let lines = shortest.map { "    \($0)" }.joined(separator: "\n")
        return "STRATA_SEED=\(seed), on \(place): \(found)\n\(lines)"
    }

    /// Returns the shortest part of a failing sequence that was found, and its failure.
    public static func shortest<Step: Sendable>(
        _ steps: [Step], _ failure: String, run: ([Step]) async throws -> String?
    ) async -> (steps: [Step], failure: String) {
        var (best, found) = (steps, failure)
        var size = max(1, steps.count / 2)
        while true {
            var start = 0
            var isShorter = false
            while start < best.count {
                var part = best
                part.removeSubrange(start..<min(best.count, start + size))
                if let other = await Self.failure(of: part, run) {
                    (best, found, isShorter) = (part, other, true)
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { return (best, found) }
            size = max(1, size / 2)
        }
    }

    private static func failure<Step>(of steps: [Step], _ run: ([Step]) async throws -> String?) async -> String? {
        do { return try await run(steps) } catch { return "an error that no step expects: \(error)" }
    }
}
