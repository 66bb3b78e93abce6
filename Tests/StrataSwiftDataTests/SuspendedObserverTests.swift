import Dispatch
import Testing

@testable import StrataSwiftData

@Model private final class Station {
    var name: String
    init(_ name: String) { self.name = name }
}

/// Observers of a container that is suspended before they have shown what was saved.
@Suite(.timeLimit(.minutes(10))) struct SuspendedObserverTests {
    private func save(_ name: String, _ container: ModelContainer) throws {
        let context = ModelContext(container)
        context.insert(Station(name))
        try context.save()
    }

    /// Whether this process has the file of a container open, as Linux lists it.
    private func isOpen(_ file: TestFile) throws -> Bool {
        #if os(Linux)
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").contains {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file.url.path
            }
        #else
            false
        #endif
    }

    /// Suspends a container while the main actor is busy.
    @MainActor private func suspendAtOnce(_ container: ModelContainer) throws {
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do { try await container.suspend() } catch { Issue.record(error) }
            done.signal()
        }
        done.wait()
    }

    /// Returns when the observer has done the readings that were scheduled before.
    private func finishReadings(of observer: HistoryObserver) { observer.queue.sync {} }

    /// Catches: an observer that is told of a save, and reads the store after it was suspended.
    @Test @MainActor func `an observer reads nothing while the container is suspended, and shows the saves afterwards`()
        async throws
    {
        let file = TestFile()
        defer { try? FileManager.default.removeItem(at: file.url.deletingLastPathComponent()) }
        let container = try file.open(Station.self)
        let observer = try ResultsObserver<Station, Never>(sortBy: [SortDescriptor(\.name)], modelContainer: container)
        let history = try HistoryObserver(modelContainer: container)
        #expect(observer.results.isEmpty && history.eventCounter == 0)
        try save("Bergen", container)
        try suspendAtOnce(container)
        // The observer of results was told before the save returned, and runs on the main actor, which was busy until now.
        while observer.postponements == 0 {
            try #require(try !isOpen(file))
            try await Task.sleep(for: .milliseconds(5))
        }
        finishReadings(of: history)
        #expect(try !isOpen(file))
        await container.resume()
        while history.eventCounter == 0 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(observer.results.map(\.name) == ["Bergen"])
        try await container.close()
    }
}
