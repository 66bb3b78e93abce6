import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Migrations on a full disk. Each runs in a process of its own, whose files may grow only up to a limit.
@Suite struct FullDiskMigrationTests {
    private static func limit(_ bytes: Int) throws {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit(rlim_cur: rlim_t(bytes), rlim_max: rlim_t(1 << 30))
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
    }

    private static func byteCount(_ file: URL) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int)
    }

    @Test func S163_anIndexBuildThatStoppedForWantOfRoomGoesOnWhenAskedAgain() async throws {
        let bed = try TestBed(.lmdb)
        let file = bed.file
        try await MigrationScript.fill(file)
        await #expect(processExitsWith: .success) { [file = file as URL] in
            try FullDiskMigrationTests.limit(try FullDiskMigrationTests.byteCount(file) + 1 << 16)
            let container = try await PersistentContainer(model: try MigrationScript.model(2), store: .lmdb(file))
            let coordinator = container.coordinator
            let error = await #expect(throws: StoreError.self) { try await coordinator.finishMigration() }
            try #require(error?.code == .full, "\(String(describing: error))")
            try #require(error?.message.contains("Make room") == true)
            // Meanwhile a scan answers the request, and objects can be deleted.
            let request = EntityFetchRequest("Thing", matching: .equal("number", .int(777)))
            let worker = coordinator.newBackgroundContext()
            let found = try await worker.perform { context in
                let found = try context.fetch(request)
                for thing in found { context.delete(thing) }
                return found.count
            }
            try #require(found == 1)
            try await worker.save(.durable)
            try FullDiskMigrationTests.limit(1 << 28)
            try await coordinator.finishMigration()
            let (left, plan) = try await container.newBatchOperationContext().perform { context in
                (try context.count(request), try context.explain(request))
            }
            try #require(left == 0)
            try #require(plan.contains("index on number"), "\(plan)")
            try #require(try coordinator.store.verify() == [])
        }
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func S164_aStagedMigrationWithoutRoomLeavesTheFileAsItWas(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let file = bed.file
        try await MigrationScript.fill(file, kind)
        await #expect(processExitsWith: .success) { [file = file as URL, kind = kind.rawValue as String] in
            let store = kind == "lmdb" ? StoreDescription.lmdb(file) : .sqlite(file)
            let size = try FullDiskMigrationTests.byteCount(file)
            // First no room for the copy, then room for the copy but not for the writes of the stages, then enough room.
            for limit in [size / 2, size * 5 / 4] {
                try FullDiskMigrationTests.limit(limit)
                do {
                    _ = try await PersistentContainer(
                        model: try MigrationScript.model(3), store: store, migrationPlan: try MigrationScript.plan())
                    Issue.record("it went through with \(limit) bytes")
                } catch let error as StoreError {
                    try #require(error.code == .full, "\(error)")
                    try #require(error.message.contains("room") || error.message.contains("Make"), "\(error)")
                }
                let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
                try #require(!names.contains { $0.contains(".partial-") }, "\(names)")
                let found = try store.migration?.storedSchema()
                try #require(found?.version.major == 1)
            }
            try FullDiskMigrationTests.limit(1 << 30)
            let container = try await PersistentContainer(
                model: try MigrationScript.model(3), store: store, migrationPlan: try MigrationScript.plan())
            try await container.coordinator.finishMigration()
            let request = EntityFetchRequest("Thing", matching: .equal("text", .string("text 5")))
            try #require(try await container.newBatchOperationContext().perform { try $0.count(request) } == 1)
            try #require(try container.coordinator.store.verify() == [])
        }
    }
}
