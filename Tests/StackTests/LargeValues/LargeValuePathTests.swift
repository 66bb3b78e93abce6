import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Values out of line, in operations that do not use one context only: batches, unique constraints, backups, migrations.
@Suite struct LargeValuePathTests {
    private static func model(_ version: Int = 1) throws -> Model {
        var properties: [PropertyDescription] = [
            .attribute(.init(name: "title", type: .string, isOptional: true, index: .unique)),
            .attribute(.init(name: "body", type: .data)),
            .attribute(.init(name: "views", type: .int64)),
        ]
        if version > 1 { properties.append(.attribute(.init(name: "length", type: .int64, defaultValue: .int(0)))) }
        return try Model([EntityDescription(name: "Note", properties: properties)], version: .init(version))
    }

    /// Returns data of some hundred bytes to some chunks.
    private static func body(_ number: Int) -> Data {
        Data((0..<(300 << (number % 10))).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761) >> 13 ^ number) })
    }

    /// Returns long titles that differ only at their ends.
    private static func title(_ number: Int) -> String { String(repeating: "a long way ", count: 9_000) + "\(number)" }

    private static func rows(_ numbers: Range<Int>) -> [[Value]] {
        numbers.map { [.string(title($0)), .data(body($0)), .int(Int64($0))] }
    }

    private static let properties = ["title", "body", "views"]

    /// Compares all notes with the values for their numbers.
    private static func check(_ container: PersistentContainer, _ numbers: some Collection<Int> & Sendable) async throws {
        let found = try await container.newBatchOperationContext().perform { context in
            try context.fetch(EntityFetchRequest("Note", sortBy: [.init("views")])).map { note -> Int in
                guard case .int(let number) = note["views"] else { return -1 }
                let isWhole =
                    note["title"] == .string(title(Int(number))) && note["body"] == .data(body(Int(number)))
                return isWhole ? Int(number) : -1
            }
        }
        #expect(found == Array(numbers))
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: StoreKind.allCases) func S137_batchesWriteKeepAndDeleteLargeValues(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.model())
        let coordinator = container.coordinator
        let first = try await coordinator.insert(into: "Note", Self.properties, rows: Self.rows(0..<16))
        try await Self.check(container, 0..<16)
        // Matches by a unique title of 99,000 bytes. Four titles are known, and four are new.
        let upsert = try await coordinator.insert(
            into: "Note", Self.properties, rows: Self.rows(12..<20), rule: .update(on: ["title"]))
        #expect(upsert.insertedCount == 4)
        #expect(Set(upsert.updatedIDs).isSubset(of: Set(first.insertedIDs)))
        try await Self.check(container, 0..<20)
        let one = EntityFetchRequest("Note", matching: .equal("body", .data(Self.body(7))))
        #expect(try await coordinator.batchUpdate(one, set: ["body": .data(Self.body(8))]).updatedCount == 1)
        #expect(try await coordinator.batchDelete(one).deletedCount == 0)
        let other = EntityFetchRequest("Note", matching: .equal("views", .int(7)))
        #expect(try await coordinator.batchDelete(other).deletedCount == 1)
        try await Self.check(container, (0..<7).map(\.self) + (8..<20).map(\.self))
    }

    @Test(arguments: StoreKind.allCases) func S108_uniqueLongStringsAreComparedToTheLastCharacter(_ kind: StoreKind) async throws
    {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.model())
        let worker = container.newBatchOperationContext()
        @Sendable func add(_ number: Int, _ context: ManagedObjectContext) {
            let note = context.insert("Note")
            note["title"] = .string(Self.title(number))
            note["body"] = .data(Self.body(number))
            note["views"] = .int(Int64(number))
        }
        await worker.perform { context in
            for number in 0..<3 { add(number, context) }
        }
        try await worker.save()
        await worker.perform { add(2, $0) }
        await #expect(throws: SaveError.self) { try await worker.save() }
        await worker.perform { $0.rollback() }
        try await Self.check(container, 0..<3)
    }

    /// Values beyond one transaction of LMDB are written ahead, whichever way they are saved.
    @Test func S065_S066_valuesBeyondOneTransactionAreSavedByEveryWayAndNotByAPreview() async throws {
        let bed = try TestBed(.lmdb, valueBytesOfTransaction: 1 << 18)
        let container = try await bed.container(model: try Self.model())
        try await container.coordinator.insert(into: "Note", Self.properties, rows: Self.rows(0..<20))
        try await Self.check(container, 0..<20)
        let worker = container.newBatchOperationContext()
        for save in 2..<5 {
            await worker.perform { context in
                for number in save * 10..<save * 10 + 10 {
                    let note = context.insert("Note")
                    (note["title"], note["body"]) = (.string(Self.title(number)), .data(Self.body(number)))
                    note["views"] = .int(Int64(number))
                }
            }
            let preview = await worker.previewSave()
            let inserted = preview.changes.insertedIDs(in: container.coordinator.store.identity)
            #expect(preview.failure == nil && inserted.count == 10)
            #expect(try container.coordinator.store.verify() == [])
            try await worker.save(through: .store, save == 4 ? .durable : .deferred(within: .seconds(60)))
        }
        try await Self.check(container, 0..<50)
        await worker.perform { context in
            let twin = context.insert("Note")
            (twin["title"], twin["body"]) = (.string(Self.title(3)), .data(Self.body(49)))
            twin["views"] = .int(100)
        }
        await #expect(throws: SaveError.self) { try await worker.save() }
        await worker.perform { $0.rollback() }
        try await Self.check(container, 0..<50)
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite]) func aBackupHasLargeValues(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await bed.container(model: try Self.model())
        try await container.coordinator.insert(into: "Note", Self.properties, rows: Self.rows(0..<20))
        let copy = bed.folder.appendingPathComponent("copy")
        try await container.coordinator.backup(to: copy)
        try await container.coordinator.batchDelete(EntityFetchRequest("Note"))
        let store: StoreDescription = kind == .lmdb ? .lmdb(copy) : .sqlite(copy)
        try await Self.check(try await PersistentContainer(model: try Self.model(), store: store), 0..<20)
        try await Self.check(container, [])
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite]) func S164_aStagedMigrationKeepsLargeValues(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        do {
            let container = try await bed.container(model: try Self.model())
            try await container.coordinator.insert(into: "Note", Self.properties, rows: Self.rows(0..<20))
        }
        try await bed.closed()
        let plan = MigrationPlan([
            .custom(
                from: try Self.model(1), to: try Self.model(2),
                didMigrate: { context in
                    for note in try context.fetch(EntityFetchRequest("Note")) {
                        if case .data(let body) = note["body"] { note["length"] = .int(Int64(body.count)) }
                    }
                })
        ])
        let container = try await PersistentContainer(
            model: try Self.model(2), store: bed.description, migrationPlan: plan)
        try await Self.check(container, 0..<20)
        let long = try await container.newBatchOperationContext().perform {
            try $0.count(EntityFetchRequest("Note", matching: .compare("length", .greater, to: .int(100_000))))
        }
        #expect(long == 2)
    }
}
