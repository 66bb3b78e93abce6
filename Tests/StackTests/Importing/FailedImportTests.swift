import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Imports that the store refuses.
@Suite struct FailedImportTests {
    /// Catches: keys of refused rows that no later object gets, so that pages stay sparse.
    @Test(arguments: StoreKind.allCases)
    func `S155: the keys of rows that an import does not save are used by later objects`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        let rows = (0..<640).map { [Value.string("\($0)"), .int(0), .string("\($0 % 639)")] }
        for _ in 0..<30 {
            await #expect(throws: (any Error).self) {
                try await container.coordinator.insert(into: "Track", ["title", "plays", "isrc"], rows: rows)
            }
        }
        try await container.coordinator.insert(into: "Track", ["title", "plays", "isrc"], rows: rows.dropLast())
        let keys = try await container.newBatchOperationContext().perform { context in
            try context.fetchIDs(EntityFetchRequest("Track")).map(\.key)
        }
        #expect(keys.count == 639)
        #expect(try #require(keys.max()) < ObjectKey(4 * 640))
        try await container.close()
    }

    /// Catches: a large number that becomes infinity, as no narrow integer is cut either.
    @Test(arguments: StoreKind.allCases)
    func `S137: a number that a float cannot hold is refused`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let ratio = AttributeDescription(name: "ratio", type: .float, index: .unique)
        let container = try await bed.container(
            model: Model([EntityDescription(name: "Sample", properties: [.attribute(ratio)])]))
        let error = await #expect(throws: BatchError.self) {
            try await container.coordinator.insert(into: "Sample", ["ratio"], rows: [[.double(1e300)]])
        }
        #expect(error?.description.contains("Sample.ratio") == true, "\(String(describing: error))")
        await #expect(throws: BatchError.self) {
            try await container.write { context in
                _ = try context.upsert("Sample", unique: "ratio", .double(1e300))
            }
        }
        try await container.coordinator.insert(into: "Sample", ["ratio"], rows: [[.double(1.5)], [.double(.infinity)]])
        #expect(try await container.read { try $0.count(EntityFetchRequest("Sample")) } == 2)
        try await container.close()
    }

    /// Catches: the error of a later row, which hides why the rows before it are missing.
    @Test(arguments: StoreKind.allCases)
    func `S137: an import throws the error of a failed save before that of a later row`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container()
        // The last row of the first save has the unique value of the first row. The next row has a value of the wrong type.
        var values = (0..<20).map { [Value.string("\($0)"), .int(0), .string("\($0 % 9)")] }
        values[10][1] = .string("many")
        let rows = values
        var options = BatchOptions()
        options.rowsPerSave = 10
        let error = await #expect(throws: SaveError.self) {
            try await container.coordinator.insert(
                into: "Track", ["title", "plays", "isrc"], rows: rows, options: options)
        }
        guard case .uniqueConstraint = error else {
            _ = Issue.record("\(String(describing: error))")
            return
        }
        #expect(try await container.read { try $0.count(EntityFetchRequest("Track")) } == 0)
        try await container.close()
    }
}
