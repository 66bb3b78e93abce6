import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Two processes with two versions of a model on one file. This process has the old model open when the other brings the new
/// one (S163, S164).
@Suite struct TwoModelsTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    private static func model(_ version: Int) throws -> Model {
        let name = AttributeDescription(
            name: version == 1 ? "name" : "title", type: .string, index: version == 1 ? .indexed : .none,
            renamedFrom: version == 1 ? nil : "name")
        let rating = AttributeDescription(name: "rating", type: .int32, index: .indexed, defaultValue: .int(3))
        let attributes = version == 1 ? [name] : [rating, name]
        return try Model(
            [EntityDescription(name: "Thing", properties: attributes.map { .attribute($0) })], version: .init(version))
    }

    /// Opens with the new model in another process, changes each object and adds one.
    private static func migrate(_ bed: TestBed) async {
        await #expect(processExitsWith: .success) { [path = bed.file.path as String, kind = bed.kind.rawValue as String] in
            let url = URL(fileURLWithPath: path)
            let container = try await PersistentContainer(
                model: try TwoModelsTests.model(2), store: kind == "lmdb" ? .lmdb(url) : .sqlite(url))
            try await container.coordinator.finishMigration()
            let worker = container.newBatchOperationContext()
            try await worker.perform { context in
                for thing in try context.fetch(EntityFetchRequest("Thing")) { thing["rating"] = .int(5) }
                let new = context.insert("Thing")
                new["title"] = .string("new")
            }
            try await worker.save(.durable)
        }
    }

    private static func names(_ context: ManagedObjectContext, _ attribute: String) throws -> [String] {
        try context.fetch(EntityFetchRequest("Thing")).compactMap { thing in
            if case .string(let text) = thing[attribute] { text } else { nil }
        }
    }

    @Test(arguments: kinds) func S164_whoHasTheOldModelOpenIsToldAndLosesNothing(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let things = (0..<200).map { "thing \($0)" }
        do {
            let container = try await bed.container(model: try Self.model(1))
            try await container.coordinator.insert(into: "Thing", ["name"], rows: things.map { [.string($0)] })
            let worker = container.coordinator.newBackgroundContext()
            #expect(try await worker.perform { try Self.names($0, "name") } == things)
            await worker.perform { $0.insert("Thing")["name"] = .string("unsaved") }
            await Self.migrate(bed)
            for _ in 0..<2 {
                let error = await #expect(throws: StoreError.self) { try await worker.save(.durable) }
                #expect(error?.code == .schemaTooNew, "\(String(describing: error))")
                #expect(error?.message.contains("Open it again") == true, "\(String(describing: error))")
            }
            // The process does not adopt a state whose pages and indexes it would misread.
            let refusal = await #expect(throws: StoreError.self) { try await container.coordinator.refresh() }
            #expect(refusal?.code == .schemaTooNew, "\(String(describing: refusal))")
            let shown = try await worker.perform { context in (try Self.names(context, "name"), context.hasChanges) }
            #expect(shown.0 == things + ["unsaved"])
            #expect(shown.1)
            // A new context reads the same state, or throws an error with the reason.
            do {
                let one = try await container.newBatchOperationContext().perform { context in
                    try context.count(EntityFetchRequest("Thing", matching: .equal("name", .string("thing 5"))))
                }
                #expect(one == 1)
            } catch let error as StoreError { #expect(error.code == .schemaTooNew, "\(error)") }
            // A deferred save reports the error at the latest when it is to be written.
            let late = await #expect(throws: StoreError.self) {
                try await worker.save(.deferred)
                try await container.flush()
            }
            #expect(late?.code == .schemaTooNew, "\(String(describing: late))")
            #expect(try await worker.perform { try Self.names($0, "name") } == things + ["unsaved"])
        }
        try await bed.closed()
        let again = await #expect(throws: StoreError.self) { try await bed.container(model: try Self.model(1)) }
        #expect(again?.code == .schemaTooNew)
        let container = try await bed.container(model: try Self.model(2))
        let (titles, rated) = try await container.newBatchOperationContext().perform { context in
            (
                try Self.names(context, "title"),
                try context.count(EntityFetchRequest("Thing", matching: .equal("rating", .int(5))))
            )
        }
        #expect(titles.sorted() == (things + ["new"]).sorted())
        #expect(rated == 200)
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }
}
