import Platform
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// A compaction during which its store is suspended (S167).
@Suite struct SuspendedCompactionTests {
    /// Catches: a suspension that waits until every page is packed, for longer than the system lets a program run in the background.
    @Test func `S167: a compaction pauses while the container is suspended, and packs the other pages afterwards`() async throws {
        let bed = try TestBed(.lmdb)
        let container = try await bed.container()
        let rows: [[Value]] = (0..<64 * 200).map { [.string("track \($0)"), .int(Int64($0))] }
        try await container.coordinator.insert(into: "Track", ["title", "plays"], rows: rows)
        let (begun, mayGoOn, ended) = (Flag(), Flag(), Flag())
        let reports = Mutex<[Int]>([])
        let compaction = Task {
            defer { ended.set() }
            return try await container.compact(CompactionOptions(age: .any, effort: .fast)) { step in
                reports.withLock { $0.append(step.pagesPacked) }
                begun.set()
                _ = mayGoOn.wait(atMost: .seconds(600))
            }
        }
        // The first transaction is reported, and the next one waits for the end of the report.
        try await until("the compaction has begun") { begun.wait(atMost: .zero) }
        let suspending = Task { try await container.suspend() }
        try await until("the suspension has begun") { container.coordinator.writer.suspension.isClosed }
        mayGoOn.set()
        try await suspending.value
        let before = reports.withLock { $0 }
        try await until("the compaction waits, or has ended") {
            SuspensionTests.waitingCount(container) == 1 || ended.wait(atMost: .zero)
        }
        #expect(!ended.wait(atMost: .zero))
        #expect(try SuspensionTests.used(bed) == [])
        #expect(reports.withLock { $0 } == before)
        await container.resume()
        let result = try await compaction.value
        let all = reports.withLock { $0 }
        #expect(all.count > before.count && all == all.sorted() && all.last == result.pagesPacked, "\(before), \(all)")
        #expect(
            try await container.compact(CompactionOptions(age: .any, effort: .fast)).pagesPacked == 0, "nothing is left to pack")
        #expect(try container.coordinator.store.verify().isEmpty)
        try await container.close()
    }
}
