import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Imports of rows that belong to the main actor.
@Suite struct MainActorImportTests {
    /// The closure of a lazy sequence is isolated to the place where it is written. Calling it on another executor ends the
    /// process.
    @Test(arguments: StoreKind.allCases) @MainActor
    func `S137: an import reads a lazy sequence on the executor of its caller`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        var made = 0
        var options = BatchOptions()
        options.rowsPerSave = 100
        // Written in the call, the compiler would choose the `map` that makes an array.
        let rows = (0..<250).lazy.map { number in
            MainActor.assertIsolated()
            made += 1
            return [Value.string("t\(number)"), .int(Int64(number))]
        }
        let result = try await container.coordinator.insert(into: "Track", ["title", "plays"], rows: rows, options: options)
        #expect(made == 250)
        #expect(result.insertedCount == 250)
        let stored = try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Track")) }
        #expect(stored == 250)
        withExtendedLifetime(bed) {}
    }
}
