import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Opens the file with one newer model after the other until killed. Each open is a lightweight migration, with an index to
/// build and an index to drop.
enum SchemaScript {
    static let count = 3_000

    /// Creates version n of the model: a number with an index in odd versions, an attribute of this version only, and a text
    /// that is renamed each time.
    static func model(_ version: Int) throws -> Model {
        try Model(
            [
                EntityDescription(
                    name: "Thing",
                    properties: [
                        .attribute(.init(name: "number", type: .int64, index: version % 2 == 1 ? .indexed : .none)),
                        .attribute(
                            .init(name: "new\(version)", type: .int32, index: .indexed, defaultValue: .int(Int64(version)))),
                        .attribute(.init(name: "text\(version)", type: .string, renamedFrom: "text\(version - 1)")),
                    ])
            ], version: .init(version))
    }

    static func fill(_ file: URL) async throws {
        let container = try await PersistentContainer(model: try model(1), store: .lmdb(file))
        try await container.coordinator.insert(
            into: "Thing", ["number", "text1"], rows: (0..<count).lazy.map { [.int(Int64($0)), .string("thing \($0)")] })
        try await container.coordinator.finishMigration()
        // A container that is only released closes its file later. Until then, this process would know the first model only.
        try await container.close()
    }

    /// - Parameter first: The version before whose open the time begins.
    static func run(_ file: URL, killAfter: Int, from first: Int) async throws {
        for version in 2..<1_000 {
            if version == first {
                DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(killAfter)) { kill(getpid(), SIGKILL) }
            }
            let container = try await PersistentContainer(
                model: try model(version), store: .lmdb(file), allowsDataLoss: ["Thing.new\(version - 1)"])
            // Every other index is left half built for the next version.
            if version % 2 == 0 { try await container.coordinator.finishMigration() }
            try await container.close()
        }
    }

    static func check(_ file: URL) async throws -> Int {
        let found = try #require(try StoreDescription.lmdb(file).migration?.storedSchema())
        let version = found.version.major
        for version in [version, version + 1] {
            let container = try await PersistentContainer(
                model: try model(version), store: .lmdb(file), allowsDataLoss: ["Thing.new\(version - 1)"])
            try await container.coordinator.finishMigration()
            let findings = try container.coordinator.store.verify()
            #expect(findings == [])
            let request = EntityFetchRequest("Thing", matching: .equal("new\(version)", .int(Int64(version))))
            let (wrong, same, plan) = try await container.newBatchOperationContext().perform { context in
                let things = try context.fetch(EntityFetchRequest("Thing"))
                let wrong = things.filter { thing in
                    guard case .int(let number) = thing["number"] else { return true }
                    return thing["text\(version)"] != .string("thing \(number)")
                }
                return (wrong.count + abs(things.count - count), try context.count(request), try context.explain(request))
            }
            #expect(wrong == 0)
            #expect(same == count)
            #expect(!plan.isEmpty)
            try await container.close()
        }
        return version
    }
}

@Suite(.serialized) struct SchemaKillTests {
    @Test func S163_aKilledOpenWithAChangedModelLeavesTheOldModelOrTheNewOneAndAllObjects() async throws {
        var versions: [Int] = []
        for round in 0..<Rounds.of(4, long: 60) {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await SchemaScript.fill(file)
            let delay = 15_000 + (round * 31_337) % 120_000
            // In every other round some migrations come first, however slow the machine is.
            let first = round % 2 == 0 ? 2 : 4
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [file = file as URL, delay = delay as Int, first = first as Int] in
                try await SchemaScript.run(file, killAfter: delay, from: first)
            }
            versions.append(try await SchemaScript.check(file))
        }
        #expect(versions.contains { $0 > 1 }, "\(versions)")
    }
}
