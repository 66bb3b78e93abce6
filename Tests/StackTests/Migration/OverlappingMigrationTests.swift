import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Prices in whole units, which the second version counts in hundredths. A stage that ran twice would change them again.
private enum Prices {
    static func model(_ version: Int) throws -> Model {
        let added = ["note", "shop"].prefix(version - 1).map { AttributeDescription(name: $0, type: .string) }
        return try People.model(.init(version), [.init(name: "price", type: .int64)] + added)
    }

    static func plan(to version: Int = 2) throws -> MigrationPlan {
        let first = MigrationStage.custom(
            from: try model(1), to: try model(2),
            didMigrate: { context in
                for item in try context.fetch(EntityFetchRequest("Person")) {
                    guard case .int(let price) = item["price"] else { continue }
                    item["price"] = .int(price * 100)
                }
            })
        let second = MigrationStage.custom(from: try model(2), to: try model(3))
        return MigrationPlan(version == 2 ? [first] : [first, second])
    }

    /// Creates a file with one price, and closes it.
    static func fill(_ bed: TestBed, version: Int = 1, price: Int64 = 5, backup: URL? = nil) async throws {
        let container = try await bed.container(model: model(version))
        try await container.coordinator.insert(into: "Person", ["price"], rows: [[.int(price)]])
        if let backup { try await container.coordinator.backup(to: backup) }
        try await container.close()
        try await bed.closed()
    }

    static func all(_ container: PersistentContainer) async throws -> [Value] {
        try await container.newBatchOperationContext().perform { context in
            try context.fetch(EntityFetchRequest("Person", sortBy: [AttributeSort("price")])).map { $0["price"] }
        }
    }
}

/// Migrations of one file that begin at the same time (S164).
@Suite struct OverlappingMigrationTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    /// Another opening of the file, at the moment when the first one has chosen its stages and not yet copied the file.
    private final class Rival: Sendable {
        private let bed: TestBed
        private let closes: Bool
        private let outcome = Mutex<Result<PersistentContainer, any Error>?>(nil)
        private let activities = Mutex<[String]>([])

        init(_ bed: TestBed, closes: Bool) { (self.bed, self.closes) = (bed, closes) }

        /// The result of the opening; nil if it did not happen.
        var container: PersistentContainer? { get throws { try outcome.withLock { $0 }?.get() } }

        /// The steps of the first opening.
        var seen: [String] { activities.withLock { $0 } }

        func note(_ step: MigrationProgress) {
            activities.withLock { $0.append(step.activity) }
            guard step.completed == 0, outcome.withLock({ $0 == nil }) else { return }
            let made = Result { try migrate() }
            outcome.withLock { $0 = made }
        }

        private func migrate() throws -> PersistentContainer {
            let container = try PersistentContainer(
                openingSynchronously: try Prices.model(2), store: bed.description, migrationPlan: try Prices.plan())
            let context = container.makeConfinedContext()
            context.insert("Person")["price"] = .int(7)
            try context.saveNow(.durable)
            if closes { try close(container) }
            return container
        }

        /// Closes the container, and blocks the calling thread, which runs no tasks.
        private func close(_ container: PersistentContainer) throws {
            let closed = Flag()
            let closing = Task {
                defer { closed.set() }
                try await container.close()
            }
            guard closed.wait(atMost: .seconds(600)) else {
                closing.cancel()
                throw CancellationError()
            }
        }
    }

    /// Catches: a stage that runs on the objects of a file that it has already changed, and a failure although the file is migrated.
    @Test(arguments: kinds, [false, true])
    func `S164: a stage does not run again on a file that another opening migrates before it is copied`(
        _ kind: StoreKind, _ closes: Bool
    ) async throws {
        let bed = try TestBed(kind)
        try await Prices.fill(bed)
        let rival = Rival(bed, closes: closes)
        let container = try await onThread {
            try PersistentContainer(
                openingSynchronously: try Prices.model(2), store: bed.description, migrationPlan: try Prices.plan(),
                progress: { rival.note($0) })
        }
        let other = try #require(try rival.container)
        #expect(rival.seen == ["copying the file"])
        #expect(try await Prices.all(container) == [.int(7), .int(500)])
        try await container.coordinator.insert(into: "Person", ["price"], rows: [[.int(9)]])
        #expect(try container.coordinator.store.verify() == [])
        if !closes { #expect(try await Prices.all(other) == [.int(7), .int(9), .int(500)]) }
        try await container.close()
        try await other.close()
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains(".partial-") }
        #expect(left == [])
    }

    /// The same for an opening that is awaited.
    @Test(arguments: kinds)
    func `S164: an awaited opening does not run a stage again on a file that is migrated before it is copied`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Prices.fill(bed)
        let rival = Rival(bed, closes: false)
        let container = try await PersistentContainer(
            model: try Prices.model(2), store: bed.description, migrationPlan: try Prices.plan(), progress: { rival.note($0) })
        let other = try #require(try rival.container)
        #expect(try await Prices.all(container) == [.int(7), .int(500)])
        try await container.close()
        try await other.close()
    }

    /// Catches: a migration without end, and one that runs the stages of another model.
    @Test(arguments: kinds)
    func `S164: a file whose model changes before each copy is not migrated, and stays as it is`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let backups = ["first", "second"].map { bed.folder.appendingPathComponent($0) }
        try await Prices.fill(bed, backup: backups[0])
        try await Prices.fill(try TestBed(kind), version: 2, price: 800, backup: backups[1])
        let file = try #require(bed.description.migration)
        let restored = Mutex<(count: Int, failure: (any Error)?)>((0, nil))
        let progress: @Sendable (MigrationProgress) -> Void = { step in
            guard step.completed == 0 else { return }
            let next = restored.withLock { restored in
                restored.count += 1
                return backups[restored.count % 2]
            }
            do { try file.restore(from: next, cancellation: Cancellation()) } catch {
                restored.withLock { $0.failure = error }
            }
        }
        let error = await #expect(throws: StoreError.self) {
            _ = try await PersistentContainer(
                model: try Prices.model(3), store: bed.description, migrationPlan: try Prices.plan(to: 3), progress: progress)
        }
        #expect(
            error?.code == .inUseElsewhere && error?.message.contains("another model") == true, "\(String(describing: error))")
        let (count, failure) = restored.withLock { ($0.count, $0.failure) }
        #expect(failure == nil, "\(String(describing: failure))")
        #expect(count > 1)
        let left = try FileManager.default.contentsOfDirectory(atPath: bed.folder.path).filter { $0.contains(".partial-") }
        #expect(left == [])
        let container = try await PersistentContainer(
            model: try Prices.model(3), store: bed.description, migrationPlan: try Prices.plan(to: 3))
        #expect(try await Prices.all(container) == [.int(count % 2 == 0 ? 500 : 800)])
        try await container.close()
    }
}
