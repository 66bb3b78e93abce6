import Dispatch
internal import Platform
import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A check that the present model opens the files of released versions (S203).
///
/// Keep a file of each released version with the tests. The check copies each file, opens the copy with the present model and plan, and
/// verifies it. The files themselves are only read.
///
/// ```swift
/// let history = ModelHistory(model: models.v3, migrationPlan: plan) { .lmdb($0) }
/// for report in try await history.check(fixtures: fixtures) {
///     assert(report.objectsAfter["Track"] == report.objectsBefore["Track"], "\(report)")
/// }
/// ```
public struct ModelHistory: Sendable {
    /// The result for one file.
    public struct FixtureReport: Sendable {
        /// The file.
        public var file: URL
        /// The changes that opening has made.
        public var changes: ModelChanges
        /// The activities of the migration in their order, such as `the change from 1.0.0 to 2.0.0`. Empty unless a stage is custom.
        public var activities: [String]
        /// The number of objects of each entity of the file before the migration, by entity name. An entity includes the objects of those
        /// that inherit from it.
        public var objectsBefore: [String: Int]
        /// The number of objects of each entity of the model after the migration, by entity name, counted as ``objectsBefore``.
        public var objectsAfter: [String: Int]
    }

    /// The model of the program.
    public let model: Model
    /// The stages of the migration; nil without a plan.
    public let migrationPlan: MigrationPlan?
    /// The names of entities and properties whose values may be dropped.
    public let allowsDataLoss: Set<String>
    private let store: @Sendable (URL) -> StoreDescription

    /// Creates a check with the arguments that the program opens its container with.
    /// - Parameters:
    ///   - model: The model of the program.
    ///   - migrationPlan: The stages of the migration.
    ///   - allowsDataLoss: The names of entities and properties whose values may be dropped.
    ///   - store: A closure that describes the store in a file.
    public init(
        model: Model, migrationPlan: MigrationPlan? = nil, allowsDataLoss: Set<String> = [],
        store: @escaping @Sendable (URL) -> StoreDescription
    ) {
        self.model = model
        self.migrationPlan = migrationPlan
        self.allowsDataLoss = allowsDataLoss
        self.store = store
    }

    /// Checks each file in a folder, by name. Hidden files, folders and the files that stores have beside theirs are left out.
    ///
    /// - Throws: The errors of ``check(fixtures:)-([URL])``, and those of reading the folder. An empty folder is an error, because a check
    ///   of nothing would pass.
    public func check(fixtures folder: URL) async throws -> [FixtureReport] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        let files = names.filter { name in
            !name.hasPrefix(".") && !["-lock", "-signal", "-wal", "-shm", "-journal"].contains(where: name.hasSuffix)
        }.map { folder.appendingPathComponent($0) }.filter { file in
            (try? FileManager.default.attributesOfItem(atPath: file.path)[.type] as? FileAttributeType) == .typeRegular
        }
        guard !files.isEmpty else {
            throw StoreError(
                .cannotOpen, "cannot check the files of \(folder.path): there are none. Add a file of each released version")
        }
        return try await check(fixtures: files)
    }

    /// Checks files in their order.
    ///
    /// - Throws: ``FixtureError`` for the first file that does not open, or that is not consistent afterwards.
    public func check(fixtures files: [URL]) async throws -> [FixtureReport] {
        var reports: [FixtureReport] = []
        for file in files {
            do { reports.append(try await check(file)) } catch { throw FixtureError(file: file, error: error) }
        }
        return reports
    }

    private func check(_ file: URL) async throws -> FixtureReport {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-fixture-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let copy = folder.appendingPathComponent(file.lastPathComponent)
        try FileManager.default.copyItem(atPath: file.path, toPath: copy.path)
        // A database that was not closed has a part of its content in its log.
        if FileManager.default.fileExists(atPath: file.path + "-wal") {
            try FileManager.default.copyItem(atPath: file.path + "-wal", toPath: copy.path + "-wal")
        }
        let description = store(copy)
        let before = try await DispatchQueue.blocking { try Self.counts(description) }
        let changes = try await model.changes(
            opening: description, migrationPlan: migrationPlan, allowsDataLoss: allowsDataLoss)
        let activities = Mutex<[String]>([])
        let container = try await PersistentContainer(
            model: model, store: description, migrationPlan: migrationPlan, allowsDataLoss: allowsDataLoss,
            progress: { progress in activities.withLock { $0.append(progress.activity) } })
        do {
            try await container.coordinator.finishMigration()
            let findings = try await container.coordinator.verify()
            guard findings.isEmpty else {
                throw StoreError(
                    .damaged, "the migrated copy is not consistent: \(findings.map(\.description).joined(separator: "; "))")
            }
            let after = try await container.coordinator.newBackgroundContext().perform { [model] context in
                Dictionary(
                    uniqueKeysWithValues: try (model.entities + model.subentities).map { entity in
                        (entity.name, try context.count(EntityFetchRequest(entity.name)))
                    })
            }
            try await container.close()
            return FixtureReport(
                file: file, changes: changes, activities: activities.withLock { $0 }, objectsBefore: before, objectsAfter: after)
        } catch {
            try? await container.close()
            throw error
        }
    }

    /// Returns the number of objects per entity of the file.
    private static func counts(_ store: StoreDescription) throws -> [String: Int] {
        guard let schema = try store.storedSchema?() else {
            throw StoreError(
                .notAStore, "the file has no schema, so it is no store of this kind. Remove it from the files to check")
        }
        var counts: [String: Int] = [:]
        let opened = try store.open(schema)
        try withExtendedLifetime(opened) {
            let snapshot = try opened.snapshot()
            for (number, entity) in schema.entities.enumerated(as: EntityIndex.self) where !entity.isOrder {
                counts[entity.name] = try snapshot.count(.objects(entity: number))
                guard let column = entity.typeColumn else { continue }
                for subentity in entity.subentities {
                    counts[subentity.name] = try entity.types(ofSubentity: subentity.name).reduce(0) { sum, type in
                        try sum + snapshot.count(.objectsOfType(entity: number, column: column, type: type))
                    }
                }
            }
        }
        return counts
    }
}

/// The error of one file of a ``ModelHistory``.
///
/// ```swift
/// do {
///     _ = try await history.check(fixtures: folder)
/// } catch let error as FixtureError {
///     print(error.file.lastPathComponent, error.error)
/// }
/// ```
public struct FixtureError: Error, Sendable, CustomStringConvertible {
    /// The file that does not open, or is not consistent afterwards.
    public let file: URL
    /// The error of opening or verifying the copy.
    public let error: any Error

    /// The file and the error, as one line.
    public var description: String { "the file \(file.path) does not pass the check of models: \(error)" }
}

extension ModelHistory.FixtureReport: CustomStringConvertible {
    /// The file, its version, the changes, and the numbers of objects that differ afterwards.
    public var description: String {
        let names = Set(objectsBefore.keys).union(objectsAfter.keys).sorted()
        let moved = names.filter { objectsBefore[$0] != objectsAfter[$0] }.map { name in
            "\(name) \(objectsBefore[name].map(String.init) ?? "new") → \(objectsAfter[name].map(String.init) ?? "gone")"
        }
        let objects = moved.isEmpty ? "" : "; objects: \(moved.joined(separator: ", "))"
        let version = changes.fileVersion.map { " (version \($0))" } ?? ""
        return "\(file.lastPathComponent)\(version): \(changes)\(objects)"
    }
}
