import Foundation
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The length of SQLite's log while contexts on another connection follow the saves (S154).
@Suite struct LogLengthTests {
    /// The most bytes that the log has when no reader keeps it: its limit, a step, and a save.
    private static let bound = 10 << 20

    private static func logSize(_ path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path + "-wal"))?[.size] as? Int ?? 0
    }

    /// Saves tracks of 60 KB one by one. A reader that the system interrupts keeps the log meanwhile, so that a long log gets time to be
    /// left: until then, the saves are small.
    /// - Parameter saved: A closure that is called after each save with the number of saves.
    /// - Throws: A failed requirement if the log stays long.
    private static func importTracks(
        _ container: PersistentContainer, path: String,
        saved: @MainActor @Sendable (Int) async throws -> Void = { _ in }
    ) async throws {
        let importer = container.newBatchOperationContext(name: "import")
        let text = String(repeating: "x", count: 60_000)
        // Together longer than the longest log.
        var (saves, left, pauses) = (0, 250, 0)
        while left > 0 || logSize(path) > bound {
            let isLong = logSize(path) > bound
            if isLong {
                pauses += 1
                try #require(pauses < 2_000, "\(logSize(path)) bytes")
                try await Task.sleep(for: .milliseconds(20))
            } else {
                left -= 1
            }
            await importer.perform { [saves] in _ = $0.makeTrack("\(saves) \(isLong ? "" : text)", plays: saves) }
            try await importer.save(.durable)
            saves += 1
            try await saved(saves)
        }
    }

    /// Results that fall behind read older states, which keep the log. So each save waits for them.
    @Test(arguments: [ContextStack.siblings, .split])
    @MainActor func `S154: an import beside live results of main keeps the log short`(_ stack: ContextStack) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack)
        let main = container.mainContext
        main.automaticallyMergesChanges = true
        let results = try FetchedResultsController(
            EntityFetchRequest("Track", sortBy: [AttributeSort("plays")]), context: main)
        try results.performFetch()
        try await Self.importTracks(container, path: bed.file.path) { @MainActor count in
            try await until("main shows the save") { results.snapshot.count == count }
        }
        try await container.close()
    }

    static func importElsewhere(_ path: String) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .sqlite(URL(fileURLWithPath: path)))
        // A context that falls behind reads an older state, which keeps the log. So main moves after each save.
        try await importTracks(container, path: path) { @MainActor _ in
            _ = try container.mainContext.count(EntityFetchRequest("Track"))
        }
        try await container.close()
    }

    enum Past: CaseIterable { case opened, hasRead, hasSaved }

    @Test(arguments: ContextStack.allCases, Past.allCases)
    func `S154: an idle container beside an import of another process keeps the log short`(
        _ stack: ContextStack, _ past: Past
    ) async throws {
        let bed = try TestBed(.sqlite)
        let container = try await bed.container(stack)
        if past == .hasRead {
            _ = try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Track")) }
        } else if past == .hasSaved {
            try await container.newBatchOperationContext().perform(andSave: .durable) { _ = $0.makeTrack("saved", plays: -1) }
        }
        try await IdleContainerTests.rest(container)
        await #expect(processExitsWith: .success) { [path = bed.file.path as String] in
            try await LogLengthTests.importElsewhere(path)
        }
        try await container.close()
    }
}
