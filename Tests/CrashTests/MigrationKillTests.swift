import Dispatch
import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Migrations that are killed at some moment, and the state that the next open finds.
enum MigrationScript {
    static let count = 20_000

    /// Creates a version of the model. Version 1 has a number, version 2 has an index on it, and version 3 has a text that a
    /// custom stage computes from it.
    static func model(_ version: Int) throws -> Model {
        let number = AttributeDescription(name: "number", type: .int64, index: version == 2 ? .indexed : .none)
        let text = AttributeDescription(name: "text", type: .string, index: .unique)
        let attributes = version == 3 ? [text, number] : [number]
        return try Model(
            [EntityDescription(name: "Thing", properties: attributes.map { .attribute($0) })], version: .init(version))
    }

    static func plan() throws -> MigrationPlan {
        // There are two stages, so that there is a state between them.
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

    static func fill(_ file: URL, _ kind: StoreKind = .lmdb) async throws {
        let container = try await PersistentContainer(
            model: try model(1), store: kind == .sqlite ? .sqlite(file) : .lmdb(file))
        try await container.coordinator.insert(
            into: "Thing", ["number"], rows: (0..<count).lazy.map { [Value.int(Int64($0))] })
        // Another process opens the file next.
        try await container.close()
    }

    private static func killLater(_ microseconds: Int) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) { kill(getpid(), SIGKILL) }
    }

    /// Builds an index, and saves durably at the same time. Save n sets thing n to the number count + n.
    static func buildIndex(_ file: URL, killAfter: Int) async throws {
        let note = CrashScript.note(file.deletingLastPathComponent(), 0)
        _ = FileManager.default.createFile(atPath: note.path, contents: nil)
        let handle = try FileHandle(forWritingTo: note)
        let container = try await PersistentContainer(model: try model(2), store: .lmdb(file))
        killLater(killAfter)
        let worker = container.coordinator.newBackgroundContext()
        let ids = try await worker.perform { try $0.fetch(EntityFetchRequest("Thing")).map(\.objectID) }
        for save in 0..<count {
            // Saves are both before and behind the present place of the build.
            let number = (save * 7_919) % count
            await worker.perform { $0.object(with: ids[number])["number"] = .int(Int64(count + number)) }
            try await worker.save(.durable)
            try handle.write(contentsOf: Data("\(number)\n".utf8))
        }
        while true { try await Task.sleep(for: .seconds(1)) }
    }

    /// Checks that every durable save is there, and at most one more, and that objects are found through the index by their
    /// present values.
    static func checkBuilt(_ file: URL) async throws {
        let container = try await PersistentContainer(model: try model(2), store: .lmdb(file))
        try await container.coordinator.finishMigration()
        let noted = try String(contentsOf: CrashScript.note(file.deletingLastPathComponent(), 0), encoding: .utf8)
        let saved = noted.split(separator: "\n").compactMap { Int($0) }
        @Sendable func request(_ number: Int) -> EntityFetchRequest {
            EntityFetchRequest("Thing", matching: .equal("number", .int(Int64(number))))
        }
        let (old, new, changed, plan) = try await container.newBatchOperationContext().perform { context in
            let old = try saved.reduce(0) { $0 + (try context.count(request($1))) }
            let new = try saved.reduce(0) { $0 + (try context.count(request(count + $1))) }
            let changed = try context.fetch(EntityFetchRequest("Thing")).filter { thing in
                if case .int(let number) = thing["number"] { number >= Int64(count) } else { true }
            }
            return (old, new, changed.count, try context.explain(request(777)))
        }
        #expect(old == 0)
        #expect(new == saved.count)
        #expect([saved.count, saved.count + 1].contains(changed))
        #expect(plan.contains("index on number"))
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
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
        var unfinished = 0
        var delay = 20_000
        // Rounds are added until a kill has interrupted a build, however fast the machine is: a kill that comes too late comes earlier in
        // the next round.
        for round in 0..<200 where round < Rounds.of(3, long: 40) || unfinished == 0 {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await MigrationScript.fill(file)
            try await bed.closed()
            await #expect(processExitsWith: .signal(SIGKILL)) { [file = file as URL, delay = delay as Int] in
                try await MigrationScript.buildIndex(file, killAfter: delay)
            }
            // Reads from the file what the process left unfinished.
            let state = try LMDBStore.open(file, schema: try MigrationScript.model(2).storeSchema)
            if try state.continueMigration() != nil {
                unfinished += 1
                delay = 1_000 + (round * 7_919) % 40_000
            } else {
                delay /= 2
            }
            withExtendedLifetime(state) {}
            try await MigrationScript.checkBuilt(file)
        }
        #expect(unfinished > 0, "no kill met the building")
    }

    @Test func S164_aKilledCustomMigrationLeavesTheOldFileOrTheNewOne() async throws {
        for round in 0..<Rounds.of(3, long: 40) {
            let bed = try TestBed(.lmdb)
            let file = bed.file
            try await MigrationScript.fill(file)
            try await bed.closed()
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
