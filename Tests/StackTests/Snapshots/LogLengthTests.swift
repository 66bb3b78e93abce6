import Foundation
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The length of SQLite's log while contexts on another connection follow the saves (S154).
@Suite struct LogLengthTests {
    /// The most bytes that the log ever has: its limit, a step, and a save.
    private static let bound = 10 << 20

    private static func logSize(_ path: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path + "-wal"))?[.size] as? Int ?? 0
    }

    /// Saves tracks of 60 KB one by one.
    /// - Parameter saved: A closure that is called after each save with the number of saves.
    /// - Returns: The most bytes that the log has had.
    private static func importTracks(
        _ container: PersistentContainer, _ count: Int, path: String,
        saved: @MainActor @Sendable (Int) async throws -> Void = { _ in }
    ) async throws -> Int {
        let importer = container.newBatchOperationContext(name: "import")
        let text = String(repeating: "x", count: 60_000)
        var longest = 0
        for number in 0..<count {
            await importer.perform { _ = $0.makeTrack("\(number) \(text)", plays: number) }
            try await importer.save(.durable)
            longest = max(longest, logSize(path))
            try await saved(number + 1)
        }
        return longest
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
        let longest = try await Self.importTracks(container, 250, path: bed.file.path) { @MainActor count in
            try await until("main shows the save") { results.snapshot.count == count }
        }
        #expect(longest < Self.bound, "\(longest) bytes")
        try await container.close()
    }

    static func importElsewhere(_ path: String) async throws {
        let container = try await PersistentContainer(model: Music.model, store: .sqlite(URL(fileURLWithPath: path)))
        // A context that falls behind reads an older state, which keeps the log. So main moves after each save.
        let longest = try await importTracks(container, 250, path: path) { @MainActor _ in
            _ = try container.mainContext.count(EntityFetchRequest("Track"))
        }
        try await container.close()
        try #require(longest < bound, "\(longest) bytes")
    }

    enum Past: CaseIterable { case opened, hasRead, hasSaved }

    /// Without those in which main stays at the state before the save, because it does not merge saves of other contexts.
    private static let idle: [(ContextStack, Past)] = ContextStack.allCases.flatMap { stack in
        Past.allCases.filter { $0 != .hasSaved || ![.nested, .masterMainWorker].contains(stack) }.map { (stack, $0) }
    }

    @Test(arguments: idle)
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
