import CoreMetrics
import Foundation
import LMDBStore
import ObjectGraph
import StoreInterface
import StoreModel
import Tracing

/// The code of the pages in `Docs` and of the article on measuring, compiled, unless other examples have it. The
/// architecture tests compare both.
@MainActor private enum PageExamples {
    static func backingUp(_ container: PersistentContainer, to backupURL: URL, _ url: URL) async throws -> HistoryToken {
        // Docs/Backup.md
        let token = try await container.coordinator.backup(to: backupURL, existing: .replace)
        // end
        // Docs/Backup.md
        try await PersistentContainer.restore(.lmdb(url), from: backupURL)
        // end
        return token
    }

    static func telemetry(_ tracer: any Tracer, _ metrics: any MetricsFactory, _ file: URL) async throws {
        // Docs/Telemetry.md
        InstrumentationSystem.bootstrap(tracer)
        MetricsSystem.bootstrap(metrics)
        let container = try await PersistentContainer(for: Track.self, store: .lmdb(file))
        // end
        print(container.stack)
    }

    static func reporting(_ tracer: any Tracer, _ metrics: any MetricsFactory, _ file: URL) async throws {
        // Sources/ObjectGraph/ObjectGraph.docc/MeasuringWork.md
        InstrumentationSystem.bootstrap(tracer)
        MetricsSystem.bootstrap(metrics)
        let container = try await PersistentContainer(for: Track.self, store: .lmdb(file))
        // end
        print(container.stack)
    }

    static func measuring(_ tracer: any Tracer, _ metrics: any MetricsFactory, _ file: URL) async throws {
        // Sources/ObjectGraph/ObjectGraph.docc/MeasuringWork.md
        let container = try await PersistentContainer(
            model: Model(Track.self, Album.self), store: .lmdb(file),
            telemetry: Telemetry(tracer: tracer, metrics: metrics, dimensions: [("store", "library")]))
        // end
        // Sources/ObjectGraph/ObjectGraph.docc/MeasuringWork.md
        container.logFetches(slowerThan: .milliseconds(50))
        // The fetches to be measured run here.
        container.logFetches(slowerThan: nil)
        // end
    }

    struct Window {
        var undoManager: UndoRegistrar?
    }

    static func registering(_ history: UndoHistory, with window: Window, _ show: @escaping (any Error) -> Void) {
        // Docs/Undo.md
        if let manager = window.undoManager {
            history.register(with: manager) { error in show(error) }
        }
        // end
    }

    static func validating(_ context: ManagedObjectContext, _ track: Track) async throws {
        // Docs/Validation.md
        do {
            try await context.save()
        } catch SaveError.validation(let errors) {
            for (id, error) in errors { print(id, error) }
            for violation in errors.ruleViolations { print(violation.message) }
        }
        // end
        // Docs/Validation.md
        for error in track.validationErrors() { print(error) }
        do { try track.validate(\.title) } catch { print(error) }
        // end
    }

    static func migrating(_ models: (v1: Model, v2: Model)) -> [MigrationStage] {
        [
            // Docs/Validation.md
            .custom(
                from: models.v1, to: models.v2,
                didMigrate: { context in
                    for case let id? in try context.validationReport(limit: .max).violations.map(\.objectID) {
                        try context.existingObject(with: id)["title"] = "untitled"
                    }
                    try context.validationReport().requireValid()
                })
            // end
        ]
    }
}
