/// Lets one test at a time start processes that wait for each other, or for the test.
///
/// Each process of an exit test takes a thread of the tests until it ends, and there are as many threads as processors. Processes of two such
/// tests could take all of them, and wait for partners that are never started, or for a test that never continues.
public actor WaitingProcesses {
    private static let shared = WaitingProcesses()
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` when no other test runs its own. `body` starts the processes and waits for their ends.
    public static func run(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async rethrows {
        await shared.enter()
        do { try await body() } catch {
            await shared.leave()
            throw error
        }
        await shared.leave()
    }

    private func enter() async {
        if isTaken { return await withCheckedContinuation { waiting.append($0) } }
        isTaken = true
    }

    private func leave() {
        guard !waiting.isEmpty else { return isTaken = false }
        waiting.removeFirst().resume()
    }
}
