import CoreMetrics
import Foundation
import LMDBStore
import MemoryStore
import ObjectGraph
import StoreFiles
import StoreInterface
import StoreModel
import Tracing

/// The examples in the documentation comments of coordinators and stores, compiled. The architecture tests compare both.
@MainActor private enum StoreExamples {
    static func batches(_ container: PersistentContainer, _ titles: [String]) async throws {
        // Sources/ObjectGraph/Coordination/PersistentStoreCoordinator.swift
        let unplayed = FetchRequest<Track>(where: #Predicate { $0.playCount == 0 })
        let result = try await container.coordinator.batchDelete(unplayed)
        try await container.coordinator.compact()
        // end
        // Sources/ObjectGraph/Coordination/Batches/BatchRequest.swift
        print("\(result.deletedCount) tracks were deleted in \(result.changes.count) saves")
        // end
        // Sources/ObjectGraph/Coordination/Batches/BatchRequest.swift
        var options = BatchOptions()
        options.author = "importer"
        options.rowsPerSave = 1_000
        // end
        // Sources/ObjectGraph/Coordination/Batches/BatchRequest.swift
        try await container.coordinator.insert(
            into: "Track", ["title"], rows: titles.map { [.string($0)] }, rule: .update(on: ["title"]), options: options)
        // end
    }

    static func storedModels(_ file: URL) async throws {
        // Sources/ObjectGraph/Model/Model+Stored.swift
        let store = StoreDescription.lmdb(file, readOnly: true)
        let container = try await PersistentContainer(model: Model(storedIn: store), store: store)
        let count = try await container.read { try $0.count(EntityFetchRequest("Track")) }
        // end
        print(count)
        // Sources/StoreModel/Stores/TableSize.swift
        for table in try await container.coordinator.tableSizes() { print(table.name, table.bytes) }
        // end
    }

    static func telemetry(_ tracer: any Tracer, _ metrics: any MetricsFactory, _ file: URL) async throws {
        // Sources/ObjectGraph/Telemetry/Telemetry.swift
        InstrumentationSystem.bootstrap(tracer)
        MetricsSystem.bootstrap(metrics)
        let container = try await PersistentContainer(for: Track.self, Album.self, store: .lmdb(file))
        // end
        print(container.stack)
    }

    static func snapshots(_ container: PersistentContainer) async throws {
        // Sources/ObjectGraph/Coordination/Snapshots/StoreState.swift
        let before = try container.coordinator.snapshot(owner: "report")
        let report = container.coordinator.newBackgroundContext(reading: before)
        let count = try await report.perform { try $0.count(FetchRequest<Track>()) }
        // end
        print(count)
        // Sources/ObjectGraph/Coordination/Snapshots/LiveSnapshot.swift
        for snapshot in try container.coordinator.snapshots() where !snapshot.isNewest { print(snapshot) }
        // end
        // Sources/ObjectGraph/Coordination/Snapshots/LiveSnapshot.swift
        container.coordinator.snapshotBudget = SnapshotBudget(maximumAge: .seconds(60), responses: .advanceCleanContexts)
        // end
        var bytes: [UInt8] = []
        // Sources/ObjectGraph/Coordination/Maintenance/BackupBytes.swift
        for try await part in try await container.coordinator.backupBytes() { bytes += part }
        // end
        print(bytes.count)
        // Sources/ObjectGraph/Coordination/Maintenance/PersistentStoreCoordinator+Verification.swift
        for finding in try await container.coordinator.verify() { log(finding.description) }
        // end
        // Sources/StoreModel/Stores/Compaction.swift
        try await container.compact(CompactionOptions(age: .any, effort: .fast)) { progress in
            print("\(Int(progress.fraction * 100)) %")
        }
        // end
    }

    static func history(_ container: PersistentContainer, _ last: HistoryToken?, _ file: URL) async throws {
        var token = last
        // Sources/ObjectGraph/History/HistoryToken.swift
        let request = HistoryRequest(after: token, excludingAuthors: ["importer"], entities: ["Track"])
        for transaction in try await container.coordinator.history(request) {
            print(transaction.changes.count)
            token = transaction.token
        }
        // end
        // Sources/ObjectGraph/History/HistoryToken.swift
        try JSONEncoder().encode(container.coordinator.currentHistoryToken).write(to: file)
        let stored = try JSONDecoder().decode(HistoryToken.self, from: Data(contentsOf: file))
        // end
        // Sources/ObjectGraph/History/HistoryToken.swift
        do {
            _ = try await container.coordinator.history(HistoryRequest(after: stored))
        } catch HistoryError.tokenExpired {
            token = container.coordinator.currentHistoryToken  // then read the objects again
        }
        // end
        // Sources/ObjectGraph/Fetching/Requests/SlowFetchLog.swift
        container.logFetches(slowerThan: .milliseconds(50))
        // end
        // Sources/ObjectGraph/History/HistoryTransaction.swift
        for transaction in try await container.coordinator.history() {
            print(transaction.date, transaction.author ?? "unknown")
        }
        // end
        for transaction in try await container.coordinator.history() {
            // Sources/ObjectGraph/History/HistoryTransaction.swift
            for change in transaction.changes where change.kind == .delete {
                print(change.objectID, change.tombstone["isrc"] ?? .null)
            }
            // end
        }
    }

    private static func history(of file: URL, _ model: Model, _ plan: MigrationPlan) async throws {
        let models = (v3: model, fixtures: file)
        let fixtures = models.fixtures
        // Sources/ObjectGraph/ModelHistory/ModelChanges.swift
        let changes = try await models.v3.changes(opening: .lmdb(file), migrationPlan: plan)
        for line in changes.lines { print(line) }
        if let refusal = changes.refusal { print(refusal) }
        // end
        // Sources/ObjectGraph/ModelHistory/ModelHistory.swift
        let history = ModelHistory(model: models.v3, migrationPlan: plan) { .lmdb($0) }
        for report in try await history.check(fixtures: fixtures) {
            assert(report.objectsAfter["Track"] == report.objectsBefore["Track"], "\(report)")
        }
        // end
    }

    static func opening(_ file: URL, _ models: (v1: Model, v2: Model, v3: Model), isPreview: Bool) async throws {
        // Sources/ObjectGraph/Stacks/MigrationPlan.swift
        let plan = MigrationPlan([
            .lightweight(from: models.v1, to: models.v2),
            .custom(
                from: models.v2, to: models.v3,
                didMigrate: { context in
                    for track in try context.fetch(EntityFetchRequest("Track")) { track["sortTitle"] = track["title"] }
                }),
        ])
        let container = try await PersistentContainer(model: models.v3, store: .lmdb(file), migrationPlan: plan)
        // end
        try await history(of: file, models.v3, plan)
        // Sources/StoreInterface/StoreDescription.swift
        let store: StoreDescription = isPreview ? .memory : .lmdb(file)
        // end
        print(store.name, container.stack)
    }

    static func largeData(_ track: ManagedObject, _ download: AsyncStream<Data>, _ folder: URL) async throws {
        // Sources/StoreFiles/LargeDataWriter.swift
        let writer = try LargeDataWriter(inFolder: folder)
        for await part in download { try writer.append(part) }
        track["recording"] = .data(try writer.finish())
        // end
    }

    private static func log(_ text: String) {}
}
