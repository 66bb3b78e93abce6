import StoreContract
import StoreInterface
import StoreModel
import Testing

@testable import SQLiteStore

/// The end of long statements.
@Suite struct SQLiteInterruptionTests {
    /// Catches: a check of a large file that goes on after its task was cancelled.
    @Test(.timeLimit(.minutes(10))) func `a cancellation interrupts a statement, and the connection stays usable`() throws {
        let contract = try ContractStore(.sqlite)
        let connection = try SQLiteConnection(path: contract.folder.url.appendingPathComponent("other").path, role: .creator)
        defer { connection.close() }
        let cancellation = Cancellation()
        #expect(try connection.cancelled(by: cancellation) { try connection.integer("SELECT 1") } == 1)
        cancellation.cancel()
        let endless = "WITH RECURSIVE numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers"
        #expect(throws: CancellationError.self) {
            try connection.cancelled(by: cancellation) { try connection.integer(endless) }
        }
        #expect(try connection.integer("SELECT 2") == 2)
    }
}
