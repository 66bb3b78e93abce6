import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import TestSupport
import Testing

/// Migrations that are killed at some moment, and what the next open finds.
enum MigrationScript {
    static let count = 20_000

    /// Version 1: a number. Version 2: with an index on it. Version 3: a text made of it in a custom stage.
    static func model(_ version: Int) throws -> Model {
        let number = AttributeDescription(name: "number", type: .int64, index: version == 2 ? .indexed : .none)
        let text = AttributeDescription(name: "text", type: .string, index: .unique)
        let attributes = version == 3 ? [text, number] : [number]
        return try Model(
            [EntityDescription(name: "Thing", properties: attributes.map { .attribute($0) })], version: .init(version))
    }

    static func plan() throws -> MigrationPlan {
        // In two stages, so that there is a state between them.
        let between = try Model(
            [
                EntityDescription(
                    name: "Thing",
                    properties: [
                        .attribute(.init(name: "text", type: .string)), .attribute(.init(name: "number", type: .int64)),
                    ])
            ], version: .init(2, 5))
        return MigrationPlan([
            .custom(
                from: try model(1), to: between,
                didMigrate: { context in
                    for thing in try context.fetch(EntityFetchRequest("Thing")) {
                        guard case .int(let number) = thing["number"] else { continue }
                        thing["text"] = .string("text \(number)")
                    }
                }),
            .custom(from: between, to: try model(3)),
        ])
    }

    static func fill(_ file: URL) async throws {
        let container = try await PersistentContainer(model: try model(1), store: .lmdb(file))
        try await container.coordinator.insert(
            into: "Thing", ["number"], rows: (0..<count).lazy.map { [Value.int(Int64($0))] })
    }

    private static func killLater(_ microseconds: Int) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { kill(getpid(), SIGKILL) }
    }

    static func buildIndex(_ file: URL, killAfter: Int) async throws {
        killLater(killAfter)
        let container = try await PersistentContainer(model: try model(2), store: .lmdb(file))
        try await container.coordinator.finishMigration()
        while true { try await Task.sleep(for: .seconds(1)) }
    }

    static func migrate(_ file: URL, killAfter: Int) async throws {
        killLater(killAfter)
        let container = try await PersistentContainer(model: try model(3), store: .lmdb(file), migrationPlan: try plan())
        while true {
            try await Task.sleep(for: .seconds(1))
            withExtendedLifetime(container) {}
        }
    }
}

@Suite(.serialized) struct MigrationKillTests {
    @Test func S163_aKilledIndexBuildGoesOnWithTheNextOpen() async throws {
        for round in 0..<Rounds.of(3, long: 40) {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await MigrationScript.fill(file)
            let delay = 15_000 + (round * 7_919) % 60_000
            await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, delay = delay as Int] in
                try await MigrationScript.buildIndex(file, killAfter: delay)
            }
            let container = try await PersistentContainer(model: try MigrationScript.model(2), store: .lmdb(file))
            try await container.coordinator.finishMigration()
            let request = EntityFetchRequest("Thing", matching: .equal("number", .int(777)))
            let (found, plan) = try await container.newBatchOperationContext().perform { context in
                (try context.count(request), try context.explain(request))
            }
            #expect(found == 1)
            #expect(plan.contains("index on number"))
            let findings = try container.coordinator.store.verify()
            #expect(findings == [])
        }
    }

    @Test func S164_aKilledCustomMigrationLeavesTheOldFileOrTheNewOne() async throws {
        for round in 0..<Rounds.of(4, long: 40) {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await MigrationScript.fill(file)
            let delay = 20_000 + round * (round < 4 ? 250_000 : 13_000)
            await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, delay = delay as Int] in
                try await MigrationScript.migrate(file, killAfter: delay)
            }
            let found = try #require(try StoreDescription.lmdb(file).migration?.storedSchema())
            #expect([1, 3].contains(found.version.major), "never a state between")
            let container = try await PersistentContainer(
                model: try MigrationScript.model(3), store: .lmdb(file), migrationPlan: try MigrationScript.plan())
            try await container.coordinator.finishMigration()
            let wrong = try await container.newBatchOperationContext().perform { context in
                let things = try context.fetch(EntityFetchRequest("Thing"))
                return (things.count - MigrationScript.count)
                    + things.filter { thing in
                        guard case .int(let number) = thing["number"] else { return true }
                        return thing["text"] != .string("text \(number)")
                    }.count
            }
            #expect(wrong == 0)
            let findings = try container.coordinator.store.verify()
            #expect(findings == [])
        }
    }
}
