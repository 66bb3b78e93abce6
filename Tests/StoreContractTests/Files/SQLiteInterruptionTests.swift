import Foundation
import StoreContract
import StoreInterface
import StoreModel
import Synchronization
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

    /// Copies a store. Returns the parts of the work that were reported.
    /// - Parameter last: The part after whose report the copying is cancelled; nil if it is not.
    private static func parts(_ store: any ObjectStore, to url: URL, cancellingAfter last: Double? = nil) throws -> [Double] {
        let parts = Mutex<[Double]>([])
        let running = Mutex<Cancellation?>(nil)
        let cancellation = Cancellation { part in
            parts.withLock { $0.append(part) }
            if part == last { running.withLock { $0 }?.cancel() }
        }
        running.withLock { $0 = cancellation }
        defer { running.withLock { $0 = nil } }
        if last == nil {
            _ = try store.backup(to: url, existing: .refuse, cancellation: cancellation)
        } else {
            #expect(throws: CancellationError.self) {
                _ = try store.backup(to: url, existing: .refuse, cancellation: cancellation)
            }
        }
        return parts.withLock { $0 }
    }

    /// Catches: a backup that checks the whole copy after its task was cancelled.
    @Test func `a cancellation interrupts the check of a backup`() throws {
        let contract = try ContractStore(.sqlite)
        // More pages than are copied between two looks at the flag.
        let text = String(repeating: "x", count: 3000)
        try contract.save { layer in for key in 64..<1600 as Range<ObjectKey> { layer.insertOwner(key, "\(key) \(text)") } }
        let folder = contract.folder.url
        let whole = try Self.parts(contract.store, to: folder.appendingPathComponent("whole"))
        #expect(whole.last == 1)
        // The last pages are copied after this report, and then checked.
        let last = try #require(whole.dropLast().last)
        let target = folder.appendingPathComponent("cancelled")
        #expect(try Self.parts(contract.store, to: target, cancellingAfter: last) == Array(whole.dropLast()))
        #expect(!FileManager.default.fileExists(atPath: target.path))
    }
}
