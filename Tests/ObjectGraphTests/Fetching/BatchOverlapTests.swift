import Dispatch
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct BatchOverlapTests {
    /// Catches: an import that waits for a save before it reads the next rows.
    @Test(arguments: StoreKind.allCases) func S137_rowsAreTakenWhileThoseBeforeThemAreSaved(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let coordinator = try await bed.container().coordinator
        let (taken, didWait) = (DispatchSemaphore(value: 0), Flag())
        // No save passes the writer's queue before the second save's rows are requested.
        coordinator.writer.queue.async {
            if taken.wait(timeout: .now() + 600) == .success { didWait.set() }
        }
        let rows = (0..<40).lazy.map { number -> [Value] in
            if number == 25 { taken.signal() }
            return [.string("\(number)")]
        }
        var options = BatchOptions()
        options.rowsPerSave = 20
        let result = try await coordinator.insert(into: "Track", ["title"], rows: rows, options: options)
        #expect(result.insertedCount == 40 && result.changes.count == 2)
        // Both saves have passed the queue, and so has the block before them.
        #expect(didWait.wait(atMost: .zero))
    }
}
