import Foundation
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

    /// Catches: an import that says that the entity does not have the relationship.
    @Test(arguments: StoreKind.allCases)
    func `S137, S139: an import into the store refuses a relationship to many objects by its kind`(_ kind: StoreKind)
        async throws
    {
        struct MixedSong: Codable, Sendable { var code = "a", mixes = ["m"] }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let error = await #expect(throws: BatchError.self) {
            try await container.coordinator.insert(contentsOf: [MixedSong()], as: Song.self)
        }
        #expect(
            error?.description
                == "cannot set Song.mixes: it is a relationship to many objects. Use insert(contentsOf:as:) of a context.")
        #expect(try await container.read { try $0.count(EntityFetchRequest("Song")) } == 0)
        try await container.close()
    }

    /// Catches: a message with the seconds of a date, which people cannot read.
    @Test(arguments: StoreKind.allCases)
    func `S137, S139, S172: an import names a missing destination by its date as people read it`(_ kind: StoreKind)
        async throws
    {
        struct Visit: Codable, Sendable { var title = "a", day = Date(timeIntervalSinceReferenceDate: 778_000_000) }
        let day = EntityDescription(
            name: "VisitedDay",
            properties: [
                .attribute(.init(name: "date", type: .date, index: .unique)),
                .relationship(.init(name: "visits", destination: "Visit", inverse: "day", cardinality: .toMany)),
            ])
        let visit = EntityDescription(
            name: "Visit",
            properties: [
                .attribute(.init(name: "title", type: .string)),
                .relationship(.init(name: "day", destination: "VisitedDay", inverse: "visits", cardinality: .toOne)),
            ])
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Model([day, visit]))
        let text = "no VisitedDay has the date 2025-08-27T15:06:40Z. Insert it first, or use null."
        let inStore = await #expect(throws: BatchError.self) {
            try await container.coordinator.insert(contentsOf: [Visit()], into: "Visit")
        }
        #expect(inStore?.description == "cannot set Visit.day.date: \(text)")
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            let error = #expect(throws: BatchError.self) { try context.insert(contentsOf: [Visit()], into: "Visit") }
            #expect(error?.description == "cannot set Visit.day: \(text)")
        }
        try await container.close()
    }

    /// Catches: a message with the seconds of a date, or the number of bytes of a decimal.
    @Test(arguments: StoreKind.allCases)
    func `S139: an import names the type of a date or a decimal that does not fit`(_ kind: StoreKind) async throws {
        struct DateAsNumber: Codable { var code = "a", plays = Date(timeIntervalSinceReferenceDate: 778_000_000) }
        struct DecimalAsText: Codable { var code = "a", title = Decimal(5) }
        let bed = try TestBed(kind)
        let container = try await bed.container(model: Songs.model)
        let worker = await container.newBackgroundContext()
        await worker.perform { context in
            func message<V: Decodable>(_ value: V) -> String {
                do {
                    try context.insert(contentsOf: [value], into: "Song")
                    return "inserted"
                } catch { return "\(error)" }
            }
            #expect(message(DateAsNumber()).hasPrefix("cannot set Song.plays: it cannot store a value of type Date."))
            #expect(message(DecimalAsText()).hasPrefix("cannot set Song.title: it cannot store a value of type Decimal."))
        }
        try await container.close()
    }
}
