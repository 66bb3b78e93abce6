import Logging
import Platform
import StrataSwiftData
import TestSupport
import Testing

/// The log of slow fetches. A threshold of zero logs every fetch, so the test does not depend on speed.
@Suite struct SlowFetchTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    @Test(arguments: TestStore.allCases)
    func `S174: a container logs fetches until its log is turned off`(_ store: TestStore) async throws {
        try await store.use(ToDo.self) { container in
            let lines = Lines()
            let logger = Logger(label: "test") { _ in LineHandler { line in lines.all.withLock { $0.append(line) } } }
            let context = ModelContext(container)
            container.logFetches(slowerThan: .zero, to: logger)
            _ = try context.fetch(FetchDescriptor<ToDo>())
            container.logFetches(slowerThan: nil)
            _ = try context.fetch(FetchDescriptor<ToDo>())
            let logged = lines.all.withLock { $0 }
            #expect(logged.count == 1 && logged.allSatisfy { $0.contains("a fetch of ToDo") && $0.contains("plan: ") })
        }
    }
}
