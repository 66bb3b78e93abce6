/// The error of a wait whose condition never became true.
public struct NeverHappened: Error, CustomStringConvertible {
    public let description: String
}

/// Returns when a condition is true. Runs on the caller's executor and leaves it free between two checks.
///
/// The limit ends a test that hangs. No test may use it to measure speed, so it is far longer than any wait.
public func until(
    _ what: String, atMost limit: Duration = .seconds(600), isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    let start = ContinuousClock.now
    while try await !condition() {
        guard ContinuousClock.now - start < limit else { throw NeverHappened(description: "waited \(limit) for: \(what)") }
        try await Task.sleep(for: .milliseconds(2))
    }
}
