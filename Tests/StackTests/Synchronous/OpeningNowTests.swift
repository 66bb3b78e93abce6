import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

@Suite struct OpeningNowTests {
    @Test(arguments: Combination.all)
    func `a container that is opened synchronously is used as any other`(_ combination: Combination) async throws {
        let bed = try TestBed(combination.store)
        let container = try await onThread {
            try PersistentContainer(openingSynchronously: Music.model, store: bed.description, stack: combination.stack)
        }
        let batch = container.newBatchOperationContext()
        try await batch.perform(andSave: .durable) { _ = $0.makeTrack("batch") }
        // The main context is created now, and the master context with it.
        #expect(try await MainActor.run { try container.mainContext.trackTitles() } == ["batch"])
        await MainActor.run { _ = container.mainContext.makeTrack("main") }
        try await container.saveMain()
        let titles = try await batch.perform { context in
            context.refreshAllObjects()
            return try context.trackTitles()
        }
        #expect(titles == ["batch", "main"])
        let worker = await container.makeBackgroundContext()
        #expect(try await worker.perform { try $0.trackTitles().contains("main") })
        try await container.close()
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `opening synchronously on the main actor runs the stages of a plan`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 1)
        let titles = try await MainActor.run {
            let container = try PersistentContainer(
                openingSynchronously: try People.third(), store: bed.description, migrationPlan: try People.plan())
            return try container.mainContext.fetch(EntityFetchRequest("Person")).map { [$0["given"], $0["family"], $0["zip"]] }
        }
        #expect(titles == [["G0", "F0", "D-0"]])
    }

    /// Catches: a call that is not asynchronous and fails because the task around it was cancelled, such as that of a closed view.
    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `S164: opening synchronously runs the stages of a plan in a cancelled task, too`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 1)
        let task = Task { @MainActor in
            withUnsafeCurrentTask { $0?.cancel() }
            return try PersistentContainer(
                openingSynchronously: try People.third(), store: bed.description, migrationPlan: try People.plan())
        }
        let container = try await task.value
        #expect(try await People.isMigrated(container, 1))
    }

    @Test(arguments: [StoreKind.lmdb, .sqlite])
    func `opening synchronously fails with the errors of opening`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await People.fill(bed, 1)
        let asynchronous = await #expect(throws: StoreError.self) { _ = try await bed.container() }
        let synchronous = await #expect(throws: StoreError.self) {
            _ = try await onThread { try PersistentContainer(openingSynchronously: Music.model, store: bed.description) }
        }
        #expect(synchronous == asynchronous)
        // A stage that fails leaves the file as it was.
        struct Failed: Error {}
        await #expect(throws: Failed.self) {
            _ = try await onThread {
                try PersistentContainer(
                    openingSynchronously: try People.third(), store: bed.description,
                    migrationPlan: try People.plan { throw Failed() })
            }
        }
        let old = try PersistentContainer(openingSynchronously: try People.first(), store: bed.description)
        #expect(try Carrier(old).context?.count(EntityFetchRequest("Person")) == 1)
    }
}

/// Runs `body` on a new thread, and waits for it without blocking.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
